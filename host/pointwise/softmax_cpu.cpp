// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's softmax, over chunks that are decoded to floats on the stack: the largest value,
// the sum, the quotients. `wide` spreads all rows of all members over the threads at once,
// `sequential` one member's rows after the other's.
#include <algorithm>
#include <cmath>
#include <limits>

#include "host/core/parallel.hpp"
#include "host/pointwise/softmax_run.hpp"
#include "wide/convert.hpp"

namespace wide {

namespace {

constexpr int64_t kChunk = 512;
constexpr int64_t kLanes = 16;  // independent sums
constexpr int64_t kElementsPerTask = 1 << 15;

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
  const char* x = static_cast<const char*>(a.x.data) + (row * p.x.row + member * p.x.member) * size;
  char* y = static_cast<char*>(a.y.data) + (row * p.y.row + member * p.y.member) * size;

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
  if (problem.features == 0) return;
  const int64_t at_once = strategy == WideStrategy::wide ? problem.num_members : 1;
  const int64_t step = std::max<int64_t>(1, kElementsPerTask / (problem.features * at_once));
  for (int64_t first = 0; first < problem.num_members; first += at_once) {
    parallel_for(context, (problem.rows + step - 1) / step, [&](int64_t task) {
      const int64_t end = std::min(problem.rows, (task + 1) * step);
      for (int64_t row = task * step; row < end; ++row) {
        for (int64_t n = first; n < first + at_once; ++n) {
          run_row(problem, arguments, row, n);
        }
      }
    });
  }
}

}  // namespace wide
