// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The schedule of kernels on Hopper's warpgroup products, independent of memory layouts: its user
// provides how a stage is loaded and how a tile's sums are stored (Work, below).
//
// Plan: persistent, one block a multiprocessor, which takes every gridDim-th tile of all members.
// One thread of the first warpgroup fills a ring of stages by bulk tensor copies, without a pause
// between tiles; two warpgroups multiply. Either each a whole tile, in turns:
//
//   ring        | tile 0 ....... | tile 1 ....... | tile 2 ....... | tile 3
//   warpgroup 1 | multiplies     | stores         | multiplies     | stores
//   warpgroup 2 |                | multiplies     | stores         | multiplies
//
// The ring's stages belong to tiles in turn, so only one warpgroup has stages to multiply, and
// epilogue and stores of one tile overlap with the products of the next. A warpgroup takes its turn
// only when the other one has seen its last stage arrive: an mbarrier distinguishes phases by
// parity alone, and a wait for a stage two rounds ahead would succeed at once.
//
// Or together, each half of the same tile, where one warpgroup lacks the registers for a large
// enough tile, and for fp8: its sums keep about 14 bits on the tensor cores, so that each stage's
// (128 of k) are added up in fp32 by one warpgroup while the other multiplies.
//
// Two blocks of a cluster may take the tiles of neighbouring rows as a pair. Each loads its own x,
// and half of the weight for both by multicast, which saves reads of L2. A stage is full when both
// halves are in, and empty when the consumers of both blocks have given it back.
//
// Both operands have k contiguous, 128 bytes of it per stage, with the 128-byte swizzle. Sums stay
// in registers until they are stored (wgmma_store.cuh).
//
// Blocks start while the preceding kernel in the stream still runs, and prefetch the weights of
// their ring's first round into the L2 cache before they wait for it to end.
//
// Order of tiles: members one after another, so that a member's weights are read once and stay in
// the L2 cache for its other rows; in a member, groups of kRasterColumns tile columns, row by row,
// so that concurrent blocks share both operands.
//
// Work, for a whole launch:
//   const WgmmaGrid& grid
//   kHasHalfSteps                    whether grid.full_steps is used
//   kStoresBoxes                     whether it ever stores by bulk copies
//   prefetch_maps()                  by one thread
//   stages(tile)                     the stages of a tile in order, for one thread:
//                                    prefetch_weight(), load(x, weight, full), advance()
//   store(tile, first_m, first_n, storer, box_index, sums)   stores part of a tile
// Of pairs, `tile` and grid count both tiles as one, and load() delivers this block's half of the
// weight to both blocks.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "kernels/arch/cluster.cuh"
#include "kernels/arch/fence.cuh"
#include "kernels/arch/grid.cuh"
#include "kernels/arch/tma.cuh"
#include "kernels/arch/warp.cuh"
#include "kernels/arch/wgmma.cuh"
#include "kernels/linear/wgmma_store.cuh"

namespace wide::kernels {

/// The type that an element in memory is multiplied as.
template <class T>
struct WgmmaElement {
  using Type = T;
};
template <>
struct WgmmaElement<float> {
  using Type = arch::Tf32;
};

struct WgmmaPolicy {
  int tile_m, tile_n;
  int stages;
  bool is_together;
  bool is_pair = false;  // of blocks, in a cluster

