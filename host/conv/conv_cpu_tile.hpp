// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A tile of convolution's outputs on the CPU: channels by positions, of staged inputs.
//
// Every output is one fp32 sum over its terms in ascending order, for any tile; those with fused
// multiply-add give the same bits.
#pragma once

#include <cstdint>

namespace wide::cpu {

inline constexpr int kConvLanes = 16;      ///< of a vector
inline constexpr int kConvPositions = 32;  ///< side by side, in registers: two vectors
inline constexpr int kConvBlocks = 4;      ///< of as many positions, in a tile
inline constexpr int kConvSpan = kConvBlocks * kConvPositions;
inline constexpr int kConvChannels = 64;  ///< of y, in a tile
/// Terms at a time, as many as the first cache holds. A tile needs 52 KiB of stack: the caller's
/// threads may have little.
inline constexpr int kConvDepth = 64;
inline constexpr int kConvDenseDepth = 256;  ///< of weights that are read where they are

/// sums[o][p] += sum over t of weights[o * weight_stride + terms[t]] * inputs[offsets[t] + p],
/// where terms are 0, 1, 2, .. if they are null.
struct ConvTile {
  const float* weights = nullptr;
  int64_t weight_stride = kConvDepth;  ///< from an output channel to the next
  const float* inputs = nullptr;
  const int64_t *terms = nullptr, *offsets = nullptr;
  int channels = 0, depth = 0;  ///< at most the numbers above
  int positions = 0;            ///< likewise; sums of whole vectors are written
  bool is_first = true;         ///< the sums were 0
  float (*sums)[kConvSpan] = nullptr;
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
