// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Batched GEMM on warp-level matrix instructions (mma.sync m16n8): y[m, i, n] =
// activation(sum_k x[m, i, k] * weight[i, n, k] + bias[i, n]), all members i in one launch.
//
// Plan: one thread block computes one tile of one member; the grid is one-dimensional over (member,
// tile), neighbours sharing their rows of the weight. Operand A feeds the instruction's 16 rows, B
// its 8 columns: x and weight, or, for few rows of x, weight and x, so that no row of an
// instruction is wasted. cp.async fills a ring of stages, each 128 bytes of k wide:
//
//   stage   s      s+1    s+2              copies in flight: stages - 1
//          [A|B]  [A|B]  [A|B] ...
//   warp    wait s, barrier, copy s+stages-1, ldmatrix and mma of s
//
// Warps divide A's rows, B's rows and, where tiles are small, each stage's k. Both operands
// have k contiguous, so ldmatrix without transposition fits A and B; tiles and their swizzle
// are linear_tile.cuh's. Finally the sums replace the operands in shared memory, one plane per
// share of k, are added in the order of planes, and neighbouring lanes store neighbouring
// outputs.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "kernels/arch/cp_async.cuh"
#include "kernels/arch/grid.cuh"
#include "kernels/arch/matrix.cuh"
#include "kernels/arch/target.cuh"
#include "kernels/linear/linear_launch.cuh"
#include "kernels/linear/linear_mma.hpp"
#include "kernels/linear/linear_tile.cuh"

namespace wide::kernels {

/// An operand's registers; `low` is the remainder of `high`, for arithmetic in two parts.
template <int kCount>
struct MmaFragment {
  uint32_t high[kCount], low[kCount];
};

template <class T>
struct MmaHalf {
  using Element = T;
  static constexpr int kStepsAtOnce =
      4;  // steps along a stage's k that are unrolled into one block
  template <int kCount>
  __device__ static void prepare(MmaFragment<kCount>&) {}
  __device__ static void multiply(float (&d)[4], const MmaFragment<4>& a, const MmaFragment<2>& b) {
    arch::mma_m16n8k16<T>(d, a.high, b.high);
  }
};

struct MmaTf32 {
  using Element = float;
  static constexpr int kStepsAtOnce = 4;
  template <int kCount>
  __device__ static void prepare(MmaFragment<kCount>& f) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) f.high[i] = arch::to_tf32(f.high[i]);
  }
  __device__ static void multiply(float (&d)[4], const MmaFragment<4>& a, const MmaFragment<2>& b) {
    arch::mma_m16n8k8_tf32(d, a.high, b.high);
  }
};

/// x = high + low up to 2^-22 |x|; the product of the lows, at most 2^-22 of the whole, is omitted.
/// Low parts are scaled by 2^13: otherwise those of small x would be tf32 subnormals, whose last
/// bit is 2^13 times fp32's. Each instruction truncates its terms at the largest one's 25th bit
/// (24th before compute capability 9.0), and the result toward zero (arXiv:2511.10909):
/// accumulating all of k there would lose more with every instruction, and more than fp32 does. So
/// only 8 of k are accumulated there, and added up in fp32.
struct MmaTf32x3 {
  using Element = float;
  static constexpr int kStepsAtOnce = 1;  // both parts take registers
  static constexpr float kLowFactor = 0x1p13f;
  template <int kCount>
  __device__ static void prepare(MmaFragment<kCount>& f) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const float value = __uint_as_float(f.high[i]);
      f.high[i] = arch::to_tf32(f.high[i]);
      const float low = kLowFactor * (value - __uint_as_float(f.high[i]));
      // Infinity has remainder 0, not infinity - infinity; nor is there room for the factor from
      // 2^126 on.
      f.low[i] = arch::to_tf32(__float_as_uint(fabsf(low) < INFINITY ? low : 0.0f));
    }
  }
  __device__ static void multiply(float (&d)[4], const MmaFragment<4>& a, const MmaFragment<2>& b) {
    float low[4] = {}, part[4] = {};
    arch::mma_m16n8k8_tf32(low, a.low, b.high);
    arch::mma_m16n8k8_tf32(low, a.high, b.low);
    arch::mma_m16n8k8_tf32(part, a.high, b.high);
#pragma unroll
    for (int i = 0; i < 4; ++i) d[i] += fmaf(low[i], 1.0f / kLowFactor, part[i]);
  }
};

