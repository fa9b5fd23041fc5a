// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Batched GEMM on the fp32 units: y[m, i, n] = activation(sum_k x[m, i, k] * weight[i, n, k] +
// bias[i, n]) by fused multiply-adds in fp32, never tf32, all members i in one launch.
//
// Plan: one thread block computes one tile of one member; the grid is one-dimensional over (member,
// tile), so that the limits of grid.y and grid.z do not matter. Both operands have k contiguous in
// memory and in shared memory: a thread reads four values of k of one row with one instruction,
// which costs as many instructions per multiplication as the transposed layout, and lets cp.async
// load the tiles past the registers, several stages ahead. 16-bit operands stay 16-bit until a
// thread converts them.
//
// Memory: tiles as in linear_tile.cuh, `group` being the number of neighbouring rows that a thread
// owns. Finally the tile's sums replace the operands.
//
// Every output is summed by one thread in order of k, so its bits depend neither on the tile nor on
// the rest of the launch.
#pragma once

#include "kernels/linear/linear_simt_tile.hpp"
#include "kernels/linear/linear_tile.cuh"

namespace wide::kernels {

struct SimtPolicy {
  int tile_m, tile_n;
  int thread_m, thread_n;  // outputs per thread
  int stages;              // tiles of k in shared memory at a time
  int unroll;              // of the loop over a stage's k, four per step
  int blocks_per_multiprocessor;

  constexpr int threads_m() const { return tile_m / thread_m; }
  constexpr int threads_n() const { return tile_n / thread_n; }
  constexpr int threads() const { return threads_m() * threads_n(); }
  constexpr int row_group() const { return thread_m < 4 ? thread_m : 4; }
  constexpr int x_bytes() const { return tile_m * kRowBytes; }
  constexpr int stage_bytes() const { return (tile_m + tile_n) * kRowBytes; }
  constexpr int shared_bytes() const { return stages * stage_bytes(); }
};

// 40 KiB; with 4 stages a block of m = 16 has a whole fp32 k = 128 in flight before it waits.
constexpr SimtPolicy kM16N64{16, 64, 2, 4, 4, 4, 4};
// 48 KiB, here and below: a block's default limit, four blocks to a multiprocessor of compute
// capability 9.0.
constexpr SimtPolicy kM32N64{32, 64, 4, 4, 4, 4, 4};
constexpr SimtPolicy kM64N64{64, 64, 8, 4, 3, 2, 4};
// 64 KiB: two blocks fit a multiprocessor of compute capability 8.0 too.
constexpr SimtPolicy kM128N128{128, 128, 8, 8, 2, 1, 2};

/// Kernels are named by the tile: nvcc 13.0's host stubs cannot spell a class-type argument.
constexpr SimtPolicy policy_of(LinearSimtTile tile) {
  switch (tile) {
    case LinearSimtTile::m16n64:
      return kM16N64;
    case LinearSimtTile::m32n64:
      return kM32N64;
    case LinearSimtTile::m64n64:
      return kM64N64;
    case LinearSimtTile::m128n128:
      break;
  }
  return kM128N128;
}

constexpr bool is_as_named(LinearSimtTile tile) {
  return policy_of(tile).tile_m == tile_m(tile) && policy_of(tile).tile_n == tile_n(tile);
}
static_assert(is_as_named(LinearSimtTile::m16n64) && is_as_named(LinearSimtTile::m32n64) &&
              is_as_named(LinearSimtTile::m64n64) && is_as_named(LinearSimtTile::m128n128));

/// The row (or column) of the tile that is a thread's i-th: groups of neighbours, the groups of all
/// threads adjacent.
template <int group, int threads>
__device__ int owned(int thread, int i) {
  return (i / group * threads + thread) * group + i % group;
}

template <class T, SimtPolicy policy>
__device__ void multiply_tile(const char* x_tile, const char* weight_tile, int thread_m,
                              int thread_n, float (&sums)[policy.thread_m][policy.thread_n]) {
  constexpr int step = 4 * static_cast<int>(sizeof(T));  // bytes of four values of k
  constexpr int group = policy.row_group();
  static_assert(policy.threads_m() % kChunks == 0 && policy.threads_n() % kChunks == 0,
                "a thread's rows all have the same place for a chunk");
  const int x_swizzle = thread_m % kChunks * kChunkBytes;
  const int weight_swizzle = thread_n % kChunks * kChunkBytes;
  // Beyond the policy's unrolling, the compiler hoists loads until registers spill.
  constexpr int kUnroll = policy.unroll;
#pragma unroll kUnroll
  for (int byte = 0; byte < kRowBytes; byte += step) {
    float x[policy.thread_m][4];
#pragma unroll
    for (int i = 0; i < policy.thread_m; ++i) {
      const int row = owned<group, policy.threads_m()>(thread_m, i);
      load_four(reinterpret_cast<const T*>(x_tile + row * kRowBytes + (byte ^ x_swizzle)), x[i]);
    }
#pragma unroll
    for (int j = 0; j < policy.thread_n; ++j) {
      const int row = owned<kColumnGroup, policy.threads_n()>(thread_n, j);
      float weight[4];
      load_four(reinterpret_cast<const T*>(weight_tile + row * kRowBytes + (byte ^ weight_swizzle)),
                weight);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int i = 0; i < policy.thread_m; ++i) {
          sums[i][j] = fmaf(x[i][k], weight[k], sums[i][j]);
        }
      }
    }
  }
}

