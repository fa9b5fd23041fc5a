// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Types of what convolutions and pools compute, in either layout.
#include <algorithm>

#include "host/model/infer_operands.hpp"

namespace wide::infer_detail {

namespace {

/// Sizes of windows from which on sums of them could overflow.
constexpr int64_t kLargestWindow = int64_t{1} << 30;

/// Of signals, which have no height, or images.
Shape images(ChannelLayout layout, int rank, int64_t channels, const PerAxis& size) {
  const bool is_last = layout == ChannelLayout::channels_last;
  if (rank == 3) {
    return is_last ? Shape{kBatch, size.width, channels} : Shape{kBatch, channels, size.width};
  }
  return is_last ? Shape{kBatch, size.height, size.width, channels}
                 : Shape{kBatch, channels, size.height, size.width};
}

}  // namespace

Types infer(const ConvOp& op, const Operands& at) {
  at.only({"x", "weight", "bias", "residual"});
  const ValueType& x = at.floating("x", 3, 4);
  const int rank = x.shape.rank();
  const bool x_is_last = op.x_layout.value_or(op.layout) == ChannelLayout::channels_last;
  const int position = x_is_last ? 1 : 2;  // the first axis of x's
  const int64_t in = x.shape[x_is_last ? rank - 1 : 1];
  at.require(op.groups >= 1 && in % op.groups == 0,
             "groups is " + text(op.groups) + ", expected a divisor of in_channels = " + text(in));
  const Shape wanted = rank == 3 ? Shape{kBatch, in / op.groups, kBatch}
                                 : Shape{kBatch, in / op.groups, kBatch, kBatch};
  const ValueType& weight = at.parameter("weight", wanted, x.dtype);
  const int64_t out = weight.shape[0];
  at.require(out % op.groups == 0, "weight is " + shape_text(weight.shape) +
                                       ", expected groups = " + text(op.groups) +
                                       " to divide its first extent");
  at.optional_parameter("bias", {out}, x.dtype);
  ConvProblem problem{
      .input = {rank == 3 ? 1 : x.shape[position], x.shape[rank == 3 ? position : position + 1]},
      .kernel = {rank == 3 ? 1 : weight.shape[2], weight.shape.back()},
      .stride = op.stride,
      .padding = op.padding,
      .dilation = op.dilation};
  const auto fits = [](const PerAxis& sizes) {
    return std::max(sizes.height, sizes.width) <= kLargestWindow;
  };
  at.require(fits(op.stride) && fits(op.padding) && fits(op.dilation) && fits(problem.kernel),
             "stride, padding, dilation or kernel is above 2^30");
  const bool is_sound = op.stride.height >= 1 && op.stride.width >= 1 && op.dilation.height >= 1 &&
                        op.dilation.width >= 1 && op.padding.height >= 0 && op.padding.width >= 0 &&
                        problem.kernel.height >= 1 && problem.kernel.width >= 1;
  at.require(is_sound,
             "stride, dilation or padding is impossible, expected strides and dilations of "
             "at least 1, padding of at least 0 and a kernel");
  const PerAxis size = conv_output_size(problem);
  at.require(size.height >= 1 && size.width >= 1,
             "the kernel " + shape_text(weight.shape) + " is larger than the padded x " +
                 shape_text(x.shape) + ", expected at least one output");
  const ValueType y{x.dtype, images(op.layout, rank, out, size)};
  at.residual(op.residual, y);
  return {y};
}

Types infer(const PoolingOp& op, const Operands& at) {
  at.only({"x"});
  const ValueType& x = at.floating("x", 3, 4);
  const int rank = x.shape.rank();
  const bool is_last = op.layout == ChannelLayout::channels_last;
  const int column = is_last ? rank - 2 : rank - 1;
  const auto outputs = [&](int64_t size, const PoolingWindow& window, int64_t wanted) {
    if (op.mode == PoolingMode::adaptive_average) return wanted == 0 ? 1 : wanted;
    at.require(
        window.kernel >= 1 && window.stride >= 0 && window.padding >= 0 && window.dilation >= 1,
        "a window is impossible, expected a kernel and dilation of at least 1");
    at.require(
        std::max({window.kernel, window.stride, window.padding, window.dilation}) <= kLargestWindow,
        "a window's kernel, stride, padding or dilation is above 2^30");
    return pooling_outputs(size, window, op.ceil_mode);
  };
  const PerAxis size{rank == 3 ? 1 : outputs(x.shape[column - 1], op.rows, op.out_height),
                     outputs(x.shape[column], op.columns, op.out_width)};
  at.require(size.height >= 1 && size.width >= 1,
             "a window is larger than x " + shape_text(x.shape) + ", expected at least one output");
  return {{x.dtype, images(op.layout, rank, x.shape[is_last ? rank - 1 : 1], size)}};
}

}  // namespace wide::infer_detail
