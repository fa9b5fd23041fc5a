// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Convolution as a matrix product on Hopper's warpgroup products, channels last: pixels by output
// channels, summed over taps and channels. The schedule is linear's (wgmma_ring.cuh); here is what
// a stage is and where its sums go.
//
// A tile's pixels are a rectangle of batch rows, columns and rows of y. What tap (r, s) multiplies
// them by is the same rectangle of x, moved by the tap: one box of a tensor map {channels, batch,
// columns, rows, member}, 128 bytes of channels wide. Its pixels arrive as rows of shared memory,
// as linear's do, with zeros for padding, for what a ragged tile has too many, and for the end of a
// member's channels: no pixel's place is computed, and nothing of a neighbour is read.
#pragma once

#include <algorithm>
#include <limits>

#include "kernels/arch/target.cuh"
#include "kernels/conv/conv_wgmma.hpp"
#include "kernels/conv/conv_wgmma_store.cuh"
#include "kernels/linear/linear_launch.cuh"
#include "kernels/linear/wgmma_ring.cuh"

namespace wide::kernels {

static_assert(kConvWgmmaTileBytes == kRowBytes);
static_assert(kConvWgmmaStorePixels == kBlockM && kConvWgmmaStoreChannels == kBlockN);

constexpr WgmmaPolicy policy_of(ConvWgmmaTile tile) {
  switch (tile) {
    case ConvWgmmaTile::p128c64:  // 192 KiB of stages
      return {128, 64, 8, false};
    case ConvWgmmaTile::p256c64:  // 160 KiB
      return {256, 64, 4, true};
    case ConvWgmmaTile::p128c128:  // 192 KiB
      return {128, 128, 6, false};
    case ConvWgmmaTile::p256c128:  // 192 KiB
      return {256, 128, 4, true};
  }
  return {};
}

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
  __device__ void load(char* x, char* weight, arch::Mbarrier* full) const {
    arch::load_tile(x, params.x, full, channel, at.batch, column, row, x_member);
    arch::load_tile(weight, params.weight, full, channel, tap_column, tap_row, at.channel,
                    at.member);
  }
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

template <class T, ConvWgmmaTile tile>
__global__ void __launch_bounds__(kWgmmaThreads, 1)
    conv_wgmma(const __grid_constant__ ConvWgmmaParams params,
               const __grid_constant__ ConvWgmmaPlaces places,
               const __grid_constant__ WgmmaGrid grid) {
  if constexpr (arch::kHasSm90a) {
    constexpr WgmmaPolicy policy = policy_of(tile);
    extern __shared__ __align__(1024) char shared[];
    run_wgmma_block<T, policy>(shared, ConvWork<T, policy>{params, places, grid});
  } else {
    __trap();
  }
}

template <class T, ConvWgmmaTile tile>
cudaError_t launch_conv_wgmma_tile(const ConvWgmmaParams& params, cudaStream_t stream) {
  constexpr WgmmaPolicy policy = policy_of(tile);
  constexpr int kSharedBytes = sizeof(WgmmaStorage<policy>);
  constexpr int64_t kChannels = kRowBytes / sizeof(T);
  static_assert(kSharedBytes <= 227 * 1024, "what a block of compute capability 9.0 has");
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const ConvParams& conv = params.conv;
  const ConvRectangle& of = params.rectangle;
  const auto tiles = [](int64_t extent, int64_t tile_extent) {
    return (extent - 1) / tile_extent + 1;
  };
  const int64_t of_columns = tiles(conv.output.width, of.columns);
  const int64_t of_rows = tiles(conv.output.height, of.rows);
  const int64_t of_batch = tiles(conv.batch, of.batch);
  const int64_t of_channels = tiles(conv.out_channels, policy.tile_n);
  const int64_t chunks = tiles(conv.in_channels, kChannels);
  const int64_t taps = int64_t{conv.kernel.height} * conv.kernel.width;
  // Each factor is checked before it is used, so that no product can overflow. What lies past the
  // end has 32-bit coordinates, too.
  if (of.columns * of.rows * of.batch != policy.tile_m || of_columns > kMost / of_rows ||
      of_batch > kMost / (of_columns * of_rows) ||
      of_channels > kMost / (of_columns * of_rows * of_batch) ||
      conv.num_members > kMost / (of_columns * of_rows * of_batch * of_channels) ||
      taps > kMost / chunks || of_channels * policy.tile_n > kMost || chunks * kChannels > kMost ||
      of_batch * of.batch > kMost) {
    return cudaErrorInvalidConfiguration;
  }
  const WgmmaGrid grid{
      static_cast<uint32_t>(of_columns * of_rows * of_batch), static_cast<uint32_t>(of_channels),
      static_cast<uint32_t>(of_columns * of_rows * of_batch * of_channels * conv.num_members),
      static_cast<int32_t>(taps * chunks)};
  const ConvWgmmaPlaces places = conv_wgmma_places(params, static_cast<uint32_t>(of_columns),
                                                   static_cast<uint32_t>(of_rows), sizeof(T));
  const auto kernel = conv_wgmma<T, tile>;
  const cudaError_t status = allow_shared_bytes(kernel, kSharedBytes);
  if (status != cudaSuccess) return status;
  const uint32_t blocks = std::min(grid.count, static_cast<uint32_t>(params.num_multiprocessors));
  return launch_overlapping(kernel, blocks, kWgmmaThreads, kSharedBytes, stream, params, places,
                            grid);
}

template <class T>
cudaError_t launch_conv_wgmma_type(const ConvWgmmaParams& params, ConvWgmmaTile tile,
                                   cudaStream_t stream) {
  switch (tile) {
    case ConvWgmmaTile::p128c64:
      return launch_conv_wgmma_tile<T, ConvWgmmaTile::p128c64>(params, stream);
    case ConvWgmmaTile::p256c64:
      return launch_conv_wgmma_tile<T, ConvWgmmaTile::p256c64>(params, stream);
    case ConvWgmmaTile::p128c128:
      return launch_conv_wgmma_tile<T, ConvWgmmaTile::p128c128>(params, stream);
    case ConvWgmmaTile::p256c128:
      return launch_conv_wgmma_tile<T, ConvWgmmaTile::p256c128>(params, stream);
  }
  return cudaErrorInvalidValue;
}

// In files of their own.
cudaError_t launch_conv_wgmma_bf16(const ConvWgmmaParams& params, ConvWgmmaTile tile,
                                   cudaStream_t stream);
cudaError_t launch_conv_wgmma_tf32(const ConvWgmmaParams& params, ConvWgmmaTile tile,
                                   cudaStream_t stream);

}  // namespace wide::kernels
