// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Batched GEMM on Hopper's warpgroup products: y[m, i, n] = activation(sum_k x[m, i, k] *
// weight[i, n, k] + bias[i, n]) and so on (linear_epilogue.cuh), all members i in one launch.
//
// Plan: one block a multiprocessor, which stays and takes every gridDim-th tile of all members'.
// One thread of the first warpgroup fills a ring of stages by bulk tensor copies, tile after tile
// without a pause; two warpgroups multiply. Each a whole tile of its own, in turns:
//
//   ring        | tile 0 ....... | tile 1 ....... | tile 2 ....... | tile 3
//   warpgroup 1 | multiplies     | stores         | multiplies     | stores
//   warpgroup 2 |                | multiplies     | stores         | multiplies
//
// The ring's stages belong to tiles in turn, so who multiplies is who has stages, and epilogue and
// stores of one tile are hidden behind the products of the next. A warpgroup takes its turn only
// when the other one has seen its last stage arrive: an mbarrier tells phases apart by their parity
// alone, and who waited for a stage two rounds ahead would be let in at once.
//
// Or together, each a half of the same tile, where one warpgroup has no registers for a tile that
// is large enough, and for fp8: its sums keep about 14 bits on the tensor cores, so that each
// stage's (128 of k) are added up in fp32, which one warpgroup does while the other multiplies.
//
// One tensor map {k, row, member} serves all members: what lies beyond a member's rows or beyond k
// is filled with zeros instead of the neighbour's, and no pointers are fetched. Both operands have
// k contiguous, 128 bytes of it in a stage, swizzled by 128 bytes. Sums stay in registers until
// they are stored (linear_wgmma_store.cuh).
//
// Blocks start while the kernel before in the stream still runs, and bring the weights of their
// ring's first round into the L2 cache, before they wait for it to end.
//
// Order of tiles: members one after another, so that a member's weights are read once and stay in
// the L2 cache for its other rows; in a member, groups of kRasterColumns tile columns, row by row,
// so that blocks at work at the same time share both operands.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <limits>

#include "kernels/arch/fence.cuh"
#include "kernels/arch/grid.cuh"
#include "kernels/arch/target.cuh"
#include "kernels/arch/tma.cuh"
#include "kernels/arch/warp.cuh"
#include "kernels/arch/wgmma.cuh"
#include "kernels/linear/linear_launch.cuh"
#include "kernels/linear/linear_wgmma_store.cuh"

namespace wide::kernels {

constexpr int kConsumers = 2;  // warpgroups
constexpr int kWgmmaThreads = kWarpgroup * (1 + kConsumers);
constexpr int kInstructionBytes = 32;  // of k
constexpr int kProducerRegisters = 24, kConsumerRegisters = 240;
static_assert(kWgmmaTileBytes == kRowBytes);

/// What an element in memory is multiplied as.
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

  constexpr int x_bytes() const { return tile_m * kRowBytes; }
  constexpr int weight_bytes() const { return tile_n * kRowBytes; }
  /// What one warpgroup multiplies. Together: half the rows, or half the outputs of few rows.
  constexpr bool halves_rows() const { return is_together && tile_m > kBlockM; }
  constexpr bool halves_outputs() const { return is_together && !halves_rows(); }
  constexpr int part_m() const { return halves_rows() ? tile_m / kConsumers : tile_m; }
  constexpr int part_n() const { return halves_outputs() ? tile_n / kConsumers : tile_n; }
  constexpr int blocks_m() const { return part_m() / kBlockM; }
  constexpr int sums() const { return part_n() / 2; }  // of a thread, a block of rows
};

constexpr WgmmaPolicy policy_of(LinearWgmmaTile tile, bool is_fp8) {
  switch (tile) {
    case LinearWgmmaTile::m64n128:  // 192 KiB of stages
      return {64, 128, 8, is_fp8};
    case LinearWgmmaTile::m128n128:  // 192 KiB
      return {128, 128, 6, is_fp8};
    case LinearWgmmaTile::m128n256:  // 192 KiB
      return {128, 256, 4, true};
  }
  return {};
}

template <WgmmaPolicy policy>
struct alignas(1024) Storage {
  char x[policy.stages][policy.x_bytes()];
  char weight[policy.stages][policy.weight_bytes()];
  char outputs[kConsumers][kStoreBytes];
  arch::Mbarrier full[policy.stages], empty[policy.stages];
  arch::Mbarrier turn[kConsumers];
};

