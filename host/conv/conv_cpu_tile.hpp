// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A tile of convolution's outputs on the CPU: channels by positions, decoded to floats.
//
// Every output is one fp32 sum over its terms in ascending order, for any tile; those with fused
// multiply-add give the same bits.
#pragma once

#include <cstdint>

namespace wide::cpu {

inline constexpr int kConvPositions = 32;  ///< of y, side by side: two vectors of sixteen
inline constexpr int kConvChannels = 64;   ///< of y
/// Terms decoded at a time. A tile needs 40 KiB of stack: the caller's threads may have little.
inline constexpr int kConvDepth = 64;

/// sums[o][p] += sum over t of weights[o * weight_stride + t] * inputs[t][p].
struct ConvTile {
  const float* weights;
  int64_t weight_stride;
  const float* const* inputs;  ///< a row of kConvPositions per term, anywhere
  int channels, depth;         ///< at most kConvChannels, kConvDepth
  float (*sums)[kConvPositions];
};

using ConvTileKernel = void (*)(const ConvTile&);

void conv_tile_portable(const ConvTile& tile);
/// AVX2 and FMA; null where the compiler cannot build it.
extern const ConvTileKernel conv_tile_avx2;
/// AVX-512 F; null where the compiler cannot build it.
extern const ConvTileKernel conv_tile_avx512;
/// The best one for the processor that the program runs on.
ConvTileKernel best_conv_tile();

}  // namespace wide::cpu
