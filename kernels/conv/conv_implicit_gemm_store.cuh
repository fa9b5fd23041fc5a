// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Stores a tile of sums in shared memory to y: bias, residual, activation, one rounding. The tile's
// columns are y's neighbours, channels or pixels; a pixel's place is looked up in a table, made
// before the products, for any strides. No loop is unrolled: many copies of erfc spill.
#pragma once

#include <cstdint>

#include "kernels/conv/conv_implicit_gemm_load.cuh"
#include "kernels/linear/linear_epilogue.cuh"

namespace wide::kernels {

/// Where pixels' first channels are in y and in the residual, in shared memory. Lanes look up
/// neighbours or every fourth pixel: pixels are kept in four runs, with gaps that avoid bank
/// conflicts for both.
template <int kPixels>
struct ConvOutputPlaces {
  static constexpr int kRun = kPixels / 4 + 4;
  int64_t y[4 * kRun], residual[4 * kRun];

  __device__ static int slot_of(int pixel) { return pixel % 4 * kRun + pixel / 4; }

  /// `pixel` of the tile is `index` of all pixels.
  template <int kAxes>
  __device__ void locate(const ConvGemmParams& params, int pixel, int64_t index) {
    const ConvPosition at = locate_position<kAxes>(params, index);
    const auto offset = [&](const ChannelStrides& strides, int64_t depth_stride) {
      const int64_t volume = kAxes == kVolumeAxes ? at.depth * depth_stride : 0;
      return volume + at.batch * strides.batch + at.row * strides.row + at.column * strides.column;
    };
    const ConvDepthAxis& depth = params.conv.depth;
    y[slot_of(pixel)] = offset(params.conv.y_strides, depth.y);
    residual[slot_of(pixel)] = offset(params.conv.residual_strides, depth.residual);
  }
};

/// The outputs of one block. Pointers are at its first channel.
template <class T, int kPixels>
struct ConvOutput {
  T* y;
  const T* bias;      ///< or null
  const T* residual;  ///< or null
  const ConvOutputPlaces<kPixels>* places;
  int num_pixels, num_channels;
};

/// Turns `kSize` sums that are neighbours in y, `count` of which exist, into outputs: the first is
/// `channel` of `pixel`. kSize is four, or one. Without a bias it is 0, which changes no sum: none
/// is -0.
template <class T, int kPixels, int kSize>
__device__ inline void finish_outputs(const ConvGemmParams& params,
                                      const ConvOutput<T, kPixels>& to, int pixel, int channel,
                                      int count, const float (&bias)[kSize],
                                      float (&values)[kSize]) {
  const ConvParams& conv = params.conv;
  const int slot = to.places->slot_of(pixel);
  const T* residual = to.residual == nullptr ? nullptr
                                             : to.residual + to.places->residual[slot] +
                                                   channel * conv.residual_strides.channel;
  const auto add_residual = [&] {
    if constexpr (kSize == 1) {
      values[0] += to_float(*residual);
    } else {
      add_run(residual, count, params.residual_is_aligned, values);
    }
  };
#pragma unroll
  for (int e = 0; e < kSize; ++e) values[e] += bias[e];
  if (residual != nullptr && conv.residual_is_activated) add_residual();
  with_activation(conv.activation, [&]<Activation fixed>() {
#pragma unroll
    for (int e = 0; e < kSize; ++e) values[e] = activate<fixed>(values[e]);
  });
  if (residual != nullptr && !conv.residual_is_activated) add_residual();
  T* y = to.y + to.places->y[slot] + channel * conv.y_strides.channel;
  if constexpr (kSize == 1) {
    *y = from_float<T>(values[0]);
  } else if (count >= kSize) {
    store_four(y, values);
  } else {
    store_some(y, count, values);
  }
}

/// All of a tile whose rows are four outputs at a time: a thread stays in the same columns.
template <bool kColumnsAreChannels, int kColumns, int kPitch, int kThreads, class T, int kPixels>
__device__ inline void store_vectors(const ConvGemmParams& params, const ConvOutput<T, kPixels>& to,
                                     const float* sums) {
  constexpr int groups = kColumns / kColumnGroup;
  static_assert(kThreads % groups == 0);
  const int num_rows = kColumnsAreChannels ? to.num_pixels : to.num_channels;
  const int num_columns = kColumnsAreChannels ? to.num_channels : to.num_pixels;
  const int column = static_cast<int>(threadIdx.x) % groups * kColumnGroup;
  const int left = num_columns - column;
  if (left <= 0) return;
  float bias[kColumnGroup] = {};
  if (kColumnsAreChannels && to.bias != nullptr) {
    load_run(to.bias + column, left, params.bias_is_aligned, bias);
  }
#pragma unroll 1
  for (int row = static_cast<int>(threadIdx.x) / groups; row < num_rows; row += kThreads / groups) {
    if (!kColumnsAreChannels && to.bias != nullptr) {
      const float value = to_float(to.bias[row]);
#pragma unroll
      for (int e = 0; e < kColumnGroup; ++e) bias[e] = value;
    }
    float values[kColumnGroup];
    load_group(sums + row * kPitch + column, values);
    finish_outputs(params, to, kColumnsAreChannels ? row : column,
                   kColumnsAreChannels ? column : row, left, bias, values);
  }
}

/// Where the columns are pixels and channels are last in y: four channels of a pixel at a time.
/// Four lanes take neighbouring ones, a sector of 16-bit values, of eight pixels that are
/// neighbours in shared memory.
template <int kRows, int kColumns, int kPitch, int kThreads, class T, int kPixels>
__device__ inline void store_channels(const ConvGemmParams& params,
                                      const ConvOutput<T, kPixels>& to, const float* sums) {
  constexpr int kLanes = 4, groups = kRows / kColumnGroup;
  static_assert(groups % kLanes == 0 && groups * kColumns % kThreads == 0);
#pragma unroll 1
  for (int index = static_cast<int>(threadIdx.x); index < groups * kColumns; index += kThreads) {
    const int pixel = index / kLanes % kColumns;
    const int group = index / (kLanes * kColumns) * kLanes + index % kLanes;
    const int channel = group * kColumnGroup, left = to.num_channels - channel;
    if (pixel >= to.num_pixels || left <= 0) continue;
    float bias[kColumnGroup] = {}, values[kColumnGroup];
    if (to.bias != nullptr) load_run(to.bias + channel, left, params.bias_is_aligned, bias);
#pragma unroll
    for (int e = 0; e < kColumnGroup; ++e) values[e] = sums[(channel + e) * kPitch + pixel];
    finish_outputs(params, to, pixel, channel, left, bias, values);
  }
}

/// One at a time, neighbouring lanes neighbours in y: along rows if columns are not.
template <bool kColumnsAreChannels, int kRows, int kColumns, int kPitch, int kThreads, class T,
          int kPixels>
__device__ inline void store_elements(const ConvGemmParams& params,
                                      const ConvOutput<T, kPixels>& to, const float* sums) {
  const ChannelStrides& strides = params.conv.y_strides;
  const bool goes_down = (kColumnsAreChannels ? strides.column : strides.channel) == 1;
#pragma unroll 1
  for (int index = static_cast<int>(threadIdx.x); index < kRows * kColumns; index += kThreads) {
    const int row = goes_down ? index % kRows : index / kColumns;
    const int column = goes_down ? index / kRows : index % kColumns;
    const int pixel = kColumnsAreChannels ? row : column;
    const int channel = kColumnsAreChannels ? column : row;
    if (pixel >= to.num_pixels || channel >= to.num_channels) continue;
    const float bias[1] = {to.bias == nullptr ? 0 : to_float(to.bias[channel])};
    float values[1] = {sums[row * kPitch + column]};
    finish_outputs(params, to, pixel, channel, 1, bias, values);
  }
}

}  // namespace wide::kernels
