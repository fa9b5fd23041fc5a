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
/// Of each warp: sixteen warps to a multiprocessor of 164 KiB.
inline constexpr int64_t kDirectSharedBytes = 10 * 1024;
inline constexpr int kDirectLeastWarps = 4;            ///< fewer are given as much
inline constexpr int64_t kDirectPlaceBytes = 64;       ///< of shared memory: where a block is
inline constexpr int64_t kDirectFarTooMany = 1 << 20;  ///< places along an axis

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
  /// The kernel's columns where a lane's outputs are neighbours and read the taps of a row from a
  /// window in registers; otherwise 0.
  int32_t window;
  /// Of windows of stride 2: where a row's odd positions begin, behind its even ones, so that
  /// neighbouring outputs read neighbours; otherwise 0, and a row is in order.
  int32_t odd;
  /// Of patches side by side, an even number of columns each: behind how many columns of x a place
  /// is left free, so that neighbouring outputs read different banks; otherwise 0.
  int32_t gap;
  int32_t row_shift;  ///< lanes that load a window at once are 2^row_shift rows apart
  int32_t warps;
  int32_t span;           ///< channels of y that tiles cut: one group's, or all
  int32_t channel_tiles;  ///< per span
  int32_t groups;         ///< that a block reads, at most
  int32_t chunk;          ///< channels of x per group in shared memory at a time
  int32_t buffers;        ///< chunks in shared memory: while one is read, the next is loaded
  int32_t pitch;          ///< floats between rows of x
  int32_t plane;          ///< floats between channels of x
  int32_t num_positions;  ///< of x in a plane
  /// Where positions come from is found once a block, not for each chunk. Not where taps are as far
  /// apart as outputs (patches), and positions so many that their table would be most of the
  /// memory.
  bool has_table;
  int32_t num_weights;  ///< of a chunk, of one channel of y
  /// Every channel of y reads its own group; otherwise those of a warp read the same.
  bool has_own_input;
  bool x_is_last, y_is_last;  ///< set by the launcher, as what follows: no size depends on them
  int32_t channel_shift;      ///< 2^channel_shift lanes load channels of one position of x

  constexpr int32_t channels() const { return warps * kDirectChannels; }
  /// A chunk of x, in whole 16 bytes: the weights follow.
  constexpr int64_t input_floats() const { return (int64_t{groups} * chunk * plane + 3) / 4 * 4; }
  constexpr int64_t chunk_floats() const {
    return input_floats() + int64_t{channels()} * num_weights;
  }
  constexpr int32_t table_positions() const { return has_table ? num_positions : 0; }
  /// Where positions and weights come from and go to: eight bytes each, in whole 16 bytes.
  constexpr int64_t source_bytes() const {
    return (int64_t{table_positions()} + num_weights + 1) / 2 * 16;
  }
  /// Floats between the sums of positions: odd.
  constexpr int32_t sum_pitch() const { return channels() + 1; }
  /// Sums, where they go to, and where their residuals come from.
  constexpr int64_t output_bytes() const {
    return int64_t{kDirectPositions} * (2 * 8 + 4 * sum_pitch());
  }
  constexpr int64_t shared_bytes() const {
    return kDirectPlaceBytes + source_bytes() +
           std::max(4 * buffers * chunk_floats(), output_bytes());
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
  axis.places = static_cast<int32_t>(std::min({halo, apart, kDirectFarTooMany}));
  axis.output_step = axis.is_halo ? stride : 1;
  axis.tap_step = axis.is_halo ? dilation : outputs;
  return axis;
}

/// Whether the taps of a row are read from a window: there is code for these.
constexpr bool direct_has_window(const ConvParams& p) {
  const int32_t taps = p.kernel.width, stride = p.stride.width, dilation = p.dilation.width;
  if (taps == 1) return true;
  return (taps == 3 || taps == 5 || taps == 7) && stride * dilation <= 2;
}

/// A row in whole vectors of four, as windows are loaded: of even and odd positions each.
constexpr DirectAxis direct_columns(int32_t shift, const ConvParams& p) {
  DirectAxis axis =
      direct_axis(shift, p.output.width, p.kernel.width, p.stride.width, p.dilation.width);
  if (direct_has_window(p)) {
    const int32_t together = 4 * axis.output_step;
    axis.places = (axis.places + together - 1) / together * together;
  }
  return axis;
}

