// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How conv_direct stores its sums: through shared memory, so that neighbouring lanes store
// neighbours in y, and so that a loop has one copy of the epilogue's code.
#pragma once

#include "kernels/common/activation.cuh"
#include "kernels/common/numeric.cuh"
#include "kernels/conv/conv_direct_multiply.cuh"

namespace wide::kernels {

/// What a block stores, slot after slot, each a position.
struct DirectOutputs {
  int64_t* y;  ///< elements from the block's first channel's first, or -1: outside
  int64_t* residual;
  float* sums;

  __device__ explicit DirectOutputs(void* shared)
      : y(static_cast<int64_t*>(shared)),
        residual(y + kDirectPositions),
        sums(reinterpret_cast<float*>(residual + kDirectPositions)) {}
};

/// With channels first, neighbouring slots are neighbours in y; with channels last they are what
/// the lanes of a warp have at once.
__device__ inline void find_outputs(const ConvParams& p, const DirectTile& tile,
                                    const DirectPlace& place, const DirectOutputs& outputs) {
  for (int slot = static_cast<int>(threadIdx.x); slot < kDirectPositions;
       slot += static_cast<int>(blockDim.x)) {
    const bool has_quads = tile.window != 0 && !tile.y_is_last;
    const int position = has_quads
                             ? direct_position(tile, slot / kDirectPerLane, slot % kDirectPerLane)
                             : direct_position(tile, slot % kDirectLanes, slot / kDirectLanes);
    const int row = place.row + (position >> tile.columns.shift);
    const int column = place.column + (position & (tile.columns.outputs() - 1));
    const auto offset = [&](const ChannelStrides& s, int64_t depth_stride) {
      return place.batch * s.batch + place.member * s.member + place.first_channel * s.channel +
             place.plane * depth_stride + row * s.row + column * s.column;
    };
    const bool exists = row < p.output.height && column < p.output.width;
    outputs.y[slot] = exists ? offset(p.y_strides, p.depth.y) : -1;
    if (p.residual != nullptr) {
      outputs.residual[slot] = offset(p.residual_strides, p.depth.residual);
    }
  }
}

/// Residual, activation, one rounding.
template <class T>
__device__ void store_sum(const ConvParams& p, const DirectOutputs& outputs, int slot, int channel,
                          float sum) {
  float added = 0;
  if (p.residual != nullptr) {
    added = to_float(static_cast<const T*>(
        p.residual)[outputs.residual[slot] + channel * p.residual_strides.channel]);
    if (p.residual_is_activated) sum += added;
  }
  with_activation(p.activation, [&]<Activation fixed>() { sum = activate<fixed>(sum); });
  if (p.residual != nullptr && !p.residual_is_activated) sum += added;
  static_cast<T*>(p.y)[outputs.y[slot] + channel * p.y_strides.channel] = from_float<T>(sum);
}

/// Adds the bias to the sums of a warp's channels, and calls put(channel, sums of it).
template <class T, class Put>
__device__ void put_sums(const ConvParams& p, const DirectPlace& place, int warp_channel,
                         DirectSums& sums, const Put& put) {
  const T* bias =
      static_cast<const T*>(p.bias) + place.member * p.bias_member_stride + place.first_channel;
#pragma unroll
  for (int o = 0; o < kDirectChannels; ++o) {
    const int channel = warp_channel + o;
    if (p.bias != nullptr && channel < place.num_channels) {  // adding 0 would make +0 of -0
      const float added = to_float(bias[channel]);
#pragma unroll
      for (float& sum : sums[o]) sum += added;
    }
    put(channel, sums[o]);
  }
}

/// With channels first: a warp stores its own channels, lanes are positions.
template <class T>
__device__ void store_rows(const ConvParams& p, const DirectTile& tile, const DirectPlace& place,
                           int warp_channel, DirectSums& sums, const DirectOutputs& outputs) {
  const int lane = static_cast<int>(threadIdx.x) % kDirectLanes;
  put_sums<T>(p, place, warp_channel, sums, [&](int channel, float(&values)[kDirectPerLane]) {
    float* of_channel = outputs.sums + channel * kDirectPositions;
    if (tile.window != 0) {
      reinterpret_cast<float4*>(of_channel)[lane] = *reinterpret_cast<const float4*>(values);
      return;
    }
#pragma unroll
    for (int i = 0; i < kDirectPerLane; ++i) of_channel[i * kDirectLanes + lane] = values[i];
  });
  __syncthreads();
  const int end = min(warp_channel + kDirectChannels, place.num_channels);
#pragma unroll 1
  for (int slot = lane; slot < kDirectPositions; slot += kDirectLanes) {
    if (outputs.y[slot] < 0) continue;
#pragma unroll 1
    for (int channel = warp_channel; channel < end; ++channel) {
      store_sum<T>(p, outputs, slot, channel, outputs.sums[channel * kDirectPositions + slot]);
    }
  }
}

/// With channels last: all warps store the block's channels of some positions each, lanes are
/// channels.
template <class T>
__device__ void store_pixels(const ConvParams& p, const DirectTile& tile, const DirectPlace& place,
                             int warp_channel, DirectSums& sums, const DirectOutputs& outputs) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kDirectLanes;
  put_sums<T>(p, place, warp_channel, sums, [&](int channel, float(&values)[kDirectPerLane]) {
    float* of_lane = outputs.sums + lane * tile.sum_pitch() + channel;
#pragma unroll
    for (int i = 0; i < kDirectPerLane; ++i) {
      of_lane[i * kDirectLanes * tile.sum_pitch()] = values[i];
    }
  });
  __syncthreads();
  // As many lanes as there are channels, as a power of two.
  const int shift = min(5, 32 - __clz(place.num_channels - 1));
#pragma unroll 1
  for (int slot = thread >> shift; slot < kDirectPositions;
       slot += static_cast<int>(blockDim.x) >> shift) {
    if (outputs.y[slot] < 0) continue;
#pragma unroll 1
    for (int channel = thread & ((1 << shift) - 1); channel < place.num_channels;
         channel += 1 << shift) {
      store_sum<T>(p, outputs, slot, channel, outputs.sums[slot * tile.sum_pitch() + channel]);
    }
  }
}

}  // namespace wide::kernels
