// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/pooling/interpolate_params.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/pooling/interpolate_cut.hpp"
#include "kernels/pooling/interpolate_last_rows.hpp"

namespace wide {

namespace {

/// L / O, or 1 / scale: exactly, since a float is a whole number times a power of two. So are all
/// positions.
struct Fraction {
  int64_t over, under;
};
Fraction step_of(int64_t in, int64_t out, float scale) {
  if (scale == 0.0f) return {in, out};
  int exponent = 0;
  const auto digits = static_cast<uint64_t>(std::ldexp(std::frexp(scale, &exponent), 24));
  // scale = odd * 2^shift
  const int zeros = std::countr_zero(digits), shift = exponent - 24 + zeros;
  const auto odd = static_cast<int64_t>(digits >> zeros);
  return shift <= 0 ? Fraction{int64_t{1} << -shift, odd} : Fraction{1, odd << shift};
}

kernels::LinearAxis axis_of(CoordinateMode mode, int64_t in, int64_t out, float scale) {
  kernels::LinearAxis axis;
  axis.in = static_cast<int>(in);
  axis.out = static_cast<int>(out);
  const bool is_single = out == 1 && mode != CoordinateMode::asymmetric;
  if (is_single && mode != CoordinateMode::half_pixel) {  // at position 0
    axis.step = 0;
    return axis;
  }
  if (mode == CoordinateMode::align_corners) {
    axis.step = in - 1;
    axis.parts = out - 1;
    return axis;
  }
  const Fraction step = step_of(in, out, scale);
  const bool is_middle = mode != CoordinateMode::asymmetric;  // (2 i + 1) step / 2 - 1 / 2
  axis.step = is_middle ? 2 * step.over : step.over;
  axis.start = is_middle ? step.over - step.under : 0;
  axis.parts = is_middle ? 2 * step.under : step.under;
  return axis;
}

}  // namespace

kernels::InterpolateParams interpolate_params(const InterpolateProblem& p) {
  kernels::InterpolateParams params;
  params.num_members = p.num_members;
  params.channels = p.channels;
  params.batch = p.batch;
  params.rows = axis_of(p.coordinates, p.height, p.out_height, p.row_scale);
  params.columns = axis_of(p.coordinates, p.width, p.out_width, p.column_scale);
  params.x_strides = p.x;
  params.y_strides = p.y;
  return params;
}

int64_t interpolate_launch_blocks(const InterpolateProblem& problem, int64_t members) {
  if (problem.batch == 0 || problem.channels == 0) return 0;
  kernels::InterpolateParams params = interpolate_params(problem);
  params.num_members = members;
  // Single channels, as vectors take an alignment.
  if (problem.layout == ChannelLayout::channels_last) {
    return kernels::interpolate_last_blocks(params, 1);
  }
  const auto size = static_cast<int>(16 / dtype_bytes(problem.dtype));
  int64_t most = 0;
  for (const uintptr_t address : {uintptr_t{0}, uintptr_t{2}}) {  // vectors take an alignment
    params.y = reinterpret_cast<void*>(address);
    const kernels::Cut cut = kernels::InterpolateCutter(params, size).cut();
    most = std::max(most, kernels::interpolate_blocks(cut));
  }
  return most;
}

}  // namespace wide
