// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's binary: one loop per function over each chunk of both operands, then the
// activation's.
#include <algorithm>

#include "host/core/activation_cpu.hpp"
#include "host/pointwise/binary_run.hpp"
#include "host/pointwise/packed_rows_cpu.hpp"

namespace wide {

namespace {

void apply(BinaryFunction function, const float* values, const float* others, float* out,
           int64_t count) {
  const auto each = [&](auto f) { cpu::map(values, others, out, count, f); };
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

bool has_features(const BinaryProblem& p) {
  return p.broadcast == Broadcast::none || p.broadcast == Broadcast::rows;
}

void run_row(const BinaryProblem& p, const BinaryArguments& a, int64_t row, int64_t member) {
  const char* x = row_at(a.x.data, p.x, row, member, p.dtype);
  const char* other = row_at(a.other.data, p.other, row, member, p.dtype);
  char* y = row_at(a.y.data, p.y, row, member, p.dtype);
  float others[cpu::kRowChunk];
  if (!has_features(p)) {
    decode_row(p.dtype, other, others, 1);
    std::fill_n(others, cpu::kRowChunk, others[0]);
  }
  cpu::transform_row(p.dtype, x, y, p.features,
                     [&](const float* values, float* out, int64_t first, int64_t count) {
                       const float* own = has_features(p)
                                              ? cpu::chunk_of(p.dtype, other, first, count, others)
                                              : others;
                       apply(p.function, values, own, out, count);
                       activate_cpu(p.activation, out, count);
                     });
}

/// The same with longer rows, where members lie side by side.
BinaryProblem joined(BinaryProblem p) {
  const bool is_each = has_features(p);
  if (is_each ? p.other.member != p.features : p.other.member != 0) return p;
  join_members(p);
  if (is_each) p.other.member = p.features;
  return p;
}

}  // namespace

void run_binary_cpu(const Context& context, const BinaryProblem& problem, WideStrategy strategy,
                    const BinaryArguments& arguments) {
  const BinaryProblem p = strategy == WideStrategy::wide ? joined(problem) : problem;
  for_each_row(context, rows_of(p), strategy,
               [&](int64_t row, int64_t member) { run_row(p, arguments, row, member); });
}

}  // namespace wide
