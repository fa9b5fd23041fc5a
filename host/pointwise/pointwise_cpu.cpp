// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's pointwise: chunks decoded to floats on the stack, one loop a function over each,
// in the forms that the CUDA kernel has.
#include <algorithm>
#include <cmath>

#include "host/pointwise/packed_rows_cpu.hpp"
#include "host/pointwise/pointwise_run.hpp"
#include "wide/convert.hpp"

namespace wide {

namespace {

constexpr int64_t kChunk = 512;

float relu(float v) {
  return v > 0 || v != v ? v : 0.0f;
}
/// The factor of v where the other one vanishes to the left, so that -infinity gives the limit, 0.
float left_bounded(float v) {
  return std::max(v, -128.0f);
}
float gelu(float v) {
  return 0.5f * left_bounded(v) * std::erfc(-v * 0.70710678118654752f);
}
float sigmoid(float v) {
  return 1.0f / (1.0f + std::exp(-v));
}
float hardswish(float v) {
  return v <= -3 ? 0.0f : v >= 3 ? v : v * (v + 3) / 6;
}
float gelu_tanh(float v) {
  return left_bounded(v) / (1.0f + std::exp(-1.5957691216057308f * (v + 0.044715f * v * v * v)));
}
float softplus(float v, float beta) {
  const float z = beta * v;
  return ((z > 0 || z != z ? z : 0.0f) + std::log1p(std::exp(-std::fabs(z)))) / beta;
}

void run_row(const PointwiseProblem& p, const PointwiseArguments& a, int64_t row, int64_t member) {
  const int64_t size = dtype_bytes(p.dtype);
  const char* x = row_at(a.x.data, p.x, row, member, p.dtype);
  char* y = row_at(a.y.data, p.y, row, member, p.dtype);
  const char* slope = p.num_slopes == 0 ? nullptr
                                        : static_cast<const char*>(a.slope.data) +
                                              member * p.slope_member_stride * size;
  float values[kChunk], slopes[kChunk];
  if (p.num_slopes == 1) {
    decode_row(p.dtype, slope, slopes, 1);
    std::fill(slopes, slopes + kChunk, slopes[0]);
  }
  for (int64_t first = 0; first < p.features; first += kChunk) {
    const int64_t count = std::min(kChunk, p.features - first);
    decode_row(p.dtype, x + first * size, values, count);
    if (p.num_slopes > 1) decode_row(p.dtype, slope + first * size, slopes, count);
    apply_pointwise_cpu(p, values, slopes, count);
    encode_row(p.dtype, values, y + first * size, count);
  }
}

}  // namespace

void apply_pointwise_cpu(const PointwiseProblem& p, float* values, const float* slopes,
                         int64_t count) {
  const auto each = [&](auto function) {
    for (int64_t i = 0; i < count; ++i) values[i] = function(values[i]);
  };
  switch (p.function) {
    case PointwiseFunction::relu:
      return each(relu);
    case PointwiseFunction::gelu:
      return each(gelu);
    case PointwiseFunction::gelu_tanh:
      return each(gelu_tanh);
    case PointwiseFunction::silu:
      return each([](float v) { return left_bounded(v) / (1.0f + std::exp(-v)); });
    case PointwiseFunction::sigmoid:
      return each(sigmoid);
    case PointwiseFunction::tanh:
      return each([](float v) { return std::tanh(v); });
    case PointwiseFunction::elu:
      return each([&](float v) { return v > 0 ? v : p.alpha * std::expm1(v); });
    case PointwiseFunction::leaky_relu:
      return each([&](float v) { return v > 0 ? v : p.slope * v; });
    case PointwiseFunction::prelu:
      for (int64_t i = 0; i < count; ++i) {
        values[i] = values[i] > 0 ? values[i] : slopes[i] * values[i];
      }
      return;
    case PointwiseFunction::hardswish:
      return each(hardswish);
    case PointwiseFunction::softplus:
      return each([&](float v) { return softplus(v, p.beta); });
    case PointwiseFunction::clamp:
      return each([&](float v) { return v < p.low ? p.low : v > p.high ? p.high : v; });
  }
}

void run_pointwise_cpu(const Context& context, const PointwiseProblem& problem,
                       WideStrategy strategy, const PointwiseArguments& arguments) {
  for_each_row(context, rows_of(problem), strategy,
               [&](int64_t row, int64_t member) { run_row(problem, arguments, row, member); });
}

}  // namespace wide
