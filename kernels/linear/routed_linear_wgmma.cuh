// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Routed rows on Hopper's warpgroup products: tiles of up to 128 rows of a slot, by one block a
// multiprocessor that takes every gridDim-th tile. wgmma_ring.cuh's ring and its products, which
// two warpgroups share; another producer.
//
//   weight   boxes of neighbouring rows, by bulk tensor copies
//   x        rows that lie anywhere: each warp of the first warpgroup finds a quarter of the tile's
//            and copies them 16 bytes a lane, to the places where a box would have them
//   y        by rows, as the table of the tile says
//
// Rows by bulk copies would be boxes of one row, 128 instructions a stage, each at a place within
// the pattern of eight rows that a box's swizzle is described for.
//
// Copies of threads are writes of the generic proxy, products read by the async proxy, and only a
// thread can order the two: one that knows that the copies are complete. cp.async's own arrival on
// an mbarrier would leave that to the readers, a fence before the products of every stage. Here the
// copying warps wait for their copies kLag stages later, fence and arrive; nobody waits for them.
//
// Which tiles exist is known on the device only. The producers search, and hand each tile to the
// consumers through a ring of tables, so that one is stored while the next is loaded. A warpgroup
// whose half of the rows is empty multiplies nothing: members of few rows cost 64 rows' products.
#pragma once

#include "kernels/arch/cp_async.cuh"
#include "kernels/arch/target.cuh"
#include "kernels/linear/routed_linear_launch.cuh"
#include "kernels/linear/routed_linear_wgmma.hpp"
#include "kernels/linear/wgmma_ring.cuh"

namespace wide::kernels {

static_assert(kWgmmaTileBytes == kRowBytes);
static_assert(tile_m(LinearWgmmaTile::m128n256) == kRoutedWgmmaTile &&
              tile_m(LinearWgmmaTile::m128n128) == kRoutedWgmmaTile);

constexpr WgmmaPolicy routed_policy_of(LinearWgmmaTile tile) {  // 192 KiB of stages
  return {kRoutedWgmmaTile, static_cast<int>(tile_n(tile)),
          tile == LinearWgmmaTile::m128n256 ? 4 : 6, true};
}

/// Per thread: the addresses of the rows that a thread copies stay in registers.
constexpr int kCopyRegisters = 40, kMultiplyRegisters = 232;
constexpr int kLag = 2;     // stages that a warp copies before it waits for the first
constexpr int kTables = 2;  // of tiles that are loaded, or stored
constexpr int kProducerWarps = kWarpgroup / 32, kConsumerWarps = kConsumers * kWarpgroup / 32;

/// A tile, as producers hand it over.
struct RoutedWgmmaTable {
  int32_t y[kRoutedWgmmaTile];  ///< of all rows, or RoutedTable::kNone
  float gates[kRoutedWgmmaTile];
  int32_t member;  ///< num_members: the rows become zeros
  int32_t first_n;
  int32_t count;  ///< rows; 0: there are no more tiles
};

template <WgmmaPolicy policy>
struct alignas(1024) RoutedWgmmaStorage {
  char x[policy.stages][policy.x_bytes()];
  char weight[policy.stages][policy.weight_bytes()];
  char outputs[kConsumers][kStoreBytes];
  RoutedWgmmaTable tables[kTables];
  arch::Mbarrier full[policy.stages], empty[policy.stages];
  arch::Mbarrier table_full[kTables], table_empty[kTables];
};

/// What a lane copies of each stage: one chunk of every fourth of its warp's 32 rows. Rows that
/// there are not become zeros.
template <class T>
struct RoutedCopies {
  static constexpr int kStep = 32 / kChunks, kCount = 32 / kStep;
  static constexpr int kVector = kChunkBytes / static_cast<int>(sizeof(T));
  const T* from[kCount];
  uint32_t existing = 0;

  /// `row`: this lane's, of the 32.
  __device__ RoutedCopies(const LinearParams& params, int32_t row) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const auto* chunk = static_cast<const T*>(params.x) + lane % kChunks * kVector;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int32_t place = __shfl_sync(0xffffffffu, row, i * kStep + lane / kChunks);
      const bool exists = place != RoutedTable::kNone;
      from[i] = exists ? chunk + place * params.x_strides.row : chunk;
      existing |= static_cast<uint32_t>(exists) << i;
    }
  }

  /// Copies to the warp's rows of a stage and moves on. k_left of k exist.
  __device__ void load(char* rows, int64_t k_left) {
    const int lane = static_cast<int>(threadIdx.x) % 32, chunk = lane % kChunks;
    const auto left = static_cast<int>(min(k_left, static_cast<int64_t>(kChunks * kVector)));
    const int bytes = min(max(left - chunk * kVector, 0), kVector) * static_cast<int>(sizeof(T));
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const bool exists = (existing >> i & 1u) != 0;
      arch::cp_async_16(rows + chunk_offset<1>(i * kStep + lane / kChunks, chunk), from[i],
                        exists ? bytes : 0);
      from[i] += kChunks * kVector;
    }
  }
};

