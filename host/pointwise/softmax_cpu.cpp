// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's softmax, over chunks that are decoded to floats on the stack: the largest value,
// the sum, the quotients.
#include <algorithm>
#include <cmath>
#include <limits>

#include "host/pointwise/packed_rows_cpu.hpp"
#include "host/pointwise/softmax_run.hpp"
#include "wide/convert.hpp"

namespace wide {

namespace {

constexpr int64_t kChunk = 512;
constexpr int64_t kLanes = 16;  // independent sums

template <class F>
void for_each_chunk(const SoftmaxProblem& p, const char* x, const F& f) {
  float values[kChunk];
  for (int64_t first = 0; first < p.features; first += kChunk) {
    const int64_t count = std::min(kChunk, p.features - first);
    decode_row(p.dtype, x + first * dtype_bytes(p.dtype), values, count);
    f(values, first, count);
  }
}

void run_row(const SoftmaxProblem& p, const SoftmaxArguments& a, int64_t row, int64_t member) {
  const int64_t size = dtype_bytes(p.dtype);
  const char* x = row_at(a.x.data, p.x, row, member, p.dtype);
  char* y = row_at(a.y.data, p.y, row, member, p.dtype);

  float largest = -std::numeric_limits<float>::infinity();  // NaN is not larger: the sum gets it
  for_each_chunk(p, x, [&](const float* v, int64_t, int64_t count) {
    for (int64_t i = 0; i < count; ++i) largest = v[i] > largest ? v[i] : largest;
  });
  float lanes[kLanes] = {};
  for_each_chunk(p, x, [&](const float* v, int64_t, int64_t count) {
    for (int64_t i = 0; i < count; ++i) lanes[i % kLanes] += std::exp(v[i] - largest);
  });
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  const float factor = 1.0f / lanes[0], shift = std::log(lanes[0]);
  for_each_chunk(p, x, [&](float* v, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const float difference = v[i] - largest;
      v[i] = p.is_log ? difference - shift : std::exp(difference) * factor;
    }
    encode_row(p.dtype, v, y + first * size, count);
  });
}

}  // namespace

void run_softmax_cpu(const Context& context, const SoftmaxProblem& problem, WideStrategy strategy,
                     const SoftmaxArguments& arguments) {
  for_each_row(context, rows_of(problem), strategy,
               [&](int64_t row, int64_t member) { run_row(problem, arguments, row, member); });
}

}  // namespace wide