  constexpr uint32_t blocks() const { return is_pair ? 2 : 1; }  // that share a weight
  constexpr int x_bytes() const { return tile_m * kRowBytes; }
  constexpr int weight_bytes() const { return tile_n * kRowBytes; }
  /// A warpgroup's part of a tile. Together: half the rows, or half the outputs of few rows.
  constexpr bool halves_rows() const { return is_together && tile_m > kBlockM; }
  constexpr bool halves_outputs() const { return is_together && !halves_rows(); }
  constexpr int part_m() const { return halves_rows() ? tile_m / kConsumers : tile_m; }
  constexpr int part_n() const { return halves_outputs() ? tile_n / kConsumers : tile_n; }
  constexpr int blocks_m() const { return part_m() / kBlockM; }
  constexpr int sums() const { return part_n() / 2; }  // per thread and block of rows
};

template <WgmmaPolicy policy>
struct alignas(1024) WgmmaStorage {
  char x[policy.stages][policy.x_bytes()];
  char weight[policy.stages][policy.weight_bytes()];
  char outputs[kConsumers][kStoreBytes];
  arch::Mbarrier full[policy.stages], empty[policy.stages];
  arch::Mbarrier turn[kConsumers];
};

struct WgmmaGrid {
  uint32_t tiles_m, tiles_n, count;  // per member, per member, in total
  int32_t num_steps;
  int32_t full_steps;  // the first of them; in the others, the second 64 bytes are zeros
};

struct WgmmaTileIndex {
  uint32_t member, m, n;  // tiles
};

__device__ inline WgmmaTileIndex locate_tile(const WgmmaGrid& grid, uint32_t index) {
  constexpr uint32_t kRasterColumns = 8;
  const uint32_t of_member = grid.tiles_m * grid.tiles_n;
  const uint32_t member = index / of_member, tile = index % of_member;
  const uint32_t group = tile / (kRasterColumns * grid.tiles_m);
  const uint32_t in_group = tile % (kRasterColumns * grid.tiles_m);
  const uint32_t columns = min(kRasterColumns, grid.tiles_n - group * kRasterColumns);
  return {member, in_group / columns, group * kRasterColumns + in_group % columns};
}

/// Blocks, or pairs of them, take tiles in turn.
template <WgmmaPolicy policy>
__device__ inline uint32_t first_tile() {
  return blockIdx.x / policy.blocks();
}
template <WgmmaPolicy policy>
__device__ inline uint32_t tile_stride() {
  return gridDim.x / policy.blocks();
}

template <WgmmaPolicy policy>
__device__ inline void sync_blocks() {
  if constexpr (policy.is_pair) {
    arch::cluster_sync();
  } else {
    __syncthreads();
  }
}

/// A warp gives a stage back, by as many lanes as there are blocks that load it: one to each.
template <WgmmaPolicy policy>
__device__ inline bool is_giving_lane() {
  return threadIdx.x % 32 < policy.blocks();
}
template <WgmmaPolicy policy>
__device__ inline void give_back(arch::Mbarrier* empty) {
  if constexpr (policy.is_pair) {
    arch::mbarrier_arrive_cluster(arch::cluster_address(empty, threadIdx.x % 32));
  } else {
    arch::mbarrier_arrive(empty);
  }
}

/// Prefetches the weights of the ring's first round, of as many tiles as it holds. By one thread.
template <WgmmaPolicy policy, class Work>
__device__ void prefetch_weights(const Work& work) {
  int32_t left = policy.stages;
  for (uint32_t index = first_tile<policy>(); left > 0 && index < work.grid.count;
       index += tile_stride<policy>()) {
    auto stages = work.stages(index);
    for (int32_t step = 0; left > 0 && step < work.grid.num_steps; ++step, --left) {
      stages.prefetch_weight();
      stages.advance();
    }
  }
}

/// By one thread.
template <WgmmaPolicy policy, class Work>
__device__ void produce(WgmmaStorage<policy>& s, const Work& work) {
  prefetch_weights<policy>(work);
  arch::wait_for_grid();
  Ring<policy.stages> ring(0);
  for (uint32_t index = first_tile<policy>(); index < work.grid.count;
       index += tile_stride<policy>()) {
    auto stages = work.stages(index);
    for (int32_t step = 0; step < work.grid.num_steps; ++step) {
      // In the first round the stages are empty from the start.
      arch::mbarrier_wait(&s.empty[ring.stage], ring.parity ^ 1);
      arch::Mbarrier* full = &s.full[ring.stage];
      arch::mbarrier_arrive_expect_bytes(full, policy.x_bytes() + policy.weight_bytes());
      stages.load(s.x[ring.stage], s.weight[ring.stage], full);
      stages.advance();
      ring.advance();
    }
  }
  arch::launch_dependents();
  if constexpr (policy.is_pair) {
    // The other block gives stages back in this one's shared memory, which must be there until
    // the last of them.
#pragma unroll 1
    for (int stage = 0; stage < policy.stages; ++stage) {
      arch::mbarrier_wait(&s.empty[ring.stage], ring.parity ^ 1);
      ring.advance();
    }
  }
}

/// Where a warpgroup's part of a stage begins.
template <WgmmaPolicy policy>
struct Part {
  int first_m, first_n;

