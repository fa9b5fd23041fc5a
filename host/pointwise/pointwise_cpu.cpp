// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's pointwise: one loop per function over each chunk of a row, in the forms that the
// CUDA kernel has.
#include <algorithm>
#include <cmath>

#include "host/core/math_cpu.hpp"
#include "host/core/row_cpu.hpp"
#include "host/pointwise/packed_rows_cpu.hpp"
#include "host/pointwise/pointwise_run.hpp"

namespace wide {

namespace {

float hardswish(float v) {
  return v <= -3 ? 0.0f : v >= 3 ? v : v * (v + 3) / 6;
}
float sigmoid(float v) {
  return 1.0f / (1.0f + cpu::exp(-v));
}
float softplus(float v, float beta) {
  const float z = beta * v;
  const float smooth = (cpu::relu(z) + cpu::log1p_of_fraction(cpu::exp(-std::fabs(z)))) / beta;
  return z > kSoftplusOfItself ? v : smooth;
}

void apply(const PointwiseProblem& p, const float* values, const float* slopes, float* out,
           int64_t count) {
  const auto each = [&](auto function) { cpu::map(values, out, count, function); };
  switch (p.function) {
    case PointwiseFunction::relu:
      return each(cpu::relu);
    case PointwiseFunction::gelu:
      return each(cpu::gelu);
    case PointwiseFunction::gelu_tanh:
      return each(cpu::gelu_tanh);
    case PointwiseFunction::silu:
      return each(cpu::silu);
    case PointwiseFunction::sigmoid:
      return each(sigmoid);
    case PointwiseFunction::tanh:
      return each(cpu::tanh);
    case PointwiseFunction::elu:
      return each([alpha = p.alpha](float v) {
        const float below = alpha * cpu::expm1_of_negative(v > 0 ? 0.0f : v);
        return v > 0 ? v : below;
      });
    case PointwiseFunction::leaky_relu:
      return each([slope = p.slope](float v) { return v > 0 ? v : slope * v; });
    case PointwiseFunction::prelu:
      return cpu::map(values, slopes, out, count,
                      [](float v, float slope) { return v > 0 ? v : slope * v; });
    case PointwiseFunction::hardswish:
      return each(hardswish);
    case PointwiseFunction::softplus:
      return each([beta = p.beta](float v) { return softplus(v, beta); });
    case PointwiseFunction::clamp:
      return each([low = p.low, high = p.high](float v) {
        return v < low ? low : v > high ? high : v;
      });
  }
}

void run_row(const PointwiseProblem& p, const PointwiseArguments& a, int64_t row, int64_t member) {
  const char* x = row_at(a.x.data, p.x, row, member, p.dtype);
  char* y = row_at(a.y.data, p.y, row, member, p.dtype);
  const char* slope = p.num_slopes == 0 ? nullptr
                                        : static_cast<const char*>(a.slope.data) +
                                              member * p.slope_member_stride * dtype_bytes(p.dtype);
  float slopes[cpu::kRowChunk];
  if (p.num_slopes == 1) {
    decode_row(p.dtype, slope, slopes, 1);
    std::fill_n(slopes, cpu::kRowChunk, slopes[0]);
  }
  cpu::transform_row(p.dtype, x, y, p.features,
                     [&](const float* values, float* out, int64_t first, int64_t count) {
                       const float* own = p.num_slopes > 1
                                              ? cpu::chunk_of(p.dtype, slope, first, count, slopes)
                                              : slopes;
                       apply(p, values, own, out, count);
                     });
}

/// The same with longer rows, where members lie side by side.
PointwiseProblem joined(PointwiseProblem p) {
  const bool has_slopes = p.num_slopes > 0;
  if (has_slopes && (p.num_slopes != p.features || p.slope_member_stride != p.features)) return p;
  join_members(p);
  if (has_slopes) p.num_slopes = p.slope_member_stride = p.features;
  return p;
}

}  // namespace

void run_pointwise_cpu(const Context& context, const PointwiseProblem& problem,
                       WideStrategy strategy, const PointwiseArguments& arguments) {
  const PointwiseProblem p = strategy == WideStrategy::wide ? joined(problem) : problem;
  for_each_row(context, rows_of(p), strategy,
               [&](int64_t row, int64_t member) { run_row(p, arguments, row, member); });
}

}  // namespace wide
