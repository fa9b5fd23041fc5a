// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Batched GEMM on Hopper's warpgroup products: y[m, i, n] = activation(sum_k x[m, i, k] *
// weight[i, n, k] + bias[i, n]), all members i in one launch.
//
// Plan: one block a multiprocessor, which stays and takes every gridDim-th tile of all members'.
// One thread of the first warpgroup fills a ring of stages by bulk tensor copies, tile after tile
// without a pause; two warpgroups multiply, each a whole tile of its own, in turns:
//
//   ring        | tile 0 ....... | tile 1 ....... | tile 2 ....... | tile 3
//   warpgroup 1 | multiplies     | stores         | multiplies     | stores
//   warpgroup 2 |                | multiplies     | stores         | multiplies
//
// The ring's stages belong to tiles in turn, so who multiplies is who has stages, and bias,
// activation and stores of one tile are hidden behind the products of the next. A warpgroup takes
// its turn only when the other one has seen its last stage arrive: an mbarrier tells phases apart
// by their parity alone, and who waited for a stage two rounds ahead would be let in at once.
//
// One tensor map {k, row, member} serves all members: what lies beyond a member's rows or beyond k
// is filled with zeros instead of the neighbour's, and no pointers are fetched. Both operands have
// k contiguous, 128 bytes of it in a stage, swizzled by 128 bytes. Sums stay in registers; they are
// exchanged by way of shared memory, 64 x 64 at a time, so that lanes store neighbouring outputs.
//
// Order of tiles: members one after another, so that a member's weights are read once and stay in
// the L2 cache for its other rows; in a member, groups of kRasterColumns tile columns, row by row,
// so that blocks at work at the same time share both operands.
#include "kernels/linear/linear_wgmma.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <limits>

#include "kernels/arch/barrier.cuh"
#include "kernels/arch/fence.cuh"
#include "kernels/arch/target.cuh"
#include "kernels/arch/tma.cuh"
#include "kernels/arch/warp.cuh"
#include "kernels/arch/wgmma.cuh"
#include "kernels/linear/linear_launch.cuh"
#include "kernels/linear/linear_tile.cuh"

namespace wide::kernels {

namespace {

constexpr int kWarpgroup = 128;  // threads
constexpr int kConsumers = 2;    // warpgroups
constexpr int kThreads = kWarpgroup * (1 + kConsumers);
constexpr int kBlockM = 64;         // rows of an instruction
constexpr int kChunk = 64;          // outputs that are exchanged at a time
constexpr int kPitch = kChunk + 8;  // floats of a row: a warp's stores meet no bank twice
constexpr int kTileK = static_cast<int>(kWgmmaTileK);
constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
static_assert(kTileK * 2 == kRowBytes);

struct WgmmaPolicy {
  int tile_m, tile_n;
  int stages;

  constexpr int blocks_m() const { return tile_m / kBlockM; }
  constexpr int x_bytes() const { return tile_m * kRowBytes; }
  constexpr int weight_bytes() const { return tile_n * kRowBytes; }
};

constexpr WgmmaPolicy policy_of(LinearWgmmaTile tile) {
  return tile == LinearWgmmaTile::m64n128 ? WgmmaPolicy{64, 128, 7}    // 168 KiB of stages
                                          : WgmmaPolicy{128, 128, 5};  // 160 KiB
}

template <WgmmaPolicy policy>
struct alignas(1024) Storage {
  char x[policy.stages][policy.x_bytes()];
  char weight[policy.stages][policy.weight_bytes()];
  float sums[kConsumers][kBlockM * kPitch];
  arch::Mbarrier full[policy.stages], empty[policy.stages];
  arch::Mbarrier turn[kConsumers];
};

struct TileGrid {
  uint32_t tiles_m, tiles_n, count;  // of one member, of one member, of all
  int32_t num_steps;
};

struct TileAt {
  int32_t member, first_m, first_n;
};

template <WgmmaPolicy policy>
__device__ TileAt tile_at(const TileGrid& grid, uint32_t index) {
  constexpr uint32_t kRasterColumns = 8;
  const uint32_t of_member = grid.tiles_m * grid.tiles_n;
  const uint32_t member = index / of_member, tile = index % of_member;
  const uint32_t group = tile / (kRasterColumns * grid.tiles_m);
  const uint32_t in_group = tile % (kRasterColumns * grid.tiles_m);
  const uint32_t columns = min(kRasterColumns, grid.tiles_n - group * kRasterColumns);
  const uint32_t m = in_group / columns, n = group * kRasterColumns + in_group % columns;
  return {static_cast<int32_t>(member), static_cast<int32_t>(m) * policy.tile_m,
          static_cast<int32_t>(n) * policy.tile_n};
}

/// A place in the ring, counted from the launch's first stage on.
template <WgmmaPolicy policy>
struct Ring {
  uint32_t stage, parity;