/// Via shared memory, so that neighbouring lanes store neighbouring outputs.
template <SimtPolicy policy, class To>
__device__ void store_tile(const To& to, int thread_m, int thread_n, float* tile,
                           const float (&sums)[policy.thread_m][policy.thread_n]) {
  constexpr int elements = policy.tile_m * policy.tile_n;
  static_assert(elements * 4 <= policy.shared_bytes(), "sums fit where the operands were");
#pragma unroll
  for (int i = 0; i < policy.thread_m; ++i) {
    const int row = owned<policy.row_group(), policy.threads_m()>(thread_m, i);
#pragma unroll
    for (int j = 0; j < policy.thread_n; j += kColumnGroup) {
      const int column = owned<kColumnGroup, policy.threads_n()>(thread_n, j);
      *reinterpret_cast<float4*>(tile + row * policy.tile_n + column) =
          make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
    }
  }
  __syncthreads();
  store_sums<policy.tile_m, policy.tile_n, policy.tile_n, 1, policy.threads()>(
      to, tile, static_cast<int>(threadIdx.x));
}

/// Computes the tile of `member` at (first_m, first_n), by one block with the policy's threads and
/// bytes of shared memory. `rows`: which rows of x and y these are.
template <class T, class Out, LinearSimtTile tile_shape, class Rows = TileRows>
__device__ inline void compute_simt_tile(const LinearParams& params, int64_t member,
                                         int64_t first_m, int64_t first_n, char* shared,
                                         const Rows& rows = {}) {
  constexpr SimtPolicy policy = policy_of(tile_shape);
  constexpr int per_row = kRowBytes / static_cast<int>(sizeof(T));
  const TileOperands<T, Out> operands =
      tile_operands<T, Out>(params, member, first_m, first_n, policy.tile_m, policy.tile_n);
  const auto& x = rows.template source<policy.tile_m, policy.threads()>(operands.x);
  const auto& y = rows.destination(operands.y);
  // A warp is 4 x 8 threads: eight adjacent lanes read eight rows of the weight.
  constexpr int warps_n = policy.threads_n() / 8;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int thread_m = warp / warps_n * 4 + lane / 8;
  const int thread_n = warp % warps_n * 8 + lane % 8;

  // Start the first stages.
  const int64_t num_steps = (params.k + per_row - 1) / per_row;
  const auto load_step = [&](int64_t step, int stage) {
    if (step < num_steps) {
      char* buffer = shared + stage * policy.stage_bytes();
      const int64_t first_k = step * per_row, k_left = params.k - first_k;
      load_tile<T, policy.tile_m, policy.row_group(), policy.threads()>(buffer, x, first_k, k_left);
      load_tile<T, policy.tile_n, kColumnGroup, policy.threads()>(buffer + policy.x_bytes(),
                                                                  operands.weight, first_k, k_left);
    }
    arch::cp_async_commit();  // empty groups keep the pending count
  };
#pragma unroll 1
  for (int stage = 0; stage < policy.stages - 1; ++stage) load_step(stage, stage);

  // Multiply one stage while the others arrive. The barrier also ensures that the stage that is
  // filled next is no longer read.
  float sums[policy.thread_m][policy.thread_n] = {};
  int stage = 0;
  for (int64_t step = 0; step < num_steps; ++step) {
    arch::cp_async_wait<policy.stages - 2>();
    __syncthreads();
    load_step(step + policy.stages - 1, stage == 0 ? policy.stages - 1 : stage - 1);
    const char* buffer = shared + stage * policy.stage_bytes();
    multiply_tile<T, policy>(buffer, buffer + policy.x_bytes(), thread_m, thread_n, sums);
    stage = stage == policy.stages - 1 ? 0 : stage + 1;
  }
  // The sums replace the operands. No copies are in flight: only the empty groups after the last
  // step are pending.
  __syncthreads();

  store_tile<policy>(y, thread_m, thread_n, reinterpret_cast<float*>(shared), sums);
}

}  // namespace wide::kernels
