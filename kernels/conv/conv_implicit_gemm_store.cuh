// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From a tile of sums in shared memory to y: bias, residual, activation, one rounding. The tile's
// columns are y's neighbours, channels or pixels; where a pixel lies is looked up in a table that
// was made before the products, by any strides.
#pragma once

#include <cstdint>

#include "kernels/conv/conv_implicit_gemm_load.cuh"
#include "kernels/linear/linear_epilogue.cuh"

namespace wide::kernels {

/// Where pixels' first channels lie in y and in the residual, in shared memory: every fourth pixel,
/// then every fourth from the second on, .., as lanes that store four of them each look them up.
template <int kPixels>
struct ConvOutputPlaces {
  int64_t y[kPixels], residual[kPixels];

  __device__ static int slot_of(int pixel) { return pixel % 4 * (kPixels / 4) + pixel / 4; }

  /// `pixel` of the tile is `index` of all.
  __device__ void locate(const ConvGemmParams& params, int pixel, int64_t index) {
    const ConvPosition at = locate_position(params, index);
    const auto offset = [&](const ConvStrides& strides) {
      return at.batch * strides.batch + at.row * strides.row + at.column * strides.column;
    };
    y[slot_of(pixel)] = offset(params.conv.y_strides);
    residual[slot_of(pixel)] = offset(params.conv.residual_strides);
  }
};

/// The outputs of one block. The pointers are at its first channel.
template <class T, int kPixels>
struct ConvOutput {
  T* y;
  const T* bias;      ///< or null
  const T* residual;  ///< or null
  const ConvOutputPlaces<kPixels>* places;
  int num_pixels, num_channels;
};

/// `kSize` neighbouring sums, of which `count` exist, become outputs: the first is `channel` of
/// `pixel`, the others its neighbours along the product's columns. kSize is four, or one.
template <bool kColumnsAreChannels, class T, int kPixels, int kSize>
__device__ inline void finish_outputs(const ConvGemmParams& params,
                                      const ConvOutput<T, kPixels>& to, int pixel, int channel,
                                      int count, float (&values)[kSize]) {
  const ConvParams& conv = params.conv;
  const int slot = to.places->slot_of(pixel);
  const auto add = [&](const T* from) {
    if constexpr (kSize == 1) {
      values[0] += to_float(*from);
    } else {
      add_run(from, count, params.epilogue_is_aligned, values);
    }
  };
  if (to.bias != nullptr && kColumnsAreChannels) add(to.bias + channel);
  if (to.bias != nullptr && !kColumnsAreChannels) {
    const float bias = to_float(to.bias[channel]);
#pragma unroll
    for (int e = 0; e < kSize; ++e) values[e] += bias;
  }
  const T* residual = to.residual == nullptr ? nullptr
                                             : to.residual + to.places->residual[slot] +
                                                   channel * conv.residual_strides.channel;
  if (residual != nullptr && conv.residual_is_activated) add(residual);
  with_activation(conv.activation, [&]<Activation fixed>() {
#pragma unroll
    for (int e = 0; e < kSize; ++e) values[e] = activate<fixed>(values[e]);
  });
  if (residual != nullptr && !conv.residual_is_activated) add(residual);
  T* y = to.y + to.places->y[slot] + channel * conv.y_strides.channel;
  if constexpr (kSize == 1) {
    *y = from_float<T>(values[0]);
  } else if (count == kSize) {
    store_four(y, values);
  } else {
    store_some(y, count, values);
  }
}

/// All of them, `kRows` by `kColumns`, `kPitch` floats a row; neighbouring lanes take neighbours in
/// y. The loops are not unrolled: many copies of erfc spill.
template <bool kColumnsAreChannels, int kRows, int kColumns, int kPitch, int kThreads, class T,
          int kPixels>
__device__ inline void store_outputs(const ConvGemmParams& params, const ConvOutput<T, kPixels>& to,
                                     const float* sums) {
  const int thread = static_cast<int>(threadIdx.x);
  const int num_rows = kColumnsAreChannels ? to.num_pixels : to.num_channels;
  const int num_columns = kColumnsAreChannels ? to.num_channels : to.num_pixels;
  const auto finish = [&]<int kSize>(int row, int column, float(&values)[kSize]) {
    finish_outputs<kColumnsAreChannels>(params, to, kColumnsAreChannels ? row : column,
                                        kColumnsAreChannels ? column : row,
                                        min(num_columns - column, kSize), values);
  };
  if (params.y_has_vectors) {
    constexpr int groups = kColumns / kColumnGroup;
#pragma unroll 1
    for (int index = thread; index < kRows * groups; index += kThreads) {
      const int row = index / groups, column = index % groups * kColumnGroup;
      if (row >= num_rows || column >= num_columns) continue;
      float values[kColumnGroup];
      load_group(sums + row * kPitch + column, values);
      finish(row, column, values);
    }
  } else {
    const bool goes_down = !kColumnsAreChannels && params.conv.y_strides.channel == 1;
#pragma unroll 1
    for (int index = thread; index < kRows * kColumns; index += kThreads) {
      const int row = goes_down ? index % kRows : index / kColumns;
      const int column = goes_down ? index / kRows : index % kColumns;
      if (row >= num_rows || column >= num_columns) continue;
      float values[1] = {sums[row * kPitch + column]};
      finish(row, column, values);
    }
  }
}

}  // namespace wide::kernels
