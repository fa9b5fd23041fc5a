// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Convolution as a matrix product on Hopper's warpgroup products, channels last: pixels by output
// channels, summed over taps and channels. The schedule is linear's (wgmma_ring.cuh); here is what
// a stage is and how sums are stored.
//
// A tile's pixels are a rectangle of batch rows, columns and rows of y. Tap (r, s) multiplies the
// same rectangle of x, shifted by the tap: one box of a tensor map {channels, batch, columns, rows,
// member}, 128 bytes of channels wide. Its pixels arrive as rows of shared memory, as in linear,
// with zeros for padding, for the excess of a ragged tile, and past the end of a member's channels:
// no pixel's place is computed, and no neighbour is read. Tiles with a halo load x once for all
// taps (conv_wgmma_halo.cuh). Volumes have one axis more than maps: there all members' channels are
// one axis, and a tile is in one plane of y.
#pragma once

#include <algorithm>
#include <limits>

#include "kernels/arch/target.cuh"
#include "kernels/conv/conv_wgmma_halo.cuh"
#include "kernels/linear/linear_launch.cuh"

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
    case ConvWgmmaTile::h256c64:  // 120 KiB of x, 64 KiB of weights
      return {256, 64, 8, true};
    case ConvWgmmaTile::h256c128:  // the same
      return {256, 128, 4, true};
  }
  return {};
}

template <class T, ConvWgmmaTile tile>
__global__ void __launch_bounds__(kWgmmaThreads, 1)
    conv_wgmma(const __grid_constant__ ConvWgmmaParams params,
               const __grid_constant__ ConvWgmmaPlaces places,
               const __grid_constant__ WgmmaGrid grid) {
  if constexpr (arch::kHasSm90a) {
    constexpr WgmmaPolicy policy = policy_of(tile);
    extern __shared__ __align__(1024) char shared[];
    const ConvWork<T, policy> work{params, places, grid};
    if constexpr (has_halo(tile)) {
      run_halo_block<T, policy>(shared, work);
    } else {
      run_wgmma_block<T, policy>(shared, work);
    }
  } else {
    __trap();
  }
}

template <class T, ConvWgmmaTile tile>
cudaError_t launch_conv_wgmma_tile(const ConvWgmmaParams& params, cudaStream_t stream) {
  constexpr WgmmaPolicy policy = policy_of(tile);
  constexpr int kSharedBytes = static_cast<int>(has_halo(tile) ? sizeof(ConvHaloStorage<policy>)
                                                               : sizeof(WgmmaStorage<policy>));
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
  const int64_t of_batch = tiles(conv.batch, of.batch), planes = conv.depth.output;
  const int64_t of_channels = tiles(conv.out_channels, policy.tile_n);
  const int64_t chunks = tiles(conv.in_channels, kChannels);
  const int64_t taps_of_plane = int64_t{conv.kernel.height} * conv.kernel.width;
  // Each factor is checked before it is used, so that no product can overflow. Coordinates past the
  // end have 32 bits, too.
  const bool fits_halo = of.batch == kConvHaloBatch && of.columns >= kHaloColumns &&
                         int64_t{params.box.height} * params.box.width <= kConvHaloPositions;
  if (of.columns * of.rows * of.batch != policy.tile_m || (has_halo(tile) && !fits_halo) ||
      of_columns > kMost / of_rows || of_batch > kMost / (of_columns * of_rows) ||
      planes > kMost / (of_columns * of_rows * of_batch) ||
      of_channels > kMost / (of_columns * of_rows * of_batch * planes) ||
      conv.num_members > kMost / (of_columns * of_rows * of_batch * planes * of_channels) ||
      conv.depth.kernel > kMost / chunks || taps_of_plane > kMost / (chunks * conv.depth.kernel) ||
      of_channels * policy.tile_n > kMost || chunks * kChannels > kMost ||
      of_batch * of.batch > kMost) {
    return cudaErrorInvalidConfiguration;
  }
  // Half a row of channels is enough of a last chunk that has no more.
  const bool ends_in_half = conv.in_channels - (chunks - 1) * kChannels <= kChannels / 2;
  const int64_t taps = taps_of_plane * conv.depth.kernel;
  const int64_t of_pixels = of_columns * of_rows * of_batch * planes;
  const WgmmaGrid grid{static_cast<uint32_t>(of_pixels), static_cast<uint32_t>(of_channels),
                       static_cast<uint32_t>(of_pixels * of_channels * conv.num_members),
                       static_cast<int32_t>(taps * chunks),
                       static_cast<int32_t>(taps * (ends_in_half ? chunks - 1 : chunks))};
  const ConvWgmmaPlaces places =
      conv_wgmma_places(params, static_cast<uint32_t>(of_columns), static_cast<uint32_t>(of_rows),
                        static_cast<uint32_t>(chunks * conv.depth.kernel), sizeof(T));
  const auto kernel = conv_wgmma<T, tile>;
  const cudaError_t status = allow_shared_bytes(kernel, kSharedBytes);
  if (status != cudaSuccess) return status;
  const uint32_t blocks = std::min(grid.count, static_cast<uint32_t>(params.num_multiprocessors));
  return launch_kernel(kernel, blocks, kWgmmaThreads, kSharedBytes, stream, params, places, grid);
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
    case ConvWgmmaTile::h256c64:
      return launch_conv_wgmma_tile<T, ConvWgmmaTile::h256c64>(params, stream);
    case ConvWgmmaTile::h256c128:
      return launch_conv_wgmma_tile<T, ConvWgmmaTile::h256c128>(params, stream);
  }
  return cudaErrorInvalidValue;
}

// Each in its own file.
cudaError_t launch_conv_wgmma_bf16(const ConvWgmmaParams& params, ConvWgmmaTile tile,
                                   cudaStream_t stream);
cudaError_t launch_conv_wgmma_tf32(const ConvWgmmaParams& params, ConvWgmmaTile tile,
                                   cudaStream_t stream);

}  // namespace wide::kernels