  __device__ explicit Ring(uint32_t position)
      : stage(position % policy.stages), parity(position / policy.stages % 2) {}
  __device__ void advance() {
    if (++stage < policy.stages) return;
    stage = 0;
    parity ^= 1;
  }
};

/// By one thread.
template <WgmmaPolicy policy>
__device__ void produce(Storage<policy>& s, const LinearWgmmaParams& params, const TileGrid& grid) {
  const bool is_shared = params.linear.x_strides.member == 0;
  Ring<policy> ring(0);
  for (uint32_t index = blockIdx.x; index < grid.count; index += gridDim.x) {
    const TileAt at = tile_at<policy>(grid, index);
    const int32_t x_member = is_shared ? 0 : at.member;
    for (int32_t step = 0; step < grid.num_steps; ++step) {
      // In the first round nobody has to give the stage back.
      arch::mbarrier_wait(&s.empty[ring.stage], ring.parity ^ 1);
      arch::Mbarrier* full = &s.full[ring.stage];
      arch::mbarrier_arrive_expect_bytes(full, policy.x_bytes() + policy.weight_bytes());
      arch::load_tile(s.x[ring.stage], params.x, full, step * kTileK, at.first_m, x_member);
      arch::load_tile(s.weight[ring.stage], params.weight, full, step * kTileK, at.first_n,
                      at.member);
      ring.advance();
    }
  }
}

/// The products of one tile, from the ring. One stage's are under way while the next one's begin.
template <class T, WgmmaPolicy policy>
__device__ inline void multiply_tile(Storage<policy>& s, Ring<policy> ring, int32_t num_steps,
                                     arch::Mbarrier* next_turn,
                                     float (&sums)[policy.blocks_m()][policy.tile_n / 2]) {
  constexpr int kInstructionK = 16;
  // Of rows of 128 bytes, from k on.
  const auto descriptor = [](const char* rows, int k) {
    return arch::operand_descriptor(rows + k * 2, 16, 8 * kRowBytes,
                                    arch::OperandSwizzle::bytes_128);
  };
  const bool is_first_lane = threadIdx.x % 32 == 0;
  uint32_t previous = 0;
  for (int32_t step = 0; step < num_steps; ++step) {
    arch::mbarrier_wait(&s.full[ring.stage], ring.parity);
    if (step == num_steps - 1 && is_first_lane) arch::mbarrier_arrive(next_turn);
#pragma unroll
    for (int i = 0; i < policy.blocks_m(); ++i) arch::wgmma_pin(sums[i]);
    arch::wgmma_fence();
#pragma unroll
    for (int k = 0; k < kTileK; k += kInstructionK) {
      const uint64_t weight = descriptor(s.weight[ring.stage], k);
#pragma unroll
      for (int i = 0; i < policy.blocks_m(); ++i) {
        const uint64_t x = descriptor(s.x[ring.stage] + i * kBlockM * kRowBytes, k);
        arch::wgmma<T>(sums[i], x, weight, step > 0 || k > 0);
      }
    }
    arch::wgmma_commit();
#pragma unroll
    for (int i = 0; i < policy.blocks_m(); ++i) arch::wgmma_pin(sums[i]);
    arch::wgmma_wait<1>();
    // The step before is over, in this warp: each gives its stage back for itself.
    if (step > 0 && is_first_lane) arch::mbarrier_arrive(&s.empty[previous]);
    previous = ring.stage;
    ring.advance();
  }
  arch::wgmma_wait<0>();
#pragma unroll
  for (int i = 0; i < policy.blocks_m(); ++i) arch::wgmma_pin(sums[i]);
  if (is_first_lane) arch::mbarrier_arrive(&s.empty[previous]);
}

/// Bias, activation, stores; by one warpgroup.
template <class T, WgmmaPolicy policy>
__device__ inline void store_tile(const LinearParams& params, const TileAt& at, float* exchange,
                                  int consumer,
                                  const float (&sums)[policy.blocks_m()][policy.tile_n / 2]) {
  const int thread = static_cast<int>(threadIdx.x) % kWarpgroup;
  const int row = thread / 32 * 16 + thread % 32 / 4, column = thread % 4 * 2;
#pragma unroll
  for (int i = 0; i < policy.blocks_m(); ++i) {
#pragma unroll
    for (int chunk = 0; chunk < policy.tile_n / kChunk; ++chunk) {
      const int64_t first_m = at.first_m + i * kBlockM, first_n = at.first_n + chunk * kChunk;
      if (first_m >= params.m || first_n >= params.n) continue;  // all of the warpgroup
#pragma unroll
      for (int j = 0; j < kChunk / 8; ++j) {
        const float* four = &sums[i][chunk * kChunk / 2 + 4 * j];
        float* to = exchange + row * kPitch + 8 * j + column;
        *reinterpret_cast<float2*>(to) = make_float2(four[0], four[1]);
        *reinterpret_cast<float2*>(to + 8 * kPitch) = make_float2(four[2], four[3]);
      }
      arch::named_barrier_sync(1 + consumer, kWarpgroup);
      const Destination<T> y =
          tile_operands<T>(params, at.member, first_m, first_n, kBlockM, kChunk).y;
      store_sums<T, kBlockM, kChunk, kPitch, 1, kWarpgroup>(y, exchange, thread);
      arch::named_barrier_sync(1 + consumer, kWarpgroup);
    }
  }
}

template <class T, WgmmaPolicy policy>
__device__ inline void consume(Storage<policy>& s, const LinearWgmmaParams& params,
                               const TileGrid& grid, int consumer) {
  uint32_t position = static_cast<uint32_t>(consumer * grid.num_steps);
  // The first turn of all is nobody's to give.
  uint32_t turn_parity = consumer == 0 ? 1 : 0;
  for (uint32_t index = blockIdx.x + static_cast<uint32_t>(consumer) * gridDim.x;
       index < grid.count; index += kConsumers * gridDim.x) {
    float sums[policy.blocks_m()][policy.tile_n / 2];
    arch::mbarrier_wait(&s.turn[consumer], turn_parity);
    multiply_tile<T, policy>(s, Ring<policy>(position), grid.num_steps, &s.turn[1 - consumer],
                             sums);
    store_tile<T, policy>(params.linear, tile_at<policy>(grid, index), s.sums[consumer], consumer,
                          sums);
    position += static_cast<uint32_t>(kConsumers * grid.num_steps);
    turn_parity ^= 1;
  }
}

template <class T, LinearWgmmaTile tile_shape>
__global__ void __launch_bounds__(kThreads, 1)
    linear_wgmma(const __grid_constant__ LinearWgmmaParams params,
                 const __grid_constant__ TileGrid grid) {
  if constexpr (arch::kHasSm90a) {
    constexpr WgmmaPolicy policy = policy_of(tile_shape);
    extern __shared__ __align__(1024) char shared[];
    auto& s = *reinterpret_cast<Storage<policy>*>(shared);
    if (threadIdx.x == 0) {
      arch::prefetch_tensor_map(params.x);
      arch::prefetch_tensor_map(params.weight);
      for (int stage = 0; stage < policy.stages; ++stage) {
        arch::mbarrier_init(&s.full[stage], 1);
        arch::mbarrier_init(&s.empty[stage], kWarpgroup / 32);
      }
      for (arch::Mbarrier& turn : s.turn) arch::mbarrier_init(&turn, kWarpgroup / 32);
      arch::fence_mbarrier_init();
    }
    __syncthreads();
    const int warpgroup = static_cast<int>(threadIdx.x) / kWarpgroup;
    if (warpgroup == 0) {
      arch::shrink_registers<kProducerRegisters>();
      if (threadIdx.x < 32 && arch::elect_one()) produce<policy>(s, params, grid);
    } else {
      arch::grow_registers<kConsumerRegisters>();
      consume<T, policy>(s, params, grid, warpgroup - 1);
    }
  } else {
    __trap();
  }
}

template <class T, LinearWgmmaTile tile>
cudaError_t launch_tile(LinearWgmmaParams params, cudaStream_t stream) {
  constexpr WgmmaPolicy policy = policy_of(tile);
  constexpr int kSharedBytes = sizeof(Storage<policy>);
  static_assert(kSharedBytes <= 227 * 1024, "what a block of compute capability 9.0 has");
  constexpr int64_t kMaxTiles = std::numeric_limits<int32_t>::max();
  const LinearParams& p = params.linear;
  const int64_t tiles_m = (p.m - 1) / policy.tile_m + 1, tiles_n = (p.n - 1) / policy.tile_n + 1;
  if (p.k > kMaxTiles || tiles_m > kMaxTiles / tiles_n ||
      p.num_members > kMaxTiles / (tiles_m * tiles_n)) {
    return cudaErrorInvalidConfiguration;
  }
  set_alignment(params.linear, sizeof(T));
  const TileGrid grid{static_cast<uint32_t>(tiles_m), static_cast<uint32_t>(tiles_n),
                      static_cast<uint32_t>(tiles_m * tiles_n * p.num_members),
                      static_cast<int32_t>((p.k - 1) / kTileK + 1)};
  const auto kernel = linear_wgmma<T, tile>;
  const cudaError_t status =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  if (status != cudaSuccess) return status;
  const uint32_t blocks = std::min(grid.count, static_cast<uint32_t>(params.num_multiprocessors));
  kernel<<<blocks, kThreads, kSharedBytes, stream>>>(params, grid);
  return cudaGetLastError();
}

template <class T>
cudaError_t launch_type(const LinearWgmmaParams& params, LinearWgmmaTile tile,
                        cudaStream_t stream) {
  return tile == LinearWgmmaTile::m64n128
             ? launch_tile<T, LinearWgmmaTile::m64n128>(params, stream)
             : launch_tile<T, LinearWgmmaTile::m128n128>(params, stream);
}

}  // namespace

cudaError_t launch_linear_wgmma(const LinearWgmmaParams& params, Dtype dtype, LinearWgmmaTile tile,
                                cudaStream_t stream) {
  const LinearParams& p = params.linear;
  if (p.num_members == 0 || p.m == 0 || p.n == 0) return cudaSuccess;
  if (dtype == Dtype::fp16) return launch_type<__half>(params, tile, stream);
  if (dtype == Dtype::bf16) return launch_type<__nv_bfloat16>(params, tile, stream);
  return cudaErrorInvalidValue;
}

}  // namespace wide::kernels
