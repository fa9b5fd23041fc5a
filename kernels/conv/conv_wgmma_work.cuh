// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A convolution as Work of wgmma_ring.cuh: what a stage is, and how a tile's sums are stored.
#pragma once

#include "kernels/conv/conv_wgmma.hpp"
#include "kernels/conv/conv_wgmma_store.cuh"
#include "kernels/linear/wgmma_ring.cuh"

namespace wide::kernels {

/// The stages of a tile: the channels 128 bytes at a time, and all taps of each.
template <class T>
struct ConvStages {
  const ConvWgmmaParams& params;
  ConvTileAt at;
  int32_t x_member;
  int32_t first_column, first_row, first_plane, column, row, plane;  ///< of x, where the box begins
  int32_t channel = 0, tap_column = 0, tap_row = 0, tap_plane = 0;

  __device__ ConvStages(const ConvWgmmaParams& all, const ConvTileAt& tile)
      : params(all),
        at(tile),
        x_member(all.conv.x_strides.member == 0 ? 0 : tile.member),
        first_column(tile.column * all.conv.stride.width - all.conv.padding.width),
        first_row(tile.row * all.conv.stride.height - all.conv.padding.height),
        first_plane(tile.depth * all.conv.depth.stride - all.conv.depth.padding),
        column(first_column),
        row(first_row),
        plane(first_plane) {}

  __device__ void prefetch_weight() const {
    arch::prefetch_tile(params.weight, channel, tap_column, tap_row, weight_fourth(),
                        weight_fifth());
  }
  /// For this tap, or for all of a plane: as large as the map's box.
  __device__ void load_x(char* x, arch::Mbarrier* full) const {
    const int32_t of_members = x_member * params.conv.in_channels + channel;
    arch::load_tile(x, params.x, full, params.are_volumes ? of_members : channel, at.batch, column,
                    row, params.are_volumes ? plane : x_member);
  }
  __device__ void load_weight(char* weight, arch::Mbarrier* full) const {
    arch::load_tile(weight, params.weight, full, channel, tap_column, tap_row, weight_fourth(),
                    weight_fifth());
  }
  __device__ void load(char* x, char* weight, arch::Mbarrier* full) const {
    load_x(x, full);
    load_weight(weight, full);
  }
  __device__ bool is_first_of_plane() const { return tap_column == 0 && tap_row == 0; }
  __device__ void advance() {
    column += params.conv.dilation.width;
    if (++tap_column < params.conv.kernel.width) return;
    tap_column = 0;
    column = first_column;
    row += params.conv.dilation.height;
    if (++tap_row < params.conv.kernel.height) return;
    tap_row = 0;
    row = first_row;
    plane += params.conv.depth.dilation;
    if (++tap_plane < params.conv.depth.kernel) return;
    tap_plane = 0;
    plane = first_plane;
    channel += kRowBytes / static_cast<int>(sizeof(T));
  }

 private:
  /// The coordinates of the weight's map that have another meaning for volumes.
  __device__ int32_t weight_fourth() const { return params.are_volumes ? tap_plane : at.channel; }
  __device__ int32_t weight_fifth() const {
    return params.are_volumes ? at.member * params.conv.out_channels + at.channel : at.member;
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
    const uint32_t image = line / places.tiles_of_rows;
    const auto planes = static_cast<uint32_t>(params.conv.depth.output);
    const auto place = [](uint32_t tiles, int32_t extent) {
      return static_cast<int32_t>(tiles) * extent;
    };
    return {static_cast<int32_t>(tile.member),
            place(image / planes, params.rectangle.batch),
            static_cast<int32_t>(image % planes),
            place(line % places.tiles_of_rows, params.rectangle.rows),
            place(column, params.rectangle.columns),
            place(tile.n, policy.tile_n)};
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
