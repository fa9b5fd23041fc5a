// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the routed GEMMs have in common. A kernel is linear's tile between two tables in shared
// memory, of the rows that it reads and of those that it writes; rows are gathered and scattered on
// their way, never copied.
#pragma once

#include "kernels/arch/grid.cuh"
#include "kernels/linear/linear_launch.cuh"
#include "kernels/linear/routed_linear.hpp"
#include "kernels/linear/routed_linear_rows.cuh"

namespace wide::kernels {

/// A block's slot and its tile of outputs.
struct RoutedPlace {
  uint32_t slot, n;
};

/// Neighbours have the same outputs of eight slots in turn. Slots of one member share the rows of
/// its weight then, and the rows of x of all eight, at most 512 or (wgmma) 1024, remain in the L2
/// cache until the last outputs. Outputs first would read a weight that is larger than the cache
/// again for every slot of its member; slots first, all of x again for every tile of outputs.
__device__ inline RoutedPlace locate_block(uint32_t index, uint32_t num_slots, uint32_t tiles_n) {
  const uint32_t group = index / (kRoutedGroup * tiles_n);
  const uint32_t in_group = index % (kRoutedGroup * tiles_n);
  const uint32_t first = group * kRoutedGroup, size = min(num_slots - first, kRoutedGroup);
  return {first + in_group % size, in_group / size};
}

/// Zeros for `count` rows of no member at `places`, by threads 0 to kThreads - 1.
template <class T, int kThreads, int64_t kColumns>
__device__ inline void store_zeros(const LinearParams& params, const int32_t* places, int count,
                                   int64_t first_n, int thread) {
  constexpr int kGroups = static_cast<int>(kColumns) / kColumnGroup;
  const auto columns = static_cast<int>(min(params.n - first_n, kColumns));
  const float zeros[kColumnGroup] = {};
#pragma unroll 1
  for (int index = thread; index < count * kGroups; index += kThreads) {
    const int32_t row = places[index / kGroups];
    const int column = index % kGroups * kColumnGroup;
    const int left = min(columns - column, kColumnGroup);
    if (row == RoutedTable::kNone || left <= 0) continue;
    T* y = static_cast<T*>(params.y) + row * params.y_strides.row + first_n + column;
    if (left == kColumnGroup && params.y_is_aligned) {
      store_four(y, zeros);
    } else {
      store_some(y, left, zeros);
    }
  }
}

/// Calls compute_short or compute_tall with the block's member, rows and first output.
template <class T, int kThreads, class Short, class Tall>
__device__ inline void compute_routed_tile(const RoutedLinearParams& params, uint32_t num_slots,
                                           uint32_t tiles_n, RoutedTable& table,
                                           Short compute_short, Tall compute_tall) {
  static_assert(kThreads >= kRoutedTile, "a thread finds a row");
  const RoutedPlace place = locate_block(blockIdx.x, num_slots, tiles_n);
  const int64_t first_n = place.n * kRoutedTileN;
  const RoutedBlock block = locate_rows(params, place.slot, kRoutedTile);
  if (block.count == 0) return;
  find_rows(params, block, table);
  __syncthreads();
  if (block.member == params.linear.num_members) {
    return store_zeros<T, kThreads, kRoutedTileN>(params.linear, table.y, block.count, first_n,
                                                  static_cast<int>(threadIdx.x));
  }
  const RoutedRows rows{table, params.gates != nullptr};
  if (block.count <= kRoutedShortTile) {
    compute_short(block.member, first_n, rows);
  } else {
    compute_tall(block.member, first_n, rows);
  }
}

/// Starts kernel(params, num_slots, tiles_n); `tile_bytes` of shared memory precede the table.
/// Params: RoutedLinearParams and a kernel's additions.
template <class Kernel, class Params>
cudaError_t launch_routed(Kernel* kernel, Params params, int64_t element_bytes, int threads,
                          int tile_bytes, cudaStream_t stream) {
  LinearParams& linear = params.linear;
  if (linear.m == 0 || linear.n == 0) return cudaSuccess;
  set_alignment(linear, element_bytes);
  const int64_t num_slots = params.member < 0
                                ? routed_slots(linear.m, linear.num_members, kRoutedTile)
                                : (linear.m - 1) / kRoutedTile + 1;
  const int64_t tiles_n = (linear.n - 1) / kRoutedTileN + 1;
  const int64_t blocks = block_product({num_slots, tiles_n});
  if (blocks > kMaxGridBlocks || block_product({kRoutedGroup, tiles_n}) > kMaxGridBlocks) {
    return cudaErrorInvalidConfiguration;
  }
  const int shared_bytes = tile_bytes + static_cast<int>(sizeof(RoutedTable));
  if (const cudaError_t status = allow_shared_bytes(kernel, shared_bytes); status != cudaSuccess) {
    return status;
  }
  return launch_kernel(kernel, static_cast<unsigned>(blocks), threads,
                       static_cast<size_t>(shared_bytes), stream, params,
                       static_cast<uint32_t>(num_slots), static_cast<uint32_t>(tiles_n));
}

}  // namespace wide::kernels
