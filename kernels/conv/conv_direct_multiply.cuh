// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// conv_direct's multiply-adds on what is in shared memory: a sum runs over channels, then taps.
#pragma once

#include "kernels/arch/opaque.cuh"
#include "kernels/conv/conv_direct_place.cuh"

namespace wide::kernels {

using DirectSums = float[kDirectChannels][kDirectPerLane];

/// What a warp's products of a chunk read.
template <int kPlanes>
struct DirectOperands {
  const float* inputs;
  const float* weights;  ///< of the warp's first four channels
  int channels;          ///< of x
  int planes[kPlanes];   ///< where the groups of the warp's channels begin: of all, or of each
};

template <int kCount>
__device__ void load_vectors(const float* from, float (&to)[kCount]) {
  static_assert(kCount % 4 == 0);
#pragma unroll
  for (int i = 0; i < kCount; i += 4) {
    *reinterpret_cast<float4*>(to + i) = *reinterpret_cast<const float4*>(from + i);
  }
}

/// The values of a row that a lane's four neighbouring outputs, kStride positions apart, read at
/// kTaps taps, kDilation positions apart, in whole vectors. With stride 2, even and odd positions.
template <int kTaps, int kStride, int kDilation>
struct DirectWindow {
  static constexpr int kParities = kTaps == 1 ? 1 : kStride;
  static constexpr int kSpan = (kTaps - 1) * kDilation / kParities + kDirectPerLane;
  static constexpr int kFloats = (kSpan + 3) / 4 * 4;
  float values[kParities][kFloats];

  __device__ void load(const float* from, int odd) {
#pragma unroll
    for (int parity = 0; parity < kParities; ++parity) {
      load_vectors(from + parity * odd, values[parity]);
    }
  }
  __device__ float at(int tap, int i) const {
    const int offset = tap * kDilation;
    return values[offset % kParities][offset / kParities + i];
  }
};

/// Where a lane's i-th output reads a kernel's first tap.
__device__ inline int first_read(const DirectTile& tile, int i) {
  const int lane = static_cast<int>(threadIdx.x) % kDirectLanes;
  const int position = direct_position(tile, lane, i);
  const int column = position & (tile.columns.outputs() - 1);
  return (position >> tile.columns.shift) * tile.rows.output_step * tile.pitch +
         (tile.odd > 0 ? column : column * tile.columns.output_step);
}

/// A chunk's products where a lane's outputs are neighbours. Addresses change once a row: taps are
/// constant offsets of weights and registers of x.
template <int kTaps, int kStride, int kDilation, int kPlanes>
__device__ void multiply_windows(const ConvParams& p, const DirectTile& tile,
                                 const DirectOperands<kPlanes>& operands, DirectSums& sums) {
  constexpr int kAtOnce = 4;  // channels of y
  // Channels of a kernel of one row are one loop.
  const bool is_row = p.kernel.height == 1;
  const int channels = is_row ? 1 : operands.channels;
  const int rows = is_row ? operands.channels : p.kernel.height;
  const int row_step = is_row ? tile.plane : tile.rows.tap_step * tile.pitch;
  const int weight_quad = 4 * tile.num_weights;
  const float* weight = operands.weights;
  const float* inputs = operands.inputs + first_read(tile, 0);
#pragma unroll 1
  for (int c = 0; c < channels; ++c) {
    const float* input = inputs + c * tile.plane;
#pragma unroll 1
    for (int row = 0; row < rows; ++row) {
      DirectWindow<kTaps, kStride, kDilation> x;
      if constexpr (kPlanes == 1) x.load(input + operands.planes[0], tile.odd);
#pragma unroll
      for (int first = 0; first < kDirectChannels; first += kAtOnce) {
        float w[kTaps][kAtOnce];
#pragma unroll
        for (int tap = 0; tap < kTaps; ++tap) {
          load_vectors(weight + first / kAtOnce * weight_quad + tap * kAtOnce, w[tap]);
        }
#pragma unroll
        for (int o = 0; o < kAtOnce; ++o) {
          if constexpr (kPlanes > 1) {
            // Otherwise a pointer to each plane is kept, until registers spill.
            x.load(input + arch::opaque(operands.planes[first + o]), tile.odd);
          }
#pragma unroll
          for (int tap = 0; tap < kTaps; ++tap) {
#pragma unroll
            for (int i = 0; i < kDirectPerLane; ++i) {
              float& sum = sums[first + o][i];
              sum = fmaf(x.at(tap, i), w[tap][o], sum);
            }
          }
        }
      }
      input += row_step;
      weight += kTaps * kAtOnce;
    }
  }
}

/// A chunk's products for any kernel: taps one by one, at a place each.
template <int kPlanes>
__device__ void multiply_taps(const ConvParams& p, const DirectTile& tile,
                              const DirectOperands<kPlanes>& operands, DirectSums& sums) {
  int places[kDirectPerLane];
#pragma unroll
  for (int i = 0; i < kDirectPerLane; ++i) places[i] = first_read(tile, i);
  const int weight_quad = 4 * tile.num_weights;
  const float* weight = operands.weights;
#pragma unroll 1
  for (int c = 0; c < operands.channels; ++c) {
#pragma unroll 1
    for (int row = 0; row < p.kernel.height; ++row) {
      const float* input = operands.inputs + c * tile.plane + row * tile.rows.tap_step * tile.pitch;
#pragma unroll 1
      for (int column = 0; column < p.kernel.width; ++column) {
        float w[2][4];
        load_vectors(weight, w[0]);
        load_vectors(weight + weight_quad, w[1]);
        float x[kDirectPerLane];
#pragma unroll
        for (int o = 0; o < kDirectChannels; ++o) {
#pragma unroll
          for (int i = 0; i < kDirectPerLane; ++i) {
            if (o < kPlanes) x[i] = input[operands.planes[o % kPlanes] + places[i]];
            sums[o][i] = fmaf(x[i], w[o / 4][o % 4], sums[o][i]);
          }
        }
        weight += 4;
        input += tile.columns.tap_step;
      }
    }
  }
}

/// Calls multiply.operator()<kTaps, kStride, kDilation>() for the tile's window.
template <class F>
__device__ void with_window(const ConvParams& p, const DirectTile& tile, const F& multiply) {
  const auto with_step = [&]<int kTaps>() {
    if (p.stride.width == 2) return multiply.template operator()<kTaps, 2, 1>();
    if (p.dilation.width == 2) return multiply.template operator()<kTaps, 1, 2>();
    return multiply.template operator()<kTaps, 1, 1>();
  };
  switch (tile.window) {
    case 1:
      return multiply.template operator()<1, 1, 1>();
    case 3:
      return with_step.template operator()<3>();
    case 5:
      return with_step.template operator()<5>();
    default:
      return with_step.template operator()<7>();
  }
}

}  // namespace wide::kernels
