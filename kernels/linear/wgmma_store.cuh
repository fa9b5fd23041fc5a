// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Stores a warpgroup's sums as outputs, 64 x 64 at a time, via shared memory in one of two ways.
//
// As boxes: each lane finishes its sums in registers, rounds them to 16 bits and writes them as
// matrices; one thread has the box stored by the tensor memory accelerator, which clips what is
// beyond the member's rows and outputs, of which there must be whole 16 bytes. Two boxes alternate,
// so that one is written while the other is read. A warp has its scheduler to itself here, and
// every instruction is repeated per register: decisions are made once per box, all loads are issued
// before any is waited for, and only short code runs here at all.
//
// As rows: the fp32 sums are exchanged, so that lanes finish and store neighbouring outputs. For
// what boxes cannot do: outputs of 32 bits or any alignment, scales of each output, and a bias or
// residual of a partial box.
#pragma once

#include "kernels/arch/barrier.cuh"
#include "kernels/arch/fence.cuh"
#include "kernels/arch/shared.cuh"
#include "kernels/arch/tma.cuh"
#include "kernels/common/warpgroup.cuh"
#include "kernels/linear/linear_tile.cuh"

namespace wide::kernels {

constexpr int kStoreBytes = kBlockM * kBlockN * 4;  // of shared memory: fp32 sums, or two boxes
constexpr int kBoxBytes = kStoreBytes / 2;

/// Storing by boxes exists for 16-bit outputs only.
template <class Out>
inline constexpr bool kCanStoreBoxes = sizeof(Out) == 2;

/// The storing warpgroup, with its memory and its named barrier.
struct Storer {
  char* memory;  ///< kStoreBytes, aligned to 1024
  int barrier;
  int thread;  ///< in the warpgroup

  __device__ void sync() const { arch::named_barrier_sync(barrier, kWarpgroup); }
};

/// Whether a box's sums are finished in registers.
template <class Out>
__device__ inline bool is_short(const Destination<Out>& to) {
  const bool adds = to.bias != nullptr || to.residual != nullptr;
  return to.scale == nullptr && (!adds || (to.epilogue_is_aligned && to.num_columns >= kBlockN));
}

/// Position of a lane's sums: in every block of eight outputs two neighbours of row l / 4 and two
/// of the row eight below. Two 16-bit neighbours are a word.
struct LaneAt {
  int row, column;
  __device__ explicit LaneAt(int thread)
      : row(thread / 32 * 16 + thread % 32 / 4), column(thread % 4 * 2) {}
};

/// What is added to them, as in memory; words of absent operands are unset.
struct LaneAddends {
  uint32_t bias[kColumnBlocks], residual[2][kColumnBlocks];
};

/// Rows: has(row), whether the box's row exists, and residual(row), its offset in to.residual.
template <class Out, class Rows>
__device__ inline void load_addends(const Destination<Out>& to, const Rows& rows, const LaneAt& at,
                                    LaneAddends& addends) {
  const auto load = [](const Out* from, uint32_t(&words)[kColumnBlocks]) {
#pragma unroll
    for (int block = 0; block < kColumnBlocks; ++block) {
      words[block] = *reinterpret_cast<const uint32_t*>(from + 8 * block);
    }
  };
  if (to.bias != nullptr) load(to.bias + at.column, addends.bias);
  if (to.residual == nullptr) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = at.row + 8 * half;
    if (!rows.has(row)) continue;
    load(to.residual + rows.residual(row) + at.column, addends.residual[half]);
  }
}

/// Functions of dozens of instructions are instantiated for a few sums only, in the first
/// registers: the others move up.
template <Activation kActivation>
__device__ inline void activate_in_turn(float (&sums)[kBlockSums]) {
  constexpr int kAtOnce = 8;
#pragma unroll 1
  for (int turn = 0; turn < kBlockSums / kAtOnce; ++turn) {
    float done[kAtOnce];
#pragma unroll
    for (int e = 0; e < kAtOnce; ++e) done[e] = activate<kActivation>(sums[e]);
#pragma unroll
    for (int i = 0; i < kBlockSums - kAtOnce; ++i) sums[i] = sums[i + kAtOnce];
#pragma unroll
    for (int e = 0; e < kAtOnce; ++e) sums[kBlockSums - kAtOnce + e] = done[e];
  }
}