  __device__ explicit Part(int consumer)
      : first_m(policy.halves_rows() ? consumer * policy.part_m() : 0),
        first_n(policy.halves_outputs() ? consumer * policy.part_n() : 0) {}
};

template <int kBlocksM, int kSums>
__device__ inline void pin(float (&sums)[kBlocksM][kSums]) {
#pragma unroll
  for (int i = 0; i < kBlocksM; ++i) arch::wgmma_pin(sums[i]);
}

/// Issues the products of one stage, as one group. If `accumulate` is false, the first overwrites.
/// Blocks of kBlockM rows of x are `x_block_bytes` apart. kBytes of each row are multiplied.
template <class T, WgmmaPolicy policy, int kBytes = kRowBytes>
__device__ inline void begin_stage(const char* x, const char* weight, bool accumulate,
                                   float (&sums)[policy.blocks_m()][policy.sums()],
                                   int x_block_bytes = kBlockM * kRowBytes) {
  const auto descriptor = [](const char* rows) {
    return arch::operand_descriptor(rows, 16, 8 * kRowBytes, arch::OperandSwizzle::bytes_128);
  };
  const uint64_t of_x = descriptor(x), of_weight = descriptor(weight);
  pin(sums);
  arch::wgmma_fence();
#pragma unroll
  for (int byte = 0; byte < kBytes; byte += kInstructionBytes) {
#pragma unroll
    for (int i = 0; i < policy.blocks_m(); ++i) {
      arch::wgmma<typename WgmmaElement<T>::Type>(
          sums[i], arch::advance_descriptor(of_x, i * x_block_bytes + byte),
          arch::advance_descriptor(of_weight, byte), accumulate || byte > 0);
    }
  }
  arch::wgmma_commit();
  pin(sums);
}

/// The products of one tile, from the ring. One stage's are in flight while the next one's are
/// issued; for fp8 those of the other warpgroup, while this one adds a stage's sums to the tile's.
/// Storage: has WgmmaStorage's x, weight, full and empty. `next_turn` is for those in turns.
template <class T, WgmmaPolicy policy, bool has_half_steps, class Storage>
__device__ inline void multiply_tile(Storage& s, Ring<policy.stages> ring, const WgmmaGrid& grid,
                                     const Part<policy>& part, arch::Mbarrier* next_turn,
                                     float (&sums)[policy.blocks_m()][policy.sums()]) {
  constexpr bool kAddsUpStages = sizeof(T) == 1;
  const bool gives = is_giving_lane<policy>();
  uint32_t previous = 0;
  if constexpr (kAddsUpStages) {
    for (float& sum : sums[0]) sum = 0;
  }
  const auto multiply = [&]<int kBytes>(int32_t step, int32_t end) {
    for (; step < end; ++step) {
      arch::mbarrier_wait(&s.full[ring.stage], ring.parity);
      const char* x = s.x[ring.stage] + part.first_m * kRowBytes;
      const char* weight = s.weight[ring.stage] + part.first_n * kRowBytes;
      if constexpr (kAddsUpStages) {
        static_assert(policy.blocks_m() == 1 && policy.is_together);
        float of_stage[1][policy.sums()];
        begin_stage<T, policy>(x, weight, false, of_stage);
        arch::wgmma_wait<0>();
        pin(of_stage);
        if (gives) give_back<policy>(&s.empty[ring.stage]);
#pragma unroll
        for (int i = 0; i < policy.sums(); ++i) sums[0][i] += of_stage[0][i];
      } else {
        if (!policy.is_together && step == grid.num_steps - 1 && gives) {
          arch::mbarrier_arrive(next_turn);
        }
        begin_stage<T, policy, kBytes>(x, weight, step > 0, sums);
        arch::wgmma_wait<1>();
        // The previous step is complete for this warp: each warp releases its stage itself.
        if (step > 0 && gives) give_back<policy>(&s.empty[previous]);
        previous = ring.stage;
      }
      ring.advance();
    }
  };
  // Two loops: a condition between a stage's products would keep them from overlapping.
  multiply.template operator()<kRowBytes>(0, has_half_steps ? grid.full_steps : grid.num_steps);
  if constexpr (has_half_steps) {
    multiply.template operator()<kRowBytes / 2>(grid.full_steps, grid.num_steps);
  }
  if constexpr (!kAddsUpStages) {
    arch::wgmma_wait<0>();
    pin(sums);
    if (gives) give_back<policy>(&s.empty[previous]);
  }
}

template <class T, WgmmaPolicy policy, class Work>
__device__ inline void consume(WgmmaStorage<policy>& s, const Work& work, int consumer) {
  const Part<policy> part(consumer);
  const Storer storer{s.outputs[consumer], 1 + consumer,
                      static_cast<int>(threadIdx.x) % kWarpgroup};
  const int32_t num_steps = work.grid.num_steps;
  // In turns every second tile, beginning with its own; together every tile.
  constexpr uint32_t kEvery = policy.is_together ? 1 : kConsumers;
  const uint32_t first = policy.is_together ? 0 : static_cast<uint32_t>(consumer);
  auto position = first * static_cast<uint32_t>(num_steps);
  uint32_t turn_parity = consumer == 0 ? 1 : 0;  // the very first turn needs no arrival
  uint32_t box_index = 0;
  arch::wait_for_grid();  // before bias and residual are read, and y is written
  for (uint32_t index = first_tile<policy>() + first * tile_stride<policy>();
       index < work.grid.count; index += kEvery * tile_stride<policy>()) {
    float sums[policy.blocks_m()][policy.sums()];
    if (!policy.is_together) arch::mbarrier_wait(&s.turn[consumer], turn_parity);
    multiply_tile<T, policy, Work::kHasHalfSteps>(s, Ring<policy.stages>(position), work.grid, part,
                                                  &s.turn[1 - consumer], sums);
    work.store(index, part.first_m, part.first_n, storer, box_index, sums);
    position += kEvery * static_cast<uint32_t>(num_steps);
    turn_parity ^= 1;
  }
  if constexpr (Work::kStoresBoxes) {
    if (storer.thread == 0) arch::wait_stores_read<0>();
  }
}

/// A whole kernel of kWgmmaThreads threads, whose dynamic shared memory is a WgmmaStorage.
template <class T, WgmmaPolicy policy, class Work>
__device__ inline void run_wgmma_block(char* shared, const Work& work) {
  static_assert(policy.is_together || !policy.is_pair);
  constexpr uint32_t kGivers =
      kWarpgroup / 32 * (policy.is_together ? kConsumers : 1) * policy.blocks();
  auto& s = *reinterpret_cast<WgmmaStorage<policy>*>(shared);
  if (threadIdx.x == 0) {
    work.prefetch_maps();
    for (int stage = 0; stage < policy.stages; ++stage) {
      arch::mbarrier_init(&s.full[stage], 1);
      arch::mbarrier_init(&s.empty[stage], kGivers);
    }
    for (arch::Mbarrier& turn : s.turn) arch::mbarrier_init(&turn, kWarpgroup / 32);
    arch::fence_mbarrier_init();
  }
  sync_blocks<policy>();
  const int warpgroup = arch::same_in_warp(static_cast<int>(threadIdx.x) / kWarpgroup);
  if (warpgroup == 0) {
    arch::shrink_registers<kProducerRegisters>();
    if (threadIdx.x < 32 && arch::elect_one()) produce<policy>(s, work);
  } else {
    arch::grow_registers<kConsumerRegisters>();
    consume<T, policy>(s, work, warpgroup - 1);
  }
}

}  // namespace wide::kernels
