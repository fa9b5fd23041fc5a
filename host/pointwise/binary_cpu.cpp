// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's binary: chunks of both operands decoded to floats on the stack, one loop a
// function over each, then pointwise's loop where there is an activation.
#include <algorithm>

#include "host/pointwise/binary_run.hpp"
#include "host/pointwise/packed_rows_cpu.hpp"
#include "host/pointwise/pointwise_run.hpp"
#include "wide/convert.hpp"

namespace wide {

namespace {

constexpr int64_t kChunk = 512;

/// Of a chunk of x in place.
void apply(BinaryFunction function, float* values, const float* others, int64_t count) {
  const auto each = [&](auto f) {
    for (int64_t i = 0; i < count; ++i) values[i] = f(values[i], others[i]);
  };
  switch (function) {
    case BinaryFunction::add:
      return each([](float x, float other) { return x + other; });
    case BinaryFunction::subtract:
      return each([](float x, float other) { return x - other; });
    case BinaryFunction::multiply:
      return each([](float x, float other) { return x * other; });
    case BinaryFunction::divide:
      return each([](float x, float other) { return x / other; });
  }
}

void activate(Activation activation, float* values, int64_t count) {
  PointwiseProblem problem;
  switch (activation) {
    case Activation::none:
      return;
    case Activation::relu:
      problem.function = PointwiseFunction::relu;
      break;
    case Activation::gelu:
      problem.function = PointwiseFunction::gelu;
      break;
    case Activation::silu:
      problem.function = PointwiseFunction::silu;
      break;
  }
  apply_pointwise_cpu(problem, values, nullptr, count);
}

void run_row(const BinaryProblem& p, const BinaryArguments& a, int64_t row, int64_t member) {
  const int64_t size = dtype_bytes(p.dtype);
  const char* x = row_at(a.x.data, p.x, row, member, p.dtype);
  const char* other = row_at(a.other.data, p.other, row, member, p.dtype);
  char* y = row_at(a.y.data, p.y, row, member, p.dtype);
  const bool has_features = p.broadcast == Broadcast::none || p.broadcast == Broadcast::rows;
  float values[kChunk], others[kChunk];
  if (!has_features) {
    decode_row(p.dtype, other, others, 1);
    std::fill(others, others + kChunk, others[0]);
  }
  for (int64_t first = 0; first < p.features; first += kChunk) {
    const int64_t count = std::min(kChunk, p.features - first);
    decode_row(p.dtype, x + first * size, values, count);
    if (has_features) decode_row(p.dtype, other + first * size, others, count);
    apply(p.function, values, others, count);
    activate(p.activation, values, count);
    encode_row(p.dtype, values, y + first * size, count);
  }
}

}  // namespace

void run_binary_cpu(const Context& context, const BinaryProblem& problem, WideStrategy strategy,
                    const BinaryArguments& arguments) {
  for_each_row(context, rows_of(problem), strategy,
               [&](int64_t row, int64_t member) { run_row(problem, arguments, row, member); });
}

}  // namespace wide