/// finish_run() for all of a lane's sums.
template <class Out>
__device__ inline void finish_sums(const Destination<Out>& to, const LaneAddends& addends,
                                   float (&sums)[kBlockSums]) {
  const auto add = [&](int half, const uint32_t(&words)[kColumnBlocks]) {
#pragma unroll
    for (int block = 0; block < kColumnBlocks; ++block) {
      const auto* pair = reinterpret_cast<const Out*>(&words[block]);
      sums[4 * block + 2 * half] += to_float(pair[0]);
      sums[4 * block + 2 * half + 1] += to_float(pair[1]);
    }
  };
  const auto add_residual = [&] {
    add(0, addends.residual[0]);
    add(1, addends.residual[1]);
  };
#pragma unroll
  for (float& sum : sums) sum *= to.factor;
  if (to.bias != nullptr) {
    add(0, addends.bias);
    add(1, addends.bias);
  }
  if (to.residual != nullptr && to.residual_is_activated) add_residual();
  with_activation(to.activation, [&]<Activation fixed>() {
    if constexpr (fixed == Activation::relu) {
#pragma unroll
      for (float& sum : sums) sum = activate<fixed>(sum);
    } else if constexpr (fixed != Activation::none) {
      activate_in_turn<fixed>(sums);
    }
  });
  if (to.residual != nullptr && !to.residual_is_activated) add_residual();
}

/// `box_index` counts the warpgroup's boxes, so that the two alternate. One thread calls put(box).
template <class Out, class Rows, class Put>
__device__ inline void store_box(const Destination<Out>& to, const Rows& rows, const Storer& storer,
                                 uint32_t box_index, float (&sums)[kBlockSums], const Put& put) {
  char* box = storer.memory + box_index % 2 * kBoxBytes;
  LaneAddends addends;
  load_addends(to, rows, LaneAt(storer.thread), addends);
  if (storer.thread == 0) arch::wait_stores_read<1>();
  storer.sync();
  finish_sums(to, addends, sums);
  write_box<Out>(box, storer.thread, sums);
  arch::fence_proxy_async();
  storer.sync();
  if (storer.thread == 0) {
    put(box);
    arch::commit_stores();
  }
}

/// Sums are stored by rows, in permuted pieces that differ among four neighbouring rows, so that a
/// warp's stores have no bank conflicts.
__device__ inline int exchange_place(int row, int column) {
  return row * kBlockN + (column ^ row % 4 * 8);
}

/// Writes the sums and calls store(place), where place(row, column) is a sum in shared memory.
/// Where boxes share this memory, the next writer waits first.
template <bool shares_memory, class Store>
__device__ inline void store_exchanged(const Storer& storer, const float (&sums)[kBlockSums],
                                       const Store& store) {
  auto* exchange = reinterpret_cast<float*>(storer.memory);
  if constexpr (shares_memory) {
    if (storer.thread == 0) arch::wait_stores_read<0>();
    storer.sync();
  }
  const LaneAt lane(storer.thread);
#pragma unroll
  for (int block = 0; block < kColumnBlocks; ++block) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int at = 4 * block + 2 * half;
      arch::store_pair(exchange + exchange_place(lane.row + 8 * half, 8 * block + lane.column),
                       sums[at], sums[at + 1]);
    }
  }
  storer.sync();
  store([&](int of_row, int of_column) { return exchange + exchange_place(of_row, of_column); });
  if constexpr (!shares_memory) storer.sync();
}

/// Calls store(m, n, sums) for each block of a part of a tile. The code exists once, not once per
/// block: the sums move up, so that the next block's are in the first registers.
template <int kBlocksM, int kSums, class Store>
__device__ inline void store_part(float (&sums)[kBlocksM][kSums], const Store& store) {
  constexpr int kBlocksN = kSums / kBlockSums, kBlocks = kBlocksM * kBlocksN;
  const auto sum = [&](int i) -> float& { return sums[i / kSums][i % kSums]; };
#pragma unroll 1
  for (int index = 0; index < kBlocks; ++index) {
    store(index / kBlocksN * kBlockM, index % kBlocksN * kBlockN,
          reinterpret_cast<float(&)[kBlockSums]>(sums[0]));
#pragma unroll
    for (int i = 0; i < (kBlocks - 1) * kBlockSums; ++i) sum(i) = sum(i + kBlockSums);
  }
}

}  // namespace wide::kernels
