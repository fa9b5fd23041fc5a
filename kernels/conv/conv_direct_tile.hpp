// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How conv_direct cuts a convolution into blocks, apart from its launcher: whether a problem fits
// is decided without CUDA. By one member's problem alone, so that its launch is the same for any
// number of neighbours.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/conv/conv_params.hpp"

namespace wide::kernels {

inline constexpr int kDirectShift = 7;
inline constexpr int kDirectPositions = 1 << kDirectShift;  ///< of y, per block: four per lane
inline constexpr int kDirectChannels = 8;                   ///< of y, per warp
inline constexpr int kDirectMaxWarps = 8;
/// Three blocks to a multiprocessor of 164 KiB, four of 228 KiB.
inline constexpr int64_t kDirectSharedBytes = 52 * 1024;

/// Places of x in shared memory along one axis: output i and tap k read place
/// i * output_step + k * tap_step.
struct DirectAxis {
  int32_t shift;        ///< a block has 2^shift outputs
  int32_t tiles;        ///< tiles of y
  int32_t places;       ///< in shared memory
  int32_t output_step;  ///< places
  int32_t tap_step;     ///< places
  /// Places are neighbours in x, read by several taps; otherwise every tap has its own places,
  /// which is less where taps or outputs are far apart.
  bool is_halo;

  constexpr int32_t outputs() const { return 1 << shift; }
};

struct DirectTile {
  DirectAxis rows, columns;  ///< of one plane
  int32_t warps;
  int32_t span;           ///< channels of y that tiles cut: one group's, or all
  int32_t channel_tiles;  ///< per span
  int32_t groups;         ///< that a block reads, at most
  int32_t chunk;          ///< channels of x per group in shared memory at a time
  int64_t plane;          ///< floats between channels of x
  /// Every channel of y reads its own group; otherwise those of a warp read the same.
  bool has_own_input;
  bool x_is_last = false;  ///< x's channels; set by the launcher; no size depends on it

  constexpr int32_t channels() const { return warps * kDirectChannels; }
  /// Floats between the weights of taps: four more than a power of two of banks, so that eight taps
  /// of four channels are stored without bank conflicts.
  constexpr int32_t weight_pitch() const { return channels() + 4; }
  /// Floats between the sums of positions.
  constexpr int32_t sum_pitch() const { return channels() + 1; }
  constexpr int64_t input_floats() const {
    // In whole 16 bytes: the weights follow.
    return (groups * chunk * plane + 3) / 4 * 4;
  }
  constexpr int64_t shared_bytes(const ConvParams& p) const {
    const int64_t taps = int64_t{p.kernel.height} * p.kernel.width;
    const int64_t staged = input_floats() + chunk * taps * weight_pitch();
    return 4 * std::max(staged, int64_t{kDirectPositions} * sum_pitch());
  }
  /// Blocks per member; saturates instead of overflowing.
  constexpr int64_t blocks_of_member(const ConvParams& p) const {
    constexpr int64_t kMost = int64_t{1} << 31;
    int64_t blocks = 1;
    for (const int64_t factor :
         {p.batch, int64_t{p.depth.output}, int64_t{p.out_channels / span}, int64_t{channel_tiles},
          int64_t{rows.tiles}, int64_t{columns.tiles}}) {
      blocks = std::min(kMost, blocks * std::min(kMost, factor));
    }
    return blocks;
  }
};

constexpr DirectAxis direct_axis(int32_t shift, int32_t output, int32_t kernel, int32_t stride,
                                 int32_t dilation) {
  DirectAxis axis{};
  axis.shift = shift;
  const int32_t outputs = axis.outputs();
  axis.tiles = (output - 1) / outputs + 1;
  const int64_t halo = int64_t{outputs - 1} * stride + int64_t{kernel - 1} * dilation + 1;
  const int64_t apart = int64_t{outputs} * kernel;
  axis.is_halo = halo <= apart;
  constexpr int64_t kFarTooMany = 1 << 20;
  axis.places = static_cast<int32_t>(std::min({halo, apart, kFarTooMany}));
  axis.output_step = axis.is_halo ? stride : 1;
  axis.tap_step = axis.is_halo ? dilation : outputs;
  return axis;
}

constexpr DirectTile direct_tile(const ConvParams& p) {
  DirectTile tile{};
  // Groups of 8, 16 or 24 channels share a block's warps, narrower ones a warp.
  tile.has_own_input = p.groups > 1 && p.out_per_group < kDirectChannels;
  const bool joins_groups =
      tile.has_own_input || (p.out_per_group % kDirectChannels == 0 &&
                             p.out_per_group < kDirectChannels * kDirectMaxWarps);
  tile.span = joins_groups ? p.out_channels : p.out_per_group;
  tile.warps = std::clamp((tile.span - 1) / kDirectChannels + 1, 1,
                          tile.has_own_input ? kDirectMaxWarps / 2 : kDirectMaxWarps);
  tile.channel_tiles = (tile.span - 1) / tile.channels() + 1;
  // A tile that begins inside a group ends in one more group.
  tile.groups = 1;
  if (joins_groups) {
    const int32_t most = (tile.channels() - 1) / p.out_per_group + 1;
    tile.groups = std::min(p.groups, tile.channels() % p.out_per_group == 0 ? most : most + 1);
  }
  // Minimises what is computed and read, a row's first and last sectors included.
  int64_t least = -1;
  for (int32_t shift = kDirectShift; shift >= 3; --shift) {
    const DirectAxis rows = direct_axis(kDirectShift - shift, p.output.height, p.kernel.height,
                                        p.stride.height, p.dilation.height);
    const DirectAxis columns =
        direct_axis(shift, p.output.width, p.kernel.width, p.stride.width, p.dilation.width);
    constexpr int64_t kRowEnds = 8;
    const int64_t cost =
        int64_t{rows.tiles} * columns.tiles *
        (2 * kDirectPositions + int64_t{rows.places} * (columns.places + kRowEnds));
    if (least >= 0 && cost >= least) continue;
    least = cost;
    tile.rows = rows;
    tile.columns = columns;
  }
  // Odd: with channels last, the lanes of a warp store channels side by side.
  tile.plane = (int64_t{tile.rows.places} * tile.columns.places) | 1;
  tile.chunk = std::clamp(p.in_per_group, 1, 16);
  while (tile.chunk > 1 && tile.shared_bytes(p) > kDirectSharedBytes) tile.chunk /= 2;
  return tile;
}

}  // namespace wide::kernels