/// The positions of a block: the fewest computed and read, a row's first and last sectors included.
constexpr void choose_direct_axes(const ConvParams& p, DirectTile& tile) {
  constexpr int64_t kRowEnds = 8;
  int64_t least = -1;
  for (int32_t shift = kDirectShift; shift >= 3; --shift) {
    const DirectAxis rows = direct_axis(kDirectShift - shift, p.output.height, p.kernel.height,
                                        p.stride.height, p.dilation.height);
    const DirectAxis columns = direct_columns(shift, p);
    const int64_t cost =
        int64_t{rows.tiles} * columns.tiles *
        (2 * kDirectPositions + int64_t{rows.places} * (columns.places + kRowEnds));
    if (least >= 0 && cost >= least) continue;
    least = cost;
    tile.rows = rows;
    tile.columns = columns;
  }
}

constexpr bool has_even_patches(const ConvParams& p, const DirectAxis& columns) {
  return columns.is_halo && columns.outputs() > 1 && columns.tap_step == 1 &&
         columns.output_step == p.kernel.width && columns.output_step % 2 == 0;
}

/// A warp's rows of outputs, too, read different banks.
constexpr void leave_gaps(DirectTile& tile) {
  constexpr int32_t kBanks = 32;
  const int32_t outputs = tile.columns.outputs();
  tile.gap = tile.columns.output_step++;
  const int32_t used = tile.columns.places + outputs - 1;
  tile.pitch = used + ((outputs - used) % kBanks + kBanks) % kBanks;
}

/// `is_asynchronous`: chunks are copied while others are read.
constexpr DirectTile direct_tile(const ConvParams& p, bool is_asynchronous) {
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
  choose_direct_axes(p, tile);
  // Odd, in floats or vectors: lanes of different rows load, and lanes of different channels store
  // without bank conflicts.
  const bool has_window = direct_has_window(p);
  const int32_t odd = has_window ? 4 : 1;
  tile.window = has_window ? p.kernel.width : 0;
  tile.odd = has_window && tile.columns.output_step == 2 ? tile.columns.places / 2 : 0;
  tile.pitch = has_window ? tile.columns.places | odd : tile.columns.places;
  if (has_even_patches(p, tile.columns)) leave_gaps(tile);
  const auto narrow = [](int64_t count) {
    return static_cast<int32_t>(std::min(count, kDirectFarTooMany));
  };
  tile.plane = narrow(int64_t{tile.rows.places} * tile.pitch) | odd;
  tile.num_positions = narrow(int64_t{tile.rows.places} * tile.columns.places);
  // Eight lanes load one vector for every four outputs of a row, and as many of other rows, whose
  // banks must be as many vectors apart, or a multiple.
  const int32_t step = tile.rows.output_step;
  const int32_t twos = step % 2 != 0 ? 0 : step % 4 != 0 ? 1 : 2;
  tile.row_shift = std::max(0, tile.columns.shift - 2 - twos);
  const int64_t taps = narrow(int64_t{p.kernel.height} * p.kernel.width);
  const int64_t most = kDirectSharedBytes * std::max(tile.warps, kDirectLeastWarps);
  const auto fits = [&](int32_t buffers) {
    tile.num_weights = narrow(tile.chunk * taps);
    tile.buffers = tile.chunk < p.in_per_group || p.depth.kernel > 1 ? buffers : 1;
    return tile.shared_bytes() <= most;
  };
  // Narrow values are converted on their way: nothing is loaded behind the arithmetic. Rather one
  // buffer than less than a sector of channels.
  constexpr int32_t kLeast = 8;
  for (const bool has_table : {true, false}) {
    tile.has_table = has_table;
    tile.chunk = std::clamp(p.in_per_group, 1, 16);
    while (!fits(is_asynchronous ? 2 : 1) && !(tile.chunk <= kLeast && fits(1)) && tile.chunk > 1) {
      tile.chunk /= 2;
    }
    if (tile.shared_bytes() <= most) break;
  }
  return tile;
}

}  // namespace wide::kernels
