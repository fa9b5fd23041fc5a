// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Parameters of the convolution kernels. Sizes are per member; launchers derive what a kernel
// divides by.
#pragma once

#include <cstdint>

#include "wide/channels.hpp"
#include "wide/epilogue.hpp"
#include "wide/strides.hpp"

namespace wide::kernels {

/// One number per axis of positions; the host keeps all of them, and padded extents, below 2^31.
struct ConvAxes {
  int32_t height, width;
};

/// The third axis of positions, for volumes; images have a depth of 1.
struct ConvDepthAxis {
  int32_t input, output, kernel, stride, padding, dilation;
  int64_t x, y, residual, weight;  ///< elements between planes of an operand

  /// Otherwise x, the kernel and y have one plane.
  constexpr bool has_planes() const { return input > 1 || kernel > 1 || padding > 0; }
};

/// x [batch, members, in_channels, input], weight [members, out_channels, in_per_group, kernel], y
/// and residual [batch, members, out_channels, output], bias [members, out_channels]; strides in
/// elements. Member i's operands begin i member strides after member 0's.
struct ConvParams {
  const void* x;
  const void* weight;
  const void* bias;      ///< or null
  const void* residual;  ///< or null; may be y itself
  void* y;
  int64_t num_members, batch;
  int32_t in_channels, out_channels, groups;
  int32_t in_per_group, out_per_group;
  ConvAxes input, output, kernel, stride, padding, dilation;
  ConvDepthAxis depth;
  ChannelStrides x_strides, y_strides, residual_strides;
  ConvWeightStrides weight_strides;
  int64_t bias_member_stride;
  Activation activation;
  bool residual_is_activated;  ///< added before the activation
};

}  // namespace wide::kernels