/// The stages that a warp has copied and not yet handed over.
template <WgmmaPolicy policy>
struct RoutedPending {
  RoutedWgmmaStorage<policy>& s;
  Ring<policy.stages> oldest{0};
  int count = 0;

  __device__ void hand_over() {
    if (threadIdx.x % 32 == 0) arch::mbarrier_arrive(&s.full[oldest.stage]);
    oldest.advance();
  }
  __device__ void add() {
    arch::cp_async_commit();
    if (count < kLag) {
      ++count;
      return;
    }
    arch::cp_async_wait<kLag>();
    arch::fence_proxy_async();
    __syncwarp();
    hand_over();
  }
  __device__ void drain() {
    if (count == 0) return;
    arch::cp_async_wait<0>();
    arch::fence_proxy_async();
    __syncwarp();
#pragma unroll 1
    for (; count > 0; --count) hand_over();
  }
};

/// Hands a tile over: each thread its row, one what the rows have in common.
template <WgmmaPolicy policy>
__device__ inline void hand_over_table(RoutedWgmmaStorage<policy>& s, Ring<kTables>& at,
                                       const RoutedPlaces& row, const RoutedBlock& block,
                                       int32_t first_n) {
  RoutedWgmmaTable& table = s.tables[at.stage];
  arch::mbarrier_wait(&s.table_empty[at.stage], at.parity ^ 1);
  table.y[threadIdx.x] = row.y;
  table.gates[threadIdx.x] = row.gate;
  if (threadIdx.x == 0) {
    table.member = static_cast<int32_t>(block.member);
    table.first_n = first_n;
    table.count = block.count;
  }
  __syncwarp();
  if (threadIdx.x % 32 == 0) arch::mbarrier_arrive(&s.table_full[at.stage]);
  at.advance();
}

/// By the first warpgroup, each warp for itself.
template <class T, WgmmaPolicy policy>
__device__ inline void produce_routed(RoutedWgmmaStorage<policy>& s,
                                      const RoutedWgmmaParams& params, const WgmmaGrid& grid) {
  constexpr int kTileK = kRowBytes / static_cast<int>(sizeof(T));
  const LinearParams& linear = params.routed.linear;
  const int warp = arch::same_in_warp(static_cast<int>(threadIdx.x) / 32);
  Ring<policy.stages> ring(0);
  Ring<kTables> table(0);
  RoutedPending<policy> pending{s};
  for (uint32_t index = blockIdx.x;; index += gridDim.x) {
    const bool is_end = index >= grid.count;
    RoutedPlace place{0, 0};
    RoutedBlock block{linear.num_members, 0, 0};
    if (!is_end) {
      place = locate_block(index, grid.tiles_m, grid.tiles_n);
      block = locate_rows(params.routed, place.slot, kRoutedWgmmaTile);
      if (block.count == 0) continue;
    }
    const auto first_n = static_cast<int32_t>(place.n) * policy.tile_n;
    const RoutedPlaces row = find_row(params.routed, block, static_cast<int32_t>(threadIdx.x));
    pending.drain();  // consumers may need these stages before they give a table back
    hand_over_table<policy>(s, table, row, block, first_n);
    if (is_end) return;
    if (block.member == linear.num_members) continue;
    RoutedCopies<T> copies(linear, row.x);
    const auto weight_member =
        static_cast<int32_t>(linear.weight_strides.member == 0 ? 0 : block.member);
    const bool is_multiplied = warp * 32 / policy.part_m() * policy.part_m() < block.count;
    for (int32_t step = 0; step < grid.num_steps; ++step) {
      const int32_t k = step * kTileK;
      arch::mbarrier_wait(&s.empty[ring.stage], ring.parity ^ 1);
      if (threadIdx.x == 0) {
        arch::mbarrier_arrive_expect_bytes(&s.full[ring.stage], policy.weight_bytes());
        arch::load_tile(s.weight[ring.stage], params.weight, &s.full[ring.stage], k, first_n,
                        weight_member);
      }
      if (is_multiplied) copies.load(s.x[ring.stage] + warp * 32 * kRowBytes, linear.k - k);
      pending.add();
      ring.advance();
    }
  }
}

