// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Volumes that are images: an axis that no window spans is not an axis of a convolution.
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

}  // namespace

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