struct MmaPolicy {
  bool a_is_weight;
  int tile_a, tile_b;
  int warps_a, warps_b, warps_k;
  int stages;
  int blocks_per_multiprocessor;  // as far as registers allow

  constexpr int threads() const { return 32 * warps_a * warps_b * warps_k; }
  constexpr int tile_m() const { return a_is_weight ? tile_b : tile_a; }
  constexpr int tile_n() const { return a_is_weight ? tile_a : tile_b; }
  constexpr int blocks_a() const { return tile_a / warps_a / 16; }  // per warp, of instructions
  constexpr int blocks_b() const { return tile_b / warps_b / 8; }
  constexpr int a_bytes() const { return tile_a * kRowBytes; }
  constexpr int stage_bytes() const { return (tile_a + tile_b) * kRowBytes; }
  /// Floats in a row of sums, padded so that a warp's stores have no bank conflicts.
  constexpr int pitch() const { return tile_n() + (a_is_weight ? 4 : 8); }
  constexpr int sums_bytes() const { return warps_k * tile_m() * pitch() * 4; }
  constexpr int shared_bytes() const { return std::max(stages * stage_bytes(), sums_bytes()); }
  /// Where all of k is `steps` stages, fewer than the ring's: more blocks fit.
  constexpr int shared_bytes(int64_t steps) const {
    const auto used = static_cast<int>(std::min<int64_t>(stages, steps));
    return std::max(used * stage_bytes(), sums_bytes());
  }
};

/// Kernels are named by the tile: nvcc 13.0's host stubs cannot spell a class-type argument.
constexpr MmaPolicy policy_of(LinearMmaTile tile) {
  switch (tile) {
    case LinearMmaTile::m64n64:  // 64 KiB, 32 x 32 a warp
      return {false, 64, 64, 2, 2, 1, 4, 3};
    case LinearMmaTile::m128n64:  // 72 KiB, 64 x 32 a warp
      return {false, 128, 64, 2, 2, 1, 3, 2};
    case LinearMmaTile::m128n128:  // 96 KiB, 64 x 32 a warp
      return {false, 128, 128, 2, 4, 1, 3, 2};
    case LinearMmaTile::m8n64:  // 54 KiB: 45 in flight while a stage is multiplied
      return {true, 64, 8, 4, 1, 1, 6, 4};
    case LinearMmaTile::m16n64:  // 60 KiB
      return {true, 64, 16, 4, 1, 1, 6, 4};
    case LinearMmaTile::m32n64:  // 72 KiB
      return {true, 64, 32, 4, 1, 1, 6, 4};
    case LinearMmaTile::m16n16:  // 24 KiB
      return {true, 16, 16, 1, 1, 4, 6, 7};
  }
  return {};
}

/// The lane's row and chunk for ldmatrix's four matrices: for A rows 0-7 and 8-15 of one chunk of
/// k, then of the next; for B both chunks of rows 0-7, then of rows 8-15.
__device__ inline const char* a_row(const char* tile, int first_row, int chunk, int lane) {
  return tile + chunk_offset<1>(first_row + lane % 16, chunk + lane / 16);
}
__device__ inline const char* b_row(const char* tile, int first_row, int chunk, int lane) {
  return tile + chunk_offset<1>(first_row + lane / 16 * 8 + lane % 8, chunk + lane / 8 % 2);
}

/// A warp's share of a block.
struct MmaWarp {
  int lane, first_a, first_b, k;
};

template <MmaPolicy policy>
__device__ inline MmaWarp locate_warp() {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int b = warp % policy.warps_b, a = warp / policy.warps_b % policy.warps_a;
  return {static_cast<int>(threadIdx.x) % 32, a * policy.blocks_a() * 16, b * policy.blocks_b() * 8,
          warp / (policy.warps_a * policy.warps_b)};
}

