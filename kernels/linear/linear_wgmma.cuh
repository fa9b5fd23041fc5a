// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Batched GEMM on Hopper's warpgroup products: y[m, i, n] = activation(sum_k x[m, i, k] * weight[i,
// n, k] + bias[i, n]) and so on (linear_epilogue.cuh), all members i in one launch, on the schedule
// of wgmma_ring.cuh.
//
// One tensor map {k, row, member} serves all members: beyond a member's rows or k there are zeros
// instead of the neighbour's elements, and no pointers are fetched.
#pragma once

#include <algorithm>
#include <limits>

#include "kernels/arch/target.cuh"
#include "kernels/common/launch.hpp"
#include "kernels/linear/linear_launch.cuh"
#include "kernels/linear/linear_wgmma_store.cuh"
#include "kernels/linear/wgmma_ring.cuh"

namespace wide::kernels {

static_assert(kWgmmaTileBytes == kRowBytes);
static_assert(kWgmmaStoreM == kBlockM && kWgmmaStoreN == kBlockN);

constexpr WgmmaPolicy policy_of(LinearWgmmaTile tile, bool is_fp8) {
  switch (tile) {
    case LinearWgmmaTile::m64n128:  // 192 KiB of stages
      return {64, 128, 8, is_fp8};
    case LinearWgmmaTile::m128n128:  // 192 KiB
      return {128, 128, 6, is_fp8};
    case LinearWgmmaTile::m128n256:  // 192 KiB
      return {128, 256, 4, true};
    case LinearWgmmaTile::m128n128x2:  // 192 KiB
      return {128, 128, 6, true, true};
    case LinearWgmmaTile::m128n256x2:  // 192 KiB
      return {128, 256, 4, true, true};
  }
  return {};
}

/// The number of this block in its pair.
template <WgmmaPolicy policy>
__device__ inline int32_t block_of_pair() {
  return policy.is_pair ? static_cast<int32_t>(arch::cluster_rank()) : 0;
}

/// The stages of a tile, along k. Of a pair's weight, each block loads its half for both.
template <class T, WgmmaPolicy policy>
struct LinearStages {
  static constexpr int32_t kWeightRows = policy.tile_n / static_cast<int32_t>(policy.blocks());
  const LinearWgmmaParams& params;
  TileAt at;
  int32_t x_member, weight_member;
  int32_t first_weight = block_of_pair<policy>() * kWeightRows;  // of the tile's
  int32_t k = 0;

  __device__ void prefetch_weight() const {
    arch::prefetch_tile(params.weight, k, at.first_n + first_weight, weight_member);
  }
  __device__ void load(char* x, char* weight, arch::Mbarrier* full) const {
    arch::load_tile(x, params.x, full, k, at.first_m, x_member);
    if constexpr (policy.is_pair) {
      constexpr uint16_t kBoth = 0b11;
      arch::load_tile_for(kBoth, weight + first_weight * kRowBytes, params.weight, full, k,
                          at.first_n + first_weight, weight_member);
    } else {
      arch::load_tile(weight, params.weight, full, k, at.first_n, weight_member);
    }
  }
  __device__ void advance() { k += kRowBytes / static_cast<int>(sizeof(T)); }
};

template <class T, class Out, WgmmaPolicy policy>
struct LinearWork {
  static constexpr bool kHasHalfSteps = false;
  static constexpr bool kStoresBoxes = kCanStoreBoxes<Out>;
  const LinearWgmmaParams& params;
  const WgmmaGrid& grid;

