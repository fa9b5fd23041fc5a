// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A warpgroup's sums become outputs, 64 x 64 at a time, by one of two ways through shared memory.
//
// As boxes: each lane finishes its sums in registers, rounds them to 16 bits and lays them down as
// matrices; one thread has the box stored by the tensor memory accelerator, which leaves out what
// lies beyond the member's rows and outputs. Two boxes take turns, so that one is laid down while
// the other is read.
//
// As rows: the fp32 sums are exchanged, so that lanes finish and store neighbouring outputs. For
// what boxes cannot do: outputs of 32 bits or any alignment, and gelu, whose code is too long to be
// there for every register.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/arch/barrier.cuh"
#include "kernels/arch/fence.cuh"
#include "kernels/arch/matrix.cuh"
#include "kernels/arch/tma.cuh"
#include "kernels/linear/linear_tile.cuh"
#include "kernels/linear/linear_wgmma.hpp"

namespace wide::kernels {

constexpr int kWarpgroup = 128;                          // threads
constexpr int kBlockM = static_cast<int>(kWgmmaStoreM);  // rows of an instruction, and of a box
constexpr int kBlockN = static_cast<int>(kWgmmaStoreN);
constexpr int kBlockSums = kBlockM * kBlockN / kWarpgroup;  // of a thread
constexpr int kStoreBytes = kBlockM * kBlockN * 4;  // of shared memory: fp32 sums, or two boxes
constexpr int kBoxBytes = kStoreBytes / 2;

/// The way by boxes is there for 16-bit outputs alone.
template <class Out>
inline constexpr bool kCanStoreBoxes = sizeof(Out) == 2;

struct TileAt {
  int32_t member, first_m, first_n;
};

/// Who stores: a warpgroup, its memory and its named barrier.
struct Storer {
  char* memory;  ///< kStoreBytes, aligned to 1024
  int barrier;
  int thread;  ///< of the warpgroup

  __device__ void sync() const { arch::named_barrier_sync(barrier, kWarpgroup); }
};

__device__ inline uint32_t pack_pair(const float (&pair)[2], __half*) {
  const __half2 both = __floats2half2_rn(pair[0], pair[1]);
  return *reinterpret_cast<const uint32_t*>(&both);
}
__device__ inline uint32_t pack_pair(const float (&pair)[2], __nv_bfloat16*) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(pair[0], pair[1]);
  return *reinterpret_cast<const uint32_t*>(&both);
}

/// The 32 sums of a lane, a block of eight outputs after another: two of row l / 4 and two of eight
/// rows further on.
template <class Out>
__device__ inline void lay_down_box(const Destination<Out>& to, char* box, int thread,
                                    const float (&sums)[kBlockSums]) {
  const int lane = thread % 32, first_row = thread / 32 * 16;
  const int row = first_row + lane / 4, column = lane % 4 * 2;
  // The lane names row lane % 16 of the matrices of two blocks of outputs.
  const int named_row = first_row + lane % 16;
#pragma unroll
  for (int block = 0; block < kBlockN / 8; block += 2) {
    uint32_t packed[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float pair[2] = {sums[4 * block + 2 * i], sums[4 * block + 2 * i + 1]};
      const int pair_row = row + i % 2 * 8, first = column + (block + i / 2) * 8;
      if (pair_row < to.num_rows) {
        finish_run(to, pair_row, first, to.num_columns - first, pair);
      }
      packed[i] = pack_pair(pair, static_cast<Out*>(nullptr));
    }
    const int chunk = block + lane / 16;
    arch::stmatrix(box + named_row * kRowBytes + (chunk ^ named_row % kChunks) * kChunkBytes,
                   packed);
  }
}

/// `box_index` counts the warpgroup's boxes, for the two to take turns.
template <class Out>
__device__ inline void store_box(const Destination<Out>& to, const CUtensorMap& y, const TileAt& at,
                                 const Storer& storer, uint32_t box_index,
                                 const float (&sums)[kBlockSums]) {
  char* box = storer.memory + box_index % 2 * kBoxBytes;
  if (storer.thread == 0) arch::wait_stores_read<1>();
  storer.sync();
  lay_down_box(to, box, storer.thread, sums);
  arch::fence_proxy_async();
  storer.sync();
  if (storer.thread == 0) {
    arch::store_tile(y, box, at.first_n, at.first_m, at.member);
    arch::commit_stores();
  }
}

/// Sums lie row by row, in pieces of four; of four neighbouring rows each has its pieces elsewhere,
/// so that a warp's stores meet no bank twice.
__device__ inline int exchange_place(int row, int column) {
  return row * kBlockN + (column ^ row % 4 * 8);
}

template <class Out>
__device__ inline void store_rows(const Destination<Out>& to, const Storer& storer,
                                  const float (&sums)[kBlockSums]) {
  auto* exchange = reinterpret_cast<float*>(storer.memory);
  const int lane = storer.thread % 32;
  const int row = storer.thread / 32 * 16 + lane / 4, column = lane % 4 * 2;
#pragma unroll
  for (int block = 0; block < kBlockN / 8; ++block) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int at = 4 * block + 2 * half;
      *reinterpret_cast<float2*>(exchange + exchange_place(row + 8 * half, 8 * block + column)) =
          make_float2(sums[at], sums[at + 1]);
    }
  }
  storer.sync();
  store_placed_sums<Out, kBlockM, kBlockN, kWarpgroup>(
      to, storer.thread,
      [&](int of_row, int of_column) { return exchange + exchange_place(of_row, of_column); });
  storer.sync();
}

template <class Out>
__device__ inline void store_block(const LinearWgmmaParams& params, const TileAt& at,
                                   const Storer& storer, uint32_t& box_index,
                                   const float (&sums)[kBlockSums]) {
  const LinearParams& linear = params.linear;
  if (at.first_m >= linear.m || at.first_n >= linear.n) return;  // all of the warpgroup
  const Destination<Out> to =
      tile_destination<Out>(linear, at.member, at.first_m, at.first_n, kBlockM, kBlockN);
  if constexpr (kCanStoreBoxes<Out>) {
    if (params.stores_boxes) return store_box(to, params.y, at, storer, box_index++, sums);
  }
  store_rows(to, storer, sums);
}

/// A part of a tile, from `at` on; blocks of it that lie outside y are left out. The code is there
/// once, not once a block: the sums move up, so that the next block's are in the first registers.
template <class Out, int kBlocksM, int kSums>
__device__ inline void store_part(const LinearWgmmaParams& params, const TileAt& at,
                                  const Storer& storer, uint32_t& box_index,
                                  float (&sums)[kBlocksM][kSums]) {
  constexpr int kBlocksN = kSums / kBlockSums, kBlocks = kBlocksM * kBlocksN;
  const auto sum = [&](int i) -> float& { return sums[i / kSums][i % kSums]; };
#pragma unroll 1
  for (int index = 0; index < kBlocks; ++index) {
    const TileAt block{at.member, at.first_m + index / kBlocksN * kBlockM,
                       at.first_n + index % kBlocksN * kBlockN};
    store_block<Out>(params, block, storer, box_index,
                     reinterpret_cast<const float(&)[kBlockSums]>(sums[0]));
#pragma unroll
    for (int i = 0; i < (kBlocks - 1) * kBlockSums; ++i) sum(i) = sum(i + kBlockSums);
  }
}

}  // namespace wide::kernels
