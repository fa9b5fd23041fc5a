// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A transposed convolution as a convolution. Of y without padding, element u is of phase u %
// stride: it reads x[u / stride - j] by tap j*stride + u % stride. So each phase is a convolution
// by its own taps, in reverse, and all phases together one with as many times the channels, whose
// positions are then interleaved.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "wide/operation.hpp"
#include "wide/shape.hpp"

namespace wide {

/// One axis of positions.
struct TransposedAxis {
  int64_t in, kernel, stride, padding, dilation, output_padding;

  int64_t reach() const { return dilation * (kernel - 1) + 1; }
  int64_t out() const { return (in - 1) * stride - 2 * padding + reach() + output_padding; }
  /// Of a phase, the longest one's: the convolution's kernel.
  int64_t taps() const { return (reach() + stride - 1) / stride; }
  /// Of the convolution: the least by which its interleaved positions include all of y's.
  int64_t conv_padding() const { return taps() - 1 + more_padding(); }
  int64_t conv_outputs() const { return in + 2 * conv_padding() - taps() + 1; }
  /// Where y begins among the interleaved positions.
  int64_t first() const { return padding + more_padding() * stride; }

 private:
  /// Than the taps() - 1 by which every element of x meets every tap; often less.
  int64_t more_padding() const {
    const int64_t behind = padding + out() - stride * (in + taps() - 1);  // y's end past theirs
    const int64_t at_end = behind > 0 ? (behind + stride - 1) / stride : -(-behind / stride);
    return std::max({-(padding / stride), at_end, 1 - taps()});
  }
};

/// Depth, height and width of x [B, Cin, ..] and weight [Cin, Cout/groups, k..]; those that signals
/// and images lack have one position, which stays as it is.
using TransposedAxes = std::array<TransposedAxis, 3>;
inline TransposedAxes transposed_axes(const ConvTransposeOp& op, const Shape& x,
                                      const Shape& weight) {
  TransposedAxes axes{
      {{1, 1, op.depth.stride, op.depth.padding, op.depth.dilation, op.depth_output_padding},
       {1, 1, op.stride.height, op.padding.height, op.dilation.height, op.output_padding.height},
       {1, 1, op.stride.width, op.padding.width, op.dilation.width, op.output_padding.width}}};
  for (int i = 0; i < 3; ++i) {
    TransposedAxis& axis = axes[static_cast<size_t>(i)];
    const int own = x.rank() - 3 + i;
    if (own < 2) {
      axis = {1, 1, 1, 0, 1, 0};
    } else {
      axis.in = x[own];
      axis.kernel = weight[own];
    }
  }
  return axes;
}

/// Of a weight's phases, whatever x it meets.
inline TransposedAxes transposed_axes(const ConvPhasesOp& op, const Shape& weight) {
  ConvTransposeOp like{.stride = op.stride, .dilation = op.dilation};
  like.depth.stride = op.depth_stride;
  like.depth.dilation = op.depth_dilation;
  return transposed_axes(like, weight, weight);
}

/// One axis of a depth_to_space or upsample.
struct BlockAxis {
  int64_t block, first, size;
};
/// Of x [B, C*blocks, ..], in their order; sizes as they are asked for.
inline std::vector<BlockAxis> block_axes(const DepthToSpaceOp& op, int num_axes) {
  std::vector<BlockAxis> axes{{op.depth_block, op.depth_first, op.depth_size},
                              {op.block.height, op.first.height, op.size.height},
                              {op.block.width, op.first.width, op.size.width}};
  axes.erase(axes.begin(), axes.end() - num_axes);
  return axes;
}

inline std::vector<BlockAxis> block_axes(const UpsampleOp& op, int num_axes) {
  return block_axes(DepthToSpaceOp{.block = op.factor, .depth_block = op.depth_factor}, num_axes);
}

}  // namespace wide