struct TileGrid {
  uint32_t tiles_m, tiles_n, count;  // of one member, of one member, of all
  int32_t num_steps;
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

/// The weights of the ring's first round, as far as they are the first tile's. By one thread.
template <class T, WgmmaPolicy policy>
__device__ void prefetch_weights(const LinearWgmmaParams& params, const TileGrid& grid) {
  constexpr int kTileK = kRowBytes / static_cast<int>(sizeof(T));
  const TileAt at = tile_at<policy>(grid, blockIdx.x);
  const int32_t steps = min(grid.num_steps, policy.stages);
  for (int32_t step = 0; step < steps; ++step) {
    arch::prefetch_tile(params.weight, step * kTileK, at.first_n, at.member);
  }
}

/// By one thread.
template <class T, WgmmaPolicy policy>
__device__ void produce(Storage<policy>& s, const LinearWgmmaParams& params, const TileGrid& grid) {
  constexpr int kTileK = kRowBytes / static_cast<int>(sizeof(T));
  const bool is_shared = params.linear.x_strides.member == 0;
  prefetch_weights<T, policy>(params, grid);
  arch::wait_for_grid();
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
  arch::launch_dependents();
}

/// Where a warpgroup's part of a stage lies.
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

/// Begins the products of one stage, as one group. `accumulate` false: the first one overwrites.
template <class T, WgmmaPolicy policy>
__device__ inline void begin_stage(const char* x, const char* weight, bool accumulate,
                                   float (&sums)[policy.blocks_m()][policy.sums()]) {
  const auto descriptor = [](const char* rows) {
    return arch::operand_descriptor(rows, 16, 8 * kRowBytes, arch::OperandSwizzle::bytes_128);
  };
  pin(sums);
  arch::wgmma_fence();
#pragma unroll
  for (int byte = 0; byte < kRowBytes; byte += kInstructionBytes) {
#pragma unroll
    for (int i = 0; i < policy.blocks_m(); ++i) {
      arch::wgmma<typename WgmmaElement<T>::Type>(
          sums[i], descriptor(x + i * kBlockM * kRowBytes + byte), descriptor(weight + byte),
          accumulate || byte > 0);
    }
  }
  arch::wgmma_commit();
  pin(sums);
}

/// The products of one tile, from the ring. One stage's are under way while the next one's begin;
/// of fp8 those of the other warpgroup, while this one adds a stage's sums to the tile's.
template <class T, WgmmaPolicy policy>
__device__ inline void multiply_tile(Storage<policy>& s, Ring<policy> ring, int32_t num_steps,
                                     const Part<policy>& part, arch::Mbarrier* next_turn,
                                     float (&sums)[policy.blocks_m()][policy.sums()]) {
  constexpr bool kAddsUpStages = sizeof(T) == 1;
  const bool is_first_lane = threadIdx.x % 32 == 0;
  uint32_t previous = 0;
  if constexpr (kAddsUpStages) {
    for (float& sum : sums[0]) sum = 0;
  }
  for (int32_t step = 0; step < num_steps; ++step) {
    arch::mbarrier_wait(&s.full[ring.stage], ring.parity);
    const char* x = s.x[ring.stage] + part.first_m * kRowBytes;
    const char* weight = s.weight[ring.stage] + part.first_n * kRowBytes;
    if constexpr (kAddsUpStages) {
      static_assert(policy.blocks_m() == 1 && policy.is_together);
      float of_stage[1][policy.sums()];
      begin_stage<T, policy>(x, weight, false, of_stage);
      arch::wgmma_wait<0>();
      pin(of_stage);
      if (is_first_lane) arch::mbarrier_arrive(&s.empty[ring.stage]);
#pragma unroll
      for (int i = 0; i < policy.sums(); ++i) sums[0][i] += of_stage[0][i];
    } else {
      if (!policy.is_together && step == num_steps - 1 && is_first_lane) {
        arch::mbarrier_arrive(next_turn);
      }
      begin_stage<T, policy>(x, weight, step > 0, sums);
      arch::wgmma_wait<1>();
      // The step before is over, in this warp: each gives its stage back for itself.
      if (step > 0 && is_first_lane) arch::mbarrier_arrive(&s.empty[previous]);
      previous = ring.stage;
    }
    ring.advance();
  }
  if constexpr (!kAddsUpStages) {
    arch::wgmma_wait<0>();
    pin(sums);
    if (is_first_lane) arch::mbarrier_arrive(&s.empty[previous]);
  }
}

template <class T, class Out, WgmmaPolicy policy>
__device__ inline void consume(Storage<policy>& s, const LinearWgmmaParams& params,
                               const TileGrid& grid, int consumer) {
  const Part<policy> part(consumer);
  const Storer storer{s.outputs[consumer], 1 + consumer,
                      static_cast<int>(threadIdx.x) % kWarpgroup};
  // In turns every second tile, beginning with one's own; together every one.
  constexpr uint32_t kEvery = policy.is_together ? 1 : kConsumers;
  const uint32_t first = policy.is_together ? 0 : static_cast<uint32_t>(consumer);
  auto position = first * static_cast<uint32_t>(grid.num_steps);
  uint32_t turn_parity = consumer == 0 ? 1 : 0;  // the first turn of all is nobody's to give
  uint32_t box_index = 0;
  arch::wait_for_grid();  // before bias and residual are read, and y is written
  for (uint32_t index = blockIdx.x + first * gridDim.x; index < grid.count;
       index += kEvery * gridDim.x) {
    float sums[policy.blocks_m()][policy.sums()];
    if (!policy.is_together) arch::mbarrier_wait(&s.turn[consumer], turn_parity);
    multiply_tile<T, policy>(s, Ring<policy>(position), grid.num_steps, part, &s.turn[1 - consumer],
                             sums);
    TileAt at = tile_at<policy>(grid, index);
    at.first_m += part.first_m, at.first_n += part.first_n;
    store_part<Out>(params, at, storer, box_index, sums);
    position += kEvery * static_cast<uint32_t>(grid.num_steps);
    turn_parity ^= 1;
  }
  if constexpr (kCanStoreBoxes<Out>) {
    if (storer.thread == 0) arch::wait_stores_read<0>();
  }
}

template <class T, class Out, LinearWgmmaTile tile_shape>
__global__ void __launch_bounds__(kWgmmaThreads, 1)
    linear_wgmma(const __grid_constant__ LinearWgmmaParams params,
                 const __grid_constant__ TileGrid grid) {
  if constexpr (arch::kHasSm90a) {
    constexpr WgmmaPolicy policy = policy_of(tile_shape, sizeof(T) == 1);
    constexpr int kGivers = kWarpgroup / 32 * (policy.is_together ? kConsumers : 1);
    extern __shared__ __align__(1024) char shared[];
    auto& s = *reinterpret_cast<Storage<policy>*>(shared);
    if (threadIdx.x == 0) {
      arch::prefetch_tensor_map(params.x);
      arch::prefetch_tensor_map(params.weight);
      if (params.stores_boxes) arch::prefetch_tensor_map(params.y);
      for (int stage = 0; stage < policy.stages; ++stage) {
        arch::mbarrier_init(&s.full[stage], 1);
        arch::mbarrier_init(&s.empty[stage], kGivers);
      }
      for (arch::Mbarrier& turn : s.turn) arch::mbarrier_init(&turn, kWarpgroup / 32);
      arch::fence_mbarrier_init();
    }
    __syncthreads();
    const int warpgroup = static_cast<int>(threadIdx.x) / kWarpgroup;
    if (warpgroup == 0) {
      arch::shrink_registers<kProducerRegisters>();
      if (threadIdx.x < 32 && arch::elect_one()) produce<T, policy>(s, params, grid);
    } else {
      arch::grow_registers<kConsumerRegisters>();
      consume<T, Out, policy>(s, params, grid, warpgroup - 1);
    }
  } else {
    __trap();
  }
}

template <class T, class Out, LinearWgmmaTile tile>
cudaError_t launch_wgmma_tile(LinearWgmmaParams params, cudaStream_t stream) {
  constexpr WgmmaPolicy policy = policy_of(tile, sizeof(T) == 1);
  constexpr int kSharedBytes = sizeof(Storage<policy>);
  constexpr int64_t kTileK = kRowBytes / sizeof(T);
  static_assert(kSharedBytes <= 227 * 1024, "what a block of compute capability 9.0 has");
  constexpr int64_t kMaxTiles = std::numeric_limits<int32_t>::max();
  const LinearParams& p = params.linear;
  const int64_t tiles_m = (p.m - 1) / policy.tile_m + 1, tiles_n = (p.n - 1) / policy.tile_n + 1;
  // Tiles' coordinates are 32 bits wide, those of what lies past the end too.
  if (p.k > kMaxTiles - kTileK || tiles_m * policy.tile_m > kMaxTiles ||
      tiles_n * policy.tile_n > kMaxTiles || tiles_m > kMaxTiles / tiles_n ||
      p.num_members > kMaxTiles / (tiles_m * tiles_n)) {
    return cudaErrorInvalidConfiguration;
  }
  set_output_alignment(params.linear, sizeof(Out));
  const TileGrid grid{static_cast<uint32_t>(tiles_m), static_cast<uint32_t>(tiles_n),
                      static_cast<uint32_t>(tiles_m * tiles_n * p.num_members),
                      static_cast<int32_t>((p.k - 1) / kTileK + 1)};
  const auto kernel = linear_wgmma<T, Out, tile>;
  const cudaError_t status = allow_shared_bytes(kernel, kSharedBytes);
  if (status != cudaSuccess) return status;
  const uint32_t blocks = std::min(grid.count, static_cast<uint32_t>(params.num_multiprocessors));
  return launch_overlapping(kernel, blocks, kWgmmaThreads, kSharedBytes, stream, params, grid);
}

// One per element's type, in a file of its own.
cudaError_t launch_linear_wgmma_16(const LinearWgmmaParams& params, Dtype dtype,
                                   LinearWgmmaTile tile, cudaStream_t stream);
cudaError_t launch_linear_wgmma_tf32(const LinearWgmmaParams& params, LinearWgmmaTile tile,
                                     cudaStream_t stream);
cudaError_t launch_linear_wgmma_fp8(const LinearWgmmaParams& params, Dtype dtype, Dtype y_dtype,
                                    LinearWgmmaTile tile, cudaStream_t stream);

}  // namespace wide::kernels
