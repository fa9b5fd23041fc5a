// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Types of what convolutions and pools compute, in either layout.
#include <algorithm>

#include "host/conv/conv_problem.hpp"
#include "host/core/channels.hpp"
#include "host/model/conv_transpose.hpp"
#include "host/model/infer_operands.hpp"
#include "host/pooling/interpolate_problem.hpp"
#include "host/pooling/pooling_problem.hpp"

namespace wide::infer_detail {

namespace {

/// Sizes of windows from which on sums of them could overflow.
constexpr int64_t kLargestWindow = int64_t{1} << 30;

}  // namespace

Types infer(const ConvOp& op, const Operands& at) {
  at.only({"x", "weight", "bias", "residual"});
  const ValueType& x = at.floating("x", 3, 5);
  const int rank = x.shape.rank();
  const bool x_is_last = op.x_layout.value_or(op.layout) == ChannelLayout::channels_last;
  const int column = x_is_last ? rank - 2 : rank - 1;
  const int64_t in = x.shape[x_is_last ? rank - 1 : 1];
  at.require(op.groups >= 1 && in % op.groups == 0,
             "groups is " + text(op.groups) + ", expected a divisor of in_channels = " + text(in));
  const Shape wanted = conv_shape(ChannelLayout::channels_first, rank, kBatch, in / op.groups,
                                  kBatch, {kBatch, kBatch});
  const ValueType& weight = at.parameter("weight", wanted, x.dtype);
  const int64_t out = weight.shape[0];
  at.require(out % op.groups == 0, "weight is " + shape_text(weight.shape) +
                                       ", expected groups = " + text(op.groups) +
                                       " to divide its first extent");
  at.optional_parameter("bias", {out}, x.dtype);
  ConvProblem problem{.input = {rank == 3 ? 1 : x.shape[column - 1], x.shape[column]},
                      .kernel = {rank == 3 ? 1 : weight.shape[rank - 2], weight.shape.back()},
                      .stride = op.stride,
                      .padding = op.padding,
                      .dilation = op.dilation,
                      .depth = op.depth};
  ConvDepth& depth = problem.depth;
  depth.input = rank == 5 ? x.shape[column - 2] : 1;
  depth.kernel = rank == 5 ? weight.shape[2] : 1;
  const auto fits = [](const PerAxis& sizes, int64_t of_depth) {
    return std::max({sizes.height, sizes.width, of_depth}) <= kLargestWindow;
  };
  const auto least = [](const PerAxis& sizes, int64_t of_depth) {
    return std::min({sizes.height, sizes.width, of_depth});
  };
  at.require(fits(op.stride, depth.stride) && fits(op.padding, depth.padding) &&
                 fits(op.dilation, depth.dilation) && fits(problem.kernel, depth.kernel),
             "stride, padding, dilation or kernel is above 2^30");
  const bool is_sound =
      least(op.stride, depth.stride) >= 1 && least(op.dilation, depth.dilation) >= 1 &&
      least(op.padding, depth.padding) >= 0 && least(problem.kernel, depth.kernel) >= 1;
  at.require(is_sound,
             "stride, dilation or padding is impossible, expected strides and dilations of "
             "at least 1, padding of at least 0 and a kernel");
  const PerAxis size = conv_output_size(problem);
  const int64_t output_depth = conv_output_depth(problem);
  at.require(std::min({output_depth, size.height, size.width}) >= 1,
             "the kernel " + shape_text(weight.shape) + " is larger than the padded x " +
                 shape_text(x.shape) + ", expected at least one output");
  const ValueType y{x.dtype, conv_shape(op.layout, rank, kBatch, out, output_depth, size)};
  at.residual(op.residual, y);
  return {y};
}

namespace {

void check_strides(const Operands& at, const TransposedAxes& axes, int64_t channels) {
  for (const TransposedAxis& a : axes) {
    at.require(std::max({a.stride, a.padding, a.dilation, a.kernel, a.output_padding,
                         -a.output_padding}) <= kLargestWindow,
               "stride, padding, output_padding, dilation or kernel is above 2^30");
    at.require(a.stride >= 1 && a.dilation >= 1 && a.padding >= 0 && a.kernel >= 1,
               "stride is " + text(a.stride) + ", dilation " + text(a.dilation) + ", padding " +
                   text(a.padding) + ", kernel " + text(a.kernel) +
                   ", expected strides, dilations and kernels of at least 1 and padding of at "
                   "least 0");
    at.require(channels <= kLargestWindow / a.stride,
               "channels times strides are above 2^30: each phase has channels of its own");
    channels *= a.stride;
  }
}

/// So that products of two such numbers have 64 bits.
void check_positions(const Operands& at, const Shape& x,
                     ChannelLayout layout = ChannelLayout::channels_first) {
  for (int i = 0; i < x.rank() - 2; ++i) {
    const int axis = position_axis(layout) + i;
    at.require(x[axis] <= kLargestWindow,
               "x is " + shape_text(x) + ", expected at most 2^30 positions on an axis");
  }
}

/// "2x2"
std::string blocks_text(const std::vector<BlockAxis>& axes) {
  std::string all;
  for (const BlockAxis& axis : axes) all += (all.empty() ? "" : "x") + text(axis.block);
  return all;
}

}  // namespace

Types infer(const ConvTransposeOp& op, const Operands& at) {
  at.only({"x", "weight", "bias"});
  const ValueType& x = at.floating("x", 3, 5);
  const int rank = x.shape.rank();
  const int64_t in = x.shape[1];
  at.require(op.groups >= 1 && in % op.groups == 0,
             "groups is " + text(op.groups) + ", expected a divisor of in_channels = " + text(in));
  const Shape wanted =
      conv_shape(ChannelLayout::channels_first, rank, in, kBatch, kBatch, {kBatch, kBatch});
  const ValueType& weight = at.parameter("weight", wanted, x.dtype);
  const int64_t out = weight.shape[1] * op.groups;
  at.optional_parameter("bias", {out}, x.dtype);
  check_positions(at, x.shape);
  const TransposedAxes axes = transposed_axes(op, x.shape, weight.shape);
  check_strides(at, axes, out);
  ValueType y = x;
  y.shape[1] = out;
  for (int axis = 2; axis < rank; ++axis) {
    const TransposedAxis& a = axes[static_cast<size_t>(axis + 3 - rank)];
    at.require(a.out() >= 1, "x " + shape_text(x.shape) + " and the kernel " +
                                 shape_text(weight.shape) + " leave " + text(a.out()) +
                                 " positions within the padding, expected at least one");
    y.shape[axis] = a.out();
  }
  return {y};
}

Types infer(const DepthToSpaceOp& op, const Operands& at) {
  at.only({"x"});
  const ValueType& x = at.activation("x", 3, 5);
  check_positions(at, x.shape, op.layout);
  const std::vector<BlockAxis> axes = block_axes(op, x.shape.rank() - 2);
  const int channel = channel_axis(op.layout, x.shape.rank());
  const int64_t channels = x.shape[channel];
  int64_t blocks = 1;
  for (const BlockAxis& a : axes) {
    at.require(a.block >= 1 && a.block <= kLargestWindow,
               "block is " + text(a.block) + ", expected 1 to 2^30");
    blocks = blocks <= channels / a.block ? blocks * a.block : channels + 1;
  }
  at.require(channels % blocks == 0, "x has " + text(channels) +
                                         " channels, expected a multiple of the blocks' " +
                                         blocks_text(axes));
  ValueType y = x;
  y.shape[channel] /= blocks;
  at.require(op.groups >= 0 && (op.groups == 0 || y.shape[channel] % op.groups == 0),
             "groups is " + text(op.groups) + ", expected 0 or a divisor of y's channels, " +
                 text(y.shape[channel]));
  int axis = position_axis(op.layout);
  for (const BlockAxis& a : axes) {
    const int64_t all = x.shape[axis] * a.block, size = a.size == 0 ? all - a.first : a.size;
    at.require(a.first >= 0 && a.first < all && size >= 1 && size <= all - a.first,
               "first is " + text(a.first) + " and size " + text(a.size) + " of " + text(all) +
                   " positions, expected some of them");
    y.shape[axis++] = size;
  }
  return {y};
}

Types infer(const UpsampleOp& op, const Operands& at) {
  at.only({"x"});
  ValueType y = at.activation("x", 3, 5);
  check_positions(at, y.shape, op.layout);
  int axis = position_axis(op.layout);
  for (const BlockAxis& a : block_axes(op, y.shape.rank() - 2)) {
    at.require(a.block >= 1 && a.block <= kLargestWindow,
               "factor is " + text(a.block) + ", expected 1 to 2^30");
    y.shape[axis++] *= a.block;
  }
  return {y};
}

Types infer(const ConvPhasesOp& op, const Operands& at) {
  at.only({"weight", "bias"});
  const bool is_weight = at.has("weight");
  const char* name = is_weight ? "weight" : "bias";
  at.require(at.is_parameter(name), text(name) + " is computed, expected a parameter");
  at.require_floating(name, at.type(name).dtype);
  const ValueType& given = at.type(name);
  const int rank = given.shape.rank();
  at.require(is_weight ? rank >= 3 && rank <= 5 : rank == 1,
             text(name) + " is " + shape_text(given.shape) +
                 (is_weight ? ", expected 3 to 5 axes" : ", expected one axis"));
  at.require(op.groups >= 1 && given.shape[0] % op.groups == 0,
             "groups is " + text(op.groups) + ", expected a divisor of " + name +
                 "'s first extent, " + text(given.shape[0]));
  if (!is_weight) {
    check_strides(at, transposed_axes(op, {1, 1, 1, 1, 1}), given.shape[0]);
    return {{given.dtype, {given.shape[0] * op.depth_stride * op.stride.height * op.stride.width}}};
  }
  const TransposedAxes axes = transposed_axes(op, given.shape);
  check_strides(at, axes, given.shape[1] * op.groups);
  Shape y = given.shape;
  y[0] = given.shape[1] * op.groups * axes[0].stride * axes[1].stride * axes[2].stride;
  y[1] = given.shape[0] / op.groups;
  for (int axis = 2; axis < rank; ++axis) {
    y[axis] = axes[static_cast<size_t>(axis + 3 - rank)].taps();
  }
  return {{given.dtype, y}};
}

namespace {

/// Of signals only what there is of columns.
void check_pool(const PoolingOp& op, bool has_rows) {
  if (op.mode == PoolingMode::adaptive_average) {
    if (has_rows) require_adaptive_outputs("out_height", op.out_height);
    require_adaptive_outputs("out_width", op.out_width);
  } else {
    if (has_rows) require_pooling_window("rows", op.rows, op.mode);
    require_pooling_window("columns", op.columns, op.mode);
  }
}

}  // namespace

Types infer(const PoolingOp& op, const Operands& at) {
  at.only({"x"});
  const ValueType& x = at.floating("x", 3, 4);
  const int rank = x.shape.rank(), column = position_axis(op.layout) + rank - 3;
  const bool is_adaptive = op.mode == PoolingMode::adaptive_average;
  at.require_accepted([&] { check_pool(op, rank == 4); });
  const auto outputs = [&](int64_t size, const PoolingWindow& window, int64_t wanted) {
    return is_adaptive ? wanted : pooling_outputs(size, window, op.ceil_mode);
  };
  const PerAxis size{rank == 3 ? 1 : outputs(x.shape[column - 1], op.rows, op.out_height),
                     outputs(x.shape[column], op.columns, op.out_width)};
  at.require(size.height >= 1 && size.width >= 1,
             "a window is larger than x " + shape_text(x.shape) + ", expected at least one output");
  const int64_t channels = x.shape[channel_axis(op.layout, rank)];
  return {{x.dtype, conv_shape(op.layout, rank, kBatch, channels, 1, size)}};
}

Types infer(const InterpolateOp& op, const Operands& at) {
  at.only({"x"});
  ValueType y = at.floating("x", 3, 4);
  const bool has_rows = y.shape.rank() == 4;
  const int row = position_axis(op.layout), column = has_rows ? row + 1 : row;
  InterpolateProblem p{.width = y.shape[column], .coordinates = op.coordinates};
  p.out_width = op.out_width, p.column_scale = op.column_scale;
  if (has_rows) {
    p.height = y.shape[row];
    p.out_height = op.out_height, p.row_scale = op.row_scale;
  }
  at.require_accepted([&] { p = resolved_positions(p); });
  y.shape[column] = p.out_width;
  if (has_rows) y.shape[row] = p.out_height;
  return {y};
}

}  // namespace wide::infer_detail