/// B's fragments for one instruction's k: the chunk and the next.
template <class Math, MmaPolicy policy>
__device__ inline void load_b(const char* tile, const MmaWarp& warp, int chunk,
                              MmaFragment<2> (&b)[policy.blocks_b()]) {
  if constexpr (policy.blocks_b() == 1) {
    arch::ldmatrix(b[0].high, b_row(tile, warp.first_b, chunk, warp.lane % 16));
    Math::prepare(b[0]);
  } else {
#pragma unroll
    for (int j = 0; j < policy.blocks_b(); j += 2) {
      uint32_t both[4];
      arch::ldmatrix(both, b_row(tile, warp.first_b + 8 * j, chunk, warp.lane));
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        b[j + half].high[0] = both[2 * half], b[j + half].high[1] = both[2 * half + 1];
        Math::prepare(b[j + half]);
      }
    }
  }
}

template <class Math, MmaPolicy policy>
__device__ inline void multiply_stage(const char* a_tile, const char* b_tile, const MmaWarp& warp,
                                      float (&sums)[policy.blocks_a()][policy.blocks_b()][4]) {
  constexpr int kSteps = kChunks / 2 / policy.warps_k;  // an instruction's k is two chunks
#pragma unroll Math::kStepsAtOnce
  for (int step = 0; step < kSteps; ++step) {
    const int chunk = 2 * (step * policy.warps_k + warp.k);
    MmaFragment<4> a[policy.blocks_a()];
    MmaFragment<2> b[policy.blocks_b()];
#pragma unroll
    for (int i = 0; i < policy.blocks_a(); ++i) {
      arch::ldmatrix(a[i].high, a_row(a_tile, warp.first_a + 16 * i, chunk, warp.lane));
      Math::prepare(a[i]);
    }
    load_b<Math, policy>(b_tile, warp, chunk, b);
#pragma unroll
    for (int i = 0; i < policy.blocks_a(); ++i) {
#pragma unroll
      for (int j = 0; j < policy.blocks_b(); ++j) Math::multiply(sums[i][j], a[i], b[j]);
    }
  }
}

/// Writes to shared memory, row-major by rows of x: a lane's four of an instruction are rows l / 4
/// and l / 4 + 8 of A, columns 2 (l % 4) and the next of B.
template <MmaPolicy policy>
__device__ inline void put_sums(float* shared, const MmaWarp& warp,
                                const float (&sums)[policy.blocks_a()][policy.blocks_b()][4]) {
  constexpr int pitch = policy.pitch();
  float* plane = shared + warp.k * policy.tile_m() * pitch;
#pragma unroll
  for (int i = 0; i < policy.blocks_a(); ++i) {
#pragma unroll
    for (int j = 0; j < policy.blocks_b(); ++j) {
      const int a = warp.first_a + 16 * i + warp.lane / 4;
      const int b = warp.first_b + 8 * j + warp.lane % 4 * 2;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float first = sums[i][j][2 * half], second = sums[i][j][2 * half + 1];
        if constexpr (policy.a_is_weight) {
          plane[b * pitch + a + 8 * half] = first;
          plane[(b + 1) * pitch + a + 8 * half] = second;
        } else {
          *reinterpret_cast<float2*>(plane + (a + 8 * half) * pitch + b) =
              make_float2(first, second);
        }
      }
    }
  }
}

/// Stores a tile's share of k, written by put_sums(), to its plane: no epilogue, neighbouring lanes
/// store neighbouring sums.
template <MmaPolicy policy>
__device__ inline void store_share(const LinearParams& params, int plane, int64_t member,
                                   int64_t first_m, int64_t first_n, const float* sums) {
  const int num_rows =
      static_cast<int>(min(params.m - first_m, static_cast<int64_t>(policy.tile_m())));
  const int num_columns =
      static_cast<int>(min(params.n - first_n, static_cast<int64_t>(policy.tile_n())));
  float* to = params.planes.sums +
              ((plane * params.m + first_m) * params.num_members + member) * params.n + first_n;
#pragma unroll 1
  for (int index = static_cast<int>(threadIdx.x); index < policy.tile_m() * policy.tile_n();
       index += policy.threads()) {
    const int row = index / policy.tile_n(), column = index % policy.tile_n();
    if (row >= num_rows || column >= num_columns) continue;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < policy.warps_k; ++k) {
      sum += sums[(k * policy.tile_m() + row) * policy.pitch() + column];
    }
    to[row * params.num_members * params.n + column] = sum;
  }
}

