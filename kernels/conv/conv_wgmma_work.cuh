// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A convolution as work for wgmma_ring.cuh: what a stage is, and where a tile's sums go.
#pragma once

#include "kernels/conv/conv_wgmma.hpp"
#include "kernels/conv/conv_wgmma_store.cuh"
#include "kernels/linear/wgmma_ring.cuh"

namespace wide::kernels {

/// The stages of a tile: 128 bytes of channels after another, and all taps of each.
template <class T>
struct ConvStages {
  const ConvWgmmaParams& params;
  ConvTileAt at;
  int32_t x_member;
  int32_t first_column, first_row, column, row;  ///< of x, where the box begins
  int32_t channel = 0, tap_column = 0, tap_row = 0;

  __device__ ConvStages(const ConvWgmmaParams& all, const ConvTileAt& tile)
      : params(all),
        at(tile),
        x_member(all.conv.x_strides.member == 0 ? 0 : tile.member),
        first_column(tile.column * all.conv.stride.width - all.conv.padding.width),
        first_row(tile.row * all.conv.stride.height - all.conv.padding.height),
        column(first_column),
        row(first_row) {}

  __device__ void prefetch_weight() const {
    arch::prefetch_tile(params.weight, channel, tap_column, tap_row, at.channel, at.member);
  }
  /// Of this tap, or of all: as large as the map's box is.
  __device__ void load_x(char* x, arch::Mbarrier* full) const {
    arch::load_tile(x, params.x, full, channel, at.batch, column, row, x_member);
  }
  __device__ void load_weight(char* weight, arch::Mbarrier* full) const {
    arch::load_tile(weight, params.weight, full, channel, tap_column, tap_row, at.channel,
                    at.member);
  }
  __device__ void load(char* x, char* weight, arch::Mbarrier* full) const {
    load_x(x, full);
    load_weight(weight, full);
  }
  __device__ bool is_first_tap() const { return tap_column == 0 && tap_row == 0; }
  __device__ void advance() {
    column += params.conv.dilation.width;
    if (++tap_column < params.conv.kernel.width) return;
    tap_column = 0;
    column = first_column;
    row += params.conv.dilation.height;
    if (++tap_row < params.conv.kernel.height) return;
    tap_row = 0;
    row = first_row;
    channel += kRowBytes / static_cast<int>(sizeof(T));
  }
};

template <class T, WgmmaPolicy policy>
struct ConvWork {
  static constexpr bool kHasHalfSteps = true;
  static constexpr bool kStoresBoxes = kCanStoreBoxes<T>;
  const ConvWgmmaParams& params;
  const ConvWgmmaPlaces& places;
  const WgmmaGrid& grid;

  __device__ ConvTileAt tile_at(uint32_t index) const {
    const WgmmaTileIndex tile = locate_tile(grid, index);
    const uint32_t line = tile.m / places.tiles_of_columns;
    const uint32_t column = tile.m % places.tiles_of_columns;
    const auto place = [](uint32_t tiles, int32_t extent) {
      return static_cast<int32_t>(tiles) * extent;
    };
    return {static_cast<int32_t>(tile.member),
            place(line / places.tiles_of_rows, params.rectangle.batch),
            place(line % places.tiles_of_rows, params.rectangle.rows),
            place(column, params.rectangle.columns), place(tile.n, policy.tile_n)};
  }
  __device__ void prefetch_maps() const {
    arch::prefetch_tensor_map(params.x);
    arch::prefetch_tensor_map(params.weight);
    if (params.stores_boxes) arch::prefetch_tensor_map(params.y);
  }
  __device__ ConvStages<T> stages(uint32_t index) const {
    return ConvStages<T>(params, tile_at(index));
  }
  template <int kBlocksM, int kSums>
  __device__ void store(uint32_t index, int first_m, int first_n, const Storer& storer,
                        uint32_t& box_index, float (&sums)[kBlocksM][kSums]) const {
    const ConvTileAt at = tile_at(index);
    store_part(sums, [&](int m, int n, float(&block)[kBlockSums]) {
      const ConvTileAt from = places.moved(at, first_m + m, first_n + n);
      store_conv_block<T>(params, places, from, storer, box_index, block);
    });
  }
};

}  // namespace wide::kernels