/// Gives the stages of a tile back whose rows are all the other warpgroup's.
template <WgmmaPolicy policy>
__device__ inline void pass_tile(RoutedWgmmaStorage<policy>& s, Ring<policy.stages> ring,
                                 int32_t num_steps) {
  for (int32_t step = 0; step < num_steps; ++step) {
    arch::mbarrier_wait(&s.full[ring.stage], ring.parity);
    if (threadIdx.x % 32 == 0) arch::mbarrier_arrive(&s.empty[ring.stage]);
    ring.advance();
  }
}

/// Stores the half of a tile whose rows begin at first_m.
template <class T, int kSums>
__device__ inline void store_routed(const RoutedLinearParams& params, const RoutedWgmmaTable& table,
                                    int first_m, const Storer& storer, float (&sums)[1][kSums]) {
  const LinearParams& linear = params.linear;
  store_part(sums, [&](int, int n, float(&block)[kBlockSums]) {
    const int32_t first_n = table.first_n + n;
    if (first_n >= linear.n) return;  // all of the warpgroup
    const RoutedDestination<T> to{
        tile_destination<T>(linear, table.member, 0, first_n, kBlockM, kBlockN), table.y + first_m,
        params.gates == nullptr ? nullptr : table.gates + first_m};
    store_exchanged<false>(storer, block, [&](const auto& place) {
      store_placed_sums<kBlockM, kBlockN, kWarpgroup>(to, storer.thread, place);
    });
  });
}

template <class T, WgmmaPolicy policy>
__device__ inline void consume_routed(RoutedWgmmaStorage<policy>& s,
                                      const RoutedWgmmaParams& params, const WgmmaGrid& grid,
                                      int consumer) {
  static_assert(policy.halves_rows() && policy.blocks_m() == 1);
  const LinearParams& linear = params.routed.linear;
  const Part<policy> part(consumer);
  const Storer storer{s.outputs[consumer], 1 + consumer,
                      static_cast<int>(threadIdx.x) % kWarpgroup};
  uint32_t position = 0;
  for (Ring<kTables> at(0);; at.advance()) {
    arch::mbarrier_wait(&s.table_full[at.stage], at.parity);
    const RoutedWgmmaTable& table = s.tables[at.stage];
    const int count = arch::same_in_warp(table.count);
    if (count == 0) return;
    const int rows = min(count - part.first_m, policy.part_m());
    if (arch::same_in_warp(table.member) == static_cast<int32_t>(linear.num_members)) {
      store_zeros<T, kWarpgroup, policy.tile_n>(linear, table.y + part.first_m, rows, table.first_n,
                                                storer.thread);
    } else {
      const Ring<policy.stages> ring(position);
      position += static_cast<uint32_t>(grid.num_steps);
      if (rows > 0) {
        float sums[1][policy.sums()];
        multiply_tile<T, policy, false>(s, ring, grid, part, nullptr, sums);
        store_routed<T>(params.routed, table, part.first_m, storer, sums);
      } else {
        pass_tile<policy>(s, ring, grid.num_steps);
      }
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0) arch::mbarrier_arrive(&s.table_empty[at.stage]);
  }
}

template <class T, LinearWgmmaTile tile_shape>
__global__ void __launch_bounds__(kWgmmaThreads, 1)
    routed_linear_wgmma(const __grid_constant__ RoutedWgmmaParams params,
                        const __grid_constant__ WgmmaGrid grid) {
  if constexpr (arch::kHasSm90a) {
    constexpr WgmmaPolicy policy = routed_policy_of(tile_shape);
    extern __shared__ __align__(1024) char shared[];
    auto& s = *reinterpret_cast<RoutedWgmmaStorage<policy>*>(shared);
    if (threadIdx.x == 0) {
      arch::prefetch_tensor_map(params.weight);
      for (int stage = 0; stage < policy.stages; ++stage) {
        arch::mbarrier_init(&s.full[stage], 1 + kProducerWarps);
        arch::mbarrier_init(&s.empty[stage], kConsumerWarps);
      }
      for (int table = 0; table < kTables; ++table) {
        arch::mbarrier_init(&s.table_full[table], kProducerWarps);
        arch::mbarrier_init(&s.table_empty[table], kConsumerWarps);
      }
      arch::fence_mbarrier_init();
    }
    __syncthreads();
    arch::wait_for_grid();
    const int warpgroup = arch::same_in_warp(static_cast<int>(threadIdx.x) / kWarpgroup);
    if (warpgroup == 0) {
      arch::shrink_registers<kCopyRegisters>();
      produce_routed<T>(s, params, grid);
      arch::launch_dependents();
    } else {
      arch::grow_registers<kMultiplyRegisters>();
      consume_routed<T>(s, params, grid, warpgroup - 1);
    }
  } else {
    __trap();
  }
}

}  // namespace wide::kernels