/// One of two that may differ in type.
template <bool is_first, class First, class Second>
__device__ inline const auto& either(const First& first, const Second& second) {
  if constexpr (is_first) {
    return first;
  } else {
    return second;
  }
}

/// Steps along k, kRowBytes of it each.
struct MmaShare {
  int64_t begin, num_steps;
};
template <MmaPolicy policy, int per_row>
__device__ inline MmaShare share_of_k(const LinearParams& params, int plane) {
  MmaShare all{0, (params.k + per_row - 1) / per_row};
  if constexpr (policy.a_is_weight) {
    if (params.planes.count > 0) {
      const int64_t share = (all.num_steps + params.planes.count - 1) / params.planes.count;
      const int64_t begin = plane * share;
      return {begin, max(min(all.num_steps - begin, share), int64_t{0})};
    }
  }
  return all;
}

/// Before wait_for_grid(): prefetches the weights of the ring's first round, of few rows of x,
/// which hardly take longer than their weight.
template <class T, MmaPolicy policy>
__device__ inline void prefetch_mma_weights(const LinearParams& params, int64_t member,
                                            int64_t first_n, int plane) {
  if constexpr (policy.a_is_weight) {
    static_assert(policy.threads() >= policy.tile_a);
    if (!arch::is_of_first_blocks(policy.blocks_per_multiprocessor)) return;
    constexpr int per_row = kRowBytes / static_cast<int>(sizeof(T));
    const auto [begin, num_steps] = share_of_k<policy, per_row>(params, plane);
    const auto stages = static_cast<int>(min(num_steps, static_cast<int64_t>(policy.stages)));
    prefetch_weight_rows<T>(params, member, first_n, policy.tile_a, begin * per_row,
                            params.k - begin * per_row, stages * kRowBytes);
  }
}

/// Computes the tile of `member` at (first_m, first_n), for one share of k where that is divided,
/// by one block with the policy's threads and bytes of shared memory. `rows`: which rows of x and y
/// these are.
template <class Math, LinearMmaTile tile_shape, class Rows = TileRows>
__device__ inline void compute_mma_tile(const LinearParams& params, int64_t member, int64_t first_m,
                                        int64_t first_n, char* shared, int plane = 0,
                                        const Rows& rows = {}) {
  using T = typename Math::Element;
  constexpr MmaPolicy policy = policy_of(tile_shape);
  constexpr int per_row = kRowBytes / static_cast<int>(sizeof(T));
  constexpr bool kHasFewRows = policy.a_is_weight;
  const TileOperands<T> operands =
      tile_operands<T>(params, member, first_m, first_n, policy.tile_m(), policy.tile_n());
  const auto& x = rows.template source<policy.tile_m(), policy.threads()>(operands.x);
  const auto& a = either<policy.a_is_weight>(operands.weight, x);
  const auto& b = either<policy.a_is_weight>(x, operands.weight);
  const MmaWarp warp = locate_warp<policy>();

  const auto [begin, num_steps] = share_of_k<policy, per_row>(params, plane);

  // Start the first stages.
  const auto load_step = [&](int64_t step, int stage) {
    if (step < num_steps) {
      char* buffer = shared + stage * policy.stage_bytes();
      const int64_t first_k = (begin + step) * per_row, k_left = params.k - first_k;
      if constexpr (kHasFewRows) {  // a weight is read by one block, or by two at a time
        load_tile<T, policy.tile_a, 1, policy.threads()>(buffer, a, first_k, k_left,
                                                         arch::CacheHint(true));
      } else {
        load_tile<T, policy.tile_a, 1, policy.threads()>(buffer, a, first_k, k_left);
      }
      load_tile<T, policy.tile_b, 1, policy.threads()>(buffer + policy.a_bytes(), b, first_k,
                                                       k_left);
    }
    arch::cp_async_commit();  // empty groups keep the pending count
  };
#pragma unroll 1
  for (int stage = 0; stage < policy.stages - 1; ++stage) load_step(stage, stage);

  // Multiply one stage while the others arrive. The barrier also ensures that the stage that is
  // filled next is no longer read.
  float sums[policy.blocks_a()][policy.blocks_b()][4] = {};
  int stage = 0;
  for (int64_t step = 0; step < num_steps; ++step) {
    arch::cp_async_wait<policy.stages - 2>();
    __syncthreads();
    load_step(step + policy.stages - 1, stage == 0 ? policy.stages - 1 : stage - 1);
    const char* buffer = shared + stage * policy.stage_bytes();
    multiply_stage<Math, policy>(buffer, buffer + policy.a_bytes(), warp, sums);
    stage = stage == policy.stages - 1 ? 0 : stage + 1;
  }

  // The sums replace the operands. Only empty groups are still pending.
  __syncthreads();
  auto* tile_sums = reinterpret_cast<float*>(shared);
  put_sums<policy>(tile_sums, warp, sums);
  __syncthreads();
  if constexpr (kHasFewRows) {
    if (params.planes.count > 0) {
      return store_share<policy>(params, plane, member, first_m, first_n, tile_sums);
    }
  }
  store_sums<policy.tile_m(), policy.tile_n(), policy.pitch(), policy.warps_k, policy.threads()>(
      rows.destination(operands.y), tile_sums, static_cast<int>(threadIdx.x));
}