  __device__ TileAt tile_at(uint32_t index) const {
    const WgmmaTileIndex tile = locate_tile(grid, index);
    const auto row_tile = static_cast<int32_t>(tile.m * policy.blocks()) + block_of_pair<policy>();
    return {static_cast<int32_t>(tile.member), row_tile * policy.tile_m,
            static_cast<int32_t>(tile.n) * policy.tile_n};
  }
  __device__ void prefetch_maps() const {
    arch::prefetch_tensor_map(params.x);
    arch::prefetch_tensor_map(params.weight);
    if (params.stores_boxes) arch::prefetch_tensor_map(params.y);
  }
  __device__ LinearStages<T, policy> stages(uint32_t index) const {
    const TileAt at = tile_at(index);
    const auto own = [&](const RowStrides& strides) { return strides.member == 0 ? 0 : at.member; };
    return {params, at, own(params.linear.x_strides), own(params.linear.weight_strides)};
  }
  template <int kBlocksM, int kSums>
  __device__ void store(uint32_t index, int first_m, int first_n, const Storer& storer,
                        uint32_t& box_index, float (&sums)[kBlocksM][kSums]) const {
    TileAt at = tile_at(index);
    at.first_m += first_m, at.first_n += first_n;
    store_part(sums, [&](int m, int n, float(&block)[kBlockSums]) {
      store_block<Out>(params, {at.member, at.first_m + m, at.first_n + n}, storer, box_index,
                       block);
    });
  }
};

template <class T, class Out, LinearWgmmaTile tile_shape>
__global__ void __launch_bounds__(kWgmmaThreads, 1)
    linear_wgmma(const __grid_constant__ LinearWgmmaParams params,
                 const __grid_constant__ WgmmaGrid grid) {
  if constexpr (arch::kHasSm90a) {
    constexpr WgmmaPolicy policy = policy_of(tile_shape, sizeof(T) == 1);
    extern __shared__ __align__(1024) char shared[];
    run_wgmma_block<T, policy>(shared, LinearWork<T, Out, policy>{params, grid});
  } else {
    __trap();
  }
}

template <class T, class Out, LinearWgmmaTile tile>
cudaError_t launch_wgmma_tile(LinearWgmmaParams params, cudaStream_t stream) {
  constexpr WgmmaPolicy policy = policy_of(tile, sizeof(T) == 1);
  constexpr int kSharedBytes = sizeof(WgmmaStorage<policy>);
  constexpr int64_t kRows = policy.tile_m * int64_t{policy.blocks()};
  constexpr int64_t kTileK = kRowBytes / sizeof(T);
  static_assert(kSharedBytes <= 227 * 1024, "what a block of compute capability 9.0 has");
  constexpr int64_t kMaxTiles = std::numeric_limits<int32_t>::max();
  const LinearParams& p = params.linear;
  static_assert(kRows == tile_m(tile));
  const int64_t tiles_m = (p.m - 1) / kRows + 1, tiles_n = (p.n - 1) / policy.tile_n + 1;
  // Tiles' coordinates are 32 bits wide, including those past the end.
  if (p.k > kMaxTiles - kTileK || tiles_m * kRows > kMaxTiles ||
      tiles_n * policy.tile_n > kMaxTiles || tiles_m > kMaxTiles / tiles_n ||
      p.num_members > kMaxTiles / (tiles_m * tiles_n)) {
    return cudaErrorInvalidConfiguration;
  }
  set_output_alignment(params.linear, sizeof(Out));
  const auto num_steps = static_cast<int32_t>((p.k - 1) / kTileK + 1);
  const WgmmaGrid grid{static_cast<uint32_t>(tiles_m), static_cast<uint32_t>(tiles_n),
                       static_cast<uint32_t>(tiles_m * tiles_n * p.num_members), num_steps,
                       num_steps};
  const auto kernel = linear_wgmma<T, Out, tile>;
  const cudaError_t status = allow_shared_bytes(kernel, kSharedBytes);
  if (status != cudaSuccess) return status;
  const uint32_t at_once =
      std::max(static_cast<uint32_t>(params.num_multiprocessors) / policy.blocks(), 1u);
  return launch_clusters(kernel, policy.blocks(), std::min(grid.count, at_once) * policy.blocks(),
                         kWgmmaThreads, kSharedBytes, stream, params, grid);
}

// One per element type, each in its own file.
cudaError_t launch_linear_wgmma_16(const LinearWgmmaParams& params, Dtype dtype,
                                   LinearWgmmaTile tile, cudaStream_t stream);
cudaError_t launch_linear_wgmma_tf32(const LinearWgmmaParams& params, LinearWgmmaTile tile,
                                     cudaStream_t stream);
cudaError_t launch_linear_wgmma_fp8(const LinearWgmmaParams& params, Dtype dtype, Dtype y_dtype,
                                    LinearWgmmaTile tile, cudaStream_t stream);

}  // namespace wide::kernels
