// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The same sums over other axes: volumes that are images, since an axis that no window spans is not
// an axis of a convolution; and patches whose columns are channels.
#include <limits>
#include <utility>
#include <vector>

#include "host/conv/conv_problem.hpp"

namespace wide {

namespace {

/// Every output reads only the position at its own place.
bool is_idle(int64_t kernel, int64_t stride, int64_t padding) {
  return kernel == 1 && stride == 1 && padding == 0;
}
bool has_idle_depth(const ConvProblem& p) {
  return is_idle(p.depth.kernel, p.depth.stride, p.depth.padding);
}
bool has_idle_planes(const ConvProblem& p) {
  return is_idle(p.kernel.height, p.stride.height, p.padding.height) &&
         is_idle(p.kernel.width, p.stride.width, p.padding.width);
}

/// Where the strides of an operand with positions are.
struct Folded {
  ChannelStrides* strides;
  int64_t* depth_stride;
};

std::vector<Folded> folded(ConvProblem& p) {
  std::vector<Folded> all{{&p.x, &p.depth.x_stride}, {&p.y, &p.depth.y_stride}};
  if (p.epilogue.residual != Residual::none) {
    all.push_back({&p.residual, &p.depth.residual_stride});
  }
  return all;
}

constexpr int64_t kMaxExtent = std::numeric_limits<int32_t>::max();  // of any extent

/// Turns planes that no window spans into batch rows.
bool fold_planes(ConvProblem& p) {
  const int64_t planes = p.depth.input;
  if (planes > kMaxExtent / p.batch) return false;
  for (const Folded& one : folded(p)) {
    if (p.batch > 1 && one.strides->batch != planes * *one.depth_stride) return false;
  }
  for (const Folded& one : folded(p)) one.strides->batch = *one.depth_stride;
  p.batch *= planes;
  p.depth = {};
  return true;
}

/// Turns a plane's positions, which no window spans, into columns of images whose rows are planes.
bool fold_positions(ConvProblem& p) {
  if (p.input.height > kMaxExtent / p.input.width) return false;
  for (const Folded& one : folded(p)) {
    const bool is_line =
        p.input.height == 1 || one.strides->row == p.input.width * one.strides->column;
    if (!is_line) return false;
  }
  const ConvDepth depth = std::exchange(p.depth, ConvDepth{});
  p.x.row = depth.x_stride, p.y.row = depth.y_stride, p.weight.row = depth.weight_stride;
  p.residual.row = depth.residual_stride;
  p.input = {depth.input, p.input.height * p.input.width};
  p.kernel.height = depth.kernel;
  p.stride.height = depth.stride;
  p.padding.height = depth.padding;
  p.dilation = {depth.dilation, 1};
  return true;
}

/// No position of x is read by two columns of y, and a kernel's row is read as it lies.
bool has_columns_apart(const ConvProblem& p) {
  return p.groups == 1 && p.kernel.width > 1 && p.dilation.width == 1 && p.padding.width == 0 &&
         p.stride.width >= p.kernel.width;
}

/// Whether channels are last, and of neighbouring positions one run.
bool has_runs_of_pixels(const ConvProblem& p) {
  const auto is_run = [&](int64_t channel, int64_t column) {
    return (p.in_channels == 1 || channel == 1) && column == p.in_channels;
  };
  return is_run(p.x.channel, p.x.column) && is_run(p.weight.in_channel, p.weight.column);
}

/// Turns the rows of a kernel into planes of as many images.
void fold_rows(ConvProblem& p) {
  p.depth.input = p.depth.kernel = p.kernel.height;
  p.depth.x_stride = p.dilation.height * p.x.row;
  p.depth.weight_stride = p.weight.row;
  p.input.height = conv_output_size(p).height;  // where kernels begin
  p.x.row *= p.stride.height;
  p.kernel.height = p.stride.height = p.dilation.height = 1;
}

/// Turns the columns of a kernel into channels, of which there are `of_column` for each.
void fold_columns(ConvProblem& p, int64_t of_column) {
  p.input.width = conv_output_size(p).width;  // where kernels begin
  p.x.channel = 1;
  p.x.column *= p.stride.width;
  p.in_channels = p.kernel.width * of_column;
  p.weight.column = 0;  // there is one
  p.kernel.width = p.stride.width = 1;
  p.x_layout = ChannelLayout::channels_last;
}

}  // namespace

ConvProblem with_patches_as_channels(const ConvProblem& problem) {
  // Fewer channels would be staged in more pieces, each with more planes, than they had.
  constexpr int64_t kLeastColumns = 8;
  if (is_empty(problem) || !has_columns_apart(problem)) return problem;
  ConvProblem p = problem;
  if (p.num_members == 1) p.x.member = 0;  // nothing steps by it
  if (has_runs_of_pixels(p)) {
    fold_columns(p, p.in_channels);
    return p;
  }
  if (is_volume(p) || p.x.column != 1 || p.kernel.width < kLeastColumns) return problem;
  p.depth.input = p.depth.kernel = p.in_channels;
  p.depth.x_stride = p.x.channel;
  p.depth.weight_stride = p.weight.in_channel;
  p.weight.in_channel = p.weight.column;
  fold_columns(p, 1);
  return p;
}

ConvProblem with_rows_as_planes(const ConvProblem& problem) {
  constexpr int64_t kLeastRows = 8;  // fewer fit in shared memory together
  const bool are_apart = problem.stride.height >= problem.kernel.height &&
                         problem.padding.height == 0 && problem.kernel.height >= kLeastRows;
  if (is_empty(problem) || is_volume(problem) || !are_apart) return problem;
  ConvProblem p = problem;
  fold_rows(p);
  return p;
}

ConvProblem without_idle_axes(const ConvProblem& problem) {
  if (!is_volume(problem) || is_empty(problem)) return problem;
  ConvProblem p = problem;
  const bool is_flat = has_idle_depth(p) ? fold_planes(p) : has_idle_planes(p) && fold_positions(p);
  return is_flat ? complete_conv_problem(p) : problem;
}

bool is_pointwise(const ConvProblem& p) {
  return has_idle_depth(p) && has_idle_planes(p) && p.groups == 1;
}

}  // namespace wide