/// Before compute capability 9.0 neither shared memory nor ptxas's registers allow a fourth block
/// of these.
template <LinearMmaTile tile>
constexpr int kResidentMmaBlocks =
    !arch::kHasSm90 && (tile == LinearMmaTile::m16n64 || tile == LinearMmaTile::m32n64)
        ? 3
        : policy_of(tile).blocks_per_multiprocessor;

template <class Math, LinearMmaTile tile_shape>
__global__ void __launch_bounds__(policy_of(tile_shape).threads(), kResidentMmaBlocks<tile_shape>)
    linear_mma(const __grid_constant__ LinearParams params, uint32_t tiles_m, uint32_t tiles_n) {
  constexpr MmaPolicy policy = policy_of(tile_shape);
  extern __shared__ __align__(128) char shared[];
  const uint32_t share = blockIdx.x / (tiles_m * tiles_n), tile = blockIdx.x % (tiles_m * tiles_n);
  const auto num_members = static_cast<uint32_t>(params.num_members);
  const int64_t member = share % num_members;
  const int64_t first_n = static_cast<int64_t>(tile / tiles_m) * policy.tile_n();
  const int plane = static_cast<int>(share / num_members);
  prefetch_mma_weights<typename Math::Element, policy>(params, member, first_n, plane);
  arch::follow_grid();
  compute_mma_tile<Math, tile_shape>(params, member,
                                     static_cast<int64_t>(tile % tiles_m) * policy.tile_m(),
                                     first_n, shared, plane);
}

template <class Math, LinearMmaTile tile>
cudaError_t launch_linear_mma(LinearParams params, cudaStream_t stream) {
  constexpr MmaPolicy policy = policy_of(tile);
  static_assert(policy.tile_m() == tile_m(tile) && policy.tile_n() == tile_n(tile));
  constexpr int64_t kElement = sizeof(typename Math::Element), kStep = kRowBytes / kElement;
  set_alignment(params, kElement);
  return launch_tiles(linear_mma<Math, tile>, params, policy.tile_m(), policy.tile_n(),
                      policy.threads(), policy.shared_bytes((params.k + kStep - 1) / kStep),
                      stream);
}

/// Calls f.template operator()<Math>() for the runtime value, unless that is tf32x3.
template <class F>
cudaError_t with_plain_math(LinearMath math, const F& f) {
  switch (math) {
    case LinearMath::fp16:
      return f.template operator()<MmaHalf<__half>>();
    case LinearMath::bf16:
      return f.template operator()<MmaHalf<__nv_bfloat16>>();
    case LinearMath::tf32:
      return f.template operator()<MmaTf32>();
    case LinearMath::tf32x3:
      break;
  }
  return cudaErrorInvalidValue;
}

/// The same for all values.
template <class F>
cudaError_t with_math(LinearMath math, const F& f) {
  return math == LinearMath::tf32x3 ? f.template operator()<MmaTf32x3>() : with_plain_math(math, f);
}

}  // namespace wide::kernels
