// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// linear on quantised weights. Up to 64 rows of x per member are one tile, bound by
// reading the blobs once; more are adjacent tiles that find the blobs in L2 and decode
// them again.
//
// Plan: like small_m (linear_mma.cuh), the weight on the 16-row side of mma.m16n8k16, one block per
// tile of outputs and rows of one member, a ring of stages filled by cp.async. The difference is
// the weight: a warp's 16 outputs are a strip of the blob, contiguous over k including its scales,
// which is copied to shared memory unchanged. A lane reads 16 bytes, its part of four instructions,
// converts the codes to 16-bit values (linear_decode.cuh), and multiplies them by x. The sums over
// a tile of 64 inputs are then scaled and added to the totals in fp32: scale * code is never
// rounded to 16 bits.
//
//   stage   x: `tiles` tiles of rows x 64 k | strip 0 | strip 1 | ..     strip: scales, tile, ..
//   warp    wait, barrier, copy the stage after next; per tile: codes, 4 x (decode, mma), scale
//
// Where one member has few outputs, the four warps divide a stage's tiles instead of outputs, and
// their totals are added in the order of warps.
#pragma once

#include "kernels/arch/grid.cuh"
#include "kernels/linear/linear_decode.cuh"
#include "kernels/linear/linear_mma.cuh"
#include "kernels/linear/linear_weight_only.hpp"

namespace wide::kernels {

struct WeightOnlyPolicy {
  MmaPolicy mma;  ///< how warps divide outputs, rows of x and k; its stages
  int tiles;      ///< of 64 inputs, per stage

  constexpr int strips() const { return mma.warps_a; }
  constexpr int x_bytes() const { return tiles * mma.tile_b * kRowBytes; }
  /// Room for a strip's part of a stage if every tile has its own scales.
  constexpr int strip_bytes(WeightFormat format) const {
    return tiles * (quantized_tile_bytes(format) + kQuantizedScaleBytes);
  }
  /// A strip's part of a stage.
  constexpr int strip_stage_bytes(WeightFormat format, const WeightStrips& of) const {
    return tiles * quantized_tile_bytes(format) +
           (tiles >> (of.tiles_per_group - 1)) * kQuantizedScaleBytes;
  }
  constexpr int stage_bytes(WeightFormat format) const {
    return x_bytes() + strips() * strip_bytes(format);
  }
  constexpr int shared_bytes(WeightFormat format) const {
    return std::max(mma.stages * stage_bytes(format), mma.sums_bytes());
  }
};

constexpr WeightOnlyPolicy policy_of(LinearWeightOnlyTile tile) {
  // Four stages: 33 KiB at 4 bits, 49 KiB at 8, three quarters of them in flight in each block of a
  // multiprocessor.
  switch (tile) {
    case LinearWeightOnlyTile::m16n64:
      return {{true, 64, 16, 4, 1, 1, 4, 4}, 2};
    case LinearWeightOnlyTile::m32n64:
      return {{true, 64, 32, 4, 1, 1, 4, 3}, 2};
    case LinearWeightOnlyTile::m64n64:
      return {{true, 64, 64, 4, 1, 1, 4, 2}, 2};
    case LinearWeightOnlyTile::m16n16:
      return {{true, 16, 16, 1, 1, 4, 4, 4}, 4};
  }
  return {};
}

/// What remains to be loaded of a warp's strip.
struct Strip {
  const char* next;  ///< contiguous over k, scales before each group
  int64_t left;      ///< bytes; 0 from the start where the member has no such outputs
};

/// The strip of the outputs from n on.
__device__ inline Strip strip_of(const LinearParams& params, const WeightStrips& strips,
                                 int64_t member, int64_t n) {
  return {static_cast<const char*>(params.weight) + member * params.weight_strides.member +
              n / kQuantizedStrip * strips.bytes,
          n < params.n ? strips.bytes : 0};
}

/// Starts loading the strip's bytes of `tiles` tiles, `stage_bytes` or what is left, by `threads`
/// threads.
template <WeightFormat format, int tiles, int threads>
__device__ inline void load_strip(char* to, Strip& strip, int stage_bytes, int thread,
                                  const arch::CacheHint& hint) {
  constexpr int most = tiles * (quantized_tile_bytes(format) + kQuantizedScaleBytes) / kChunkBytes;
  const int bytes = static_cast<int>(min(strip.left, static_cast<int64_t>(stage_bytes)));
#pragma unroll
  for (int i = 0; i < (most + threads - 1) / threads; ++i) {
    const int place = (thread + i * threads) * kChunkBytes;
    if (place < bytes) arch::cp_async_16(to + place, strip.next + place, kChunkBytes, hint);
  }
  strip.next += bytes;
  strip.left -= bytes;
}

/// totals += scale * (codes of one tile times x).
template <class T, WeightFormat format, WeightOnlyPolicy policy>
__device__ inline void multiply_tile(const char* tile, const char* scales, const char* x_tile,
                                     const MmaWarp& warp,
                                     float (&totals)[1][policy.mma.blocks_b()][4]) {
  constexpr int kBlocks = policy.mma.blocks_b();
  const LaneCodes<format> codes(tile, warp.lane);
  float sums[kBlocks][4] = {};
#pragma unroll
  for (int step = 0; step < kChunks / 2; ++step) {
    MmaFragment<4> a;
    MmaFragment<2> b[kBlocks];
    decode_step<T>(codes, step, a.high);
    load_b<MmaHalf<T>, policy.mma>(x_tile, warp, 2 * step, b);
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) MmaHalf<T>::multiply(sums[j], a, b[j]);
  }
  // For outputs l / 4 and l / 4 + 8, adjacent; bf16 is the upper half of fp32.
  const uint32_t both = *reinterpret_cast<const uint32_t*>(scales + warp.lane / 4 * 4);
  const float low = __uint_as_float(both << 16), high = __uint_as_float(both & 0xffff0000u);
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      totals[0][j][e] = fmaf(e < 2 ? low : high, sums[j][e], totals[0][j][e]);
    }
  }
}

/// Computes the tile of `member` at (first_m, first_n) by one block with the policy's threads and
/// bytes of shared memory. `is_read_once`: whether no other block reads these weights. `rows`:
/// which rows of x and y these are.
template <class T, WeightFormat format, LinearWeightOnlyTile tile_shape, class Rows = TileRows>
__device__ inline void compute_weight_only_tile(const LinearParams& params,
                                                const WeightStrips& strips, int64_t member,
                                                int64_t first_m, int64_t first_n, bool is_read_once,
                                                char* shared, const Rows& rows = {}) {
  constexpr WeightOnlyPolicy policy = policy_of(tile_shape);
  constexpr int kStages = policy.mma.stages, kThreads = policy.mma.threads();
  constexpr int kRows = policy.mma.tile_b, kTileBytes = quantized_tile_bytes(format);

  // The rows of x, and the warp's strip.
  const MmaWarp warp = locate_warp<policy.mma>();
  const Source<T> tile_x{static_cast<const T*>(params.x) + member * params.x_strides.member +
                             first_m * params.x_strides.row,
                         params.x_strides.row,
                         static_cast<int>(min(params.m - first_m, static_cast<int64_t>(kRows))),
                         params.x_is_aligned};
  const auto& x = rows.template source<kRows, kThreads>(tile_x);
  const bool has_strip = first_n + warp.first_a < params.n;
  Strip strip = strip_of(params, strips, member, first_n + warp.first_a);

  // A group is one tile or two, and a stage begins with one: all stages have the same size.
  const int pairs = strips.tiles_per_group - 1;  // 1: tile t is of group t / 2
  const int strip_stage_bytes = policy.strip_stage_bytes(format, strips);

  // Start the first stages.
  const int64_t num_tiles = (params.k + kQuantizedTile - 1) / kQuantizedTile;
  const int64_t num_steps = (num_tiles + policy.tiles - 1) / policy.tiles;
  const arch::CacheHint hint(is_read_once);
  const int strip_place =
      policy.x_bytes() + warp.first_a / kQuantizedStrip * policy.strip_bytes(format);
  const auto load_step = [&](int64_t step, int stage) {
    if (step < num_steps) {
      char* buffer = shared + stage * policy.stage_bytes(format);
      const int64_t first_tile = step * policy.tiles;
      load_strip<format, policy.tiles, 32 * policy.mma.warps_k>(
          buffer + strip_place, strip, strip_stage_bytes, warp.k * 32 + warp.lane, hint);
#pragma unroll
      for (int t = 0; t < policy.tiles; ++t) {
        const int64_t first_k = (first_tile + t) * kQuantizedTile;
        load_tile<T, kRows, 1, kThreads>(buffer + t * kRows * kRowBytes, x, first_k,
                                         params.k - first_k);
      }
    }
    arch::cp_async_commit();  // empty groups keep the pending count
  };
#pragma unroll 1
  for (int stage = 0; stage < kStages - 1; ++stage) load_step(stage, stage);

  // Multiply one stage while the others arrive. The barrier also ensures that the stage that is
  // filled next is no longer read.
  float totals[1][policy.mma.blocks_b()][4] = {};
  int stage = 0;
  for (int64_t step = 0; step < num_steps; ++step) {
    arch::cp_async_wait<kStages - 2>();
    __syncthreads();
    load_step(step + kStages - 1, stage == 0 ? kStages - 1 : stage - 1);
    const char* buffer = shared + stage * policy.stage_bytes(format);
    const int tiles =
        static_cast<int>(min(num_tiles - step * policy.tiles, static_cast<int64_t>(policy.tiles)));
#pragma unroll
    for (int i = 0; i < policy.tiles / policy.mma.warps_k; ++i) {
      const int t = i * policy.mma.warps_k + warp.k;
      if (!has_strip || t >= tiles) break;
      const int group = t >> pairs, first_of_group = group << pairs;
      const char* scales =
          buffer + strip_place + first_of_group * kTileBytes + group * kQuantizedScaleBytes;
      const char* tile = scales + kQuantizedScaleBytes + (t - first_of_group) * kTileBytes;
      multiply_tile<T, format, policy>(tile, scales, buffer + t * kRows * kRowBytes, warp, totals);
    }
    stage = stage == kStages - 1 ? 0 : stage + 1;
  }

  // The totals replace the operands. Only empty groups are still pending.
  __syncthreads();
  auto* tile_sums = reinterpret_cast<float*>(shared);
  put_sums<policy.mma>(tile_sums, warp, totals);
  __syncthreads();
  const Destination<T> y =
      tile_destination<T>(params, member, first_m, first_n, kRows, policy.mma.tile_n());
  store_sums<kRows, policy.mma.tile_n(), policy.mma.pitch(), policy.mma.warps_k, kThreads>(
      rows.destination(y), tile_sums, static_cast<int>(threadIdx.x));
}

/// Before wait_for_grid(): prefetches the tile's strips of the ring's first round, a lane each.
template <WeightFormat format, WeightOnlyPolicy policy>
__device__ inline void prefetch_strips(const LinearWeightOnlyParams& params, int64_t member,
                                       int64_t first_n) {
  const auto index = static_cast<int>(threadIdx.x);
  if (index >= policy.strips() || !arch::is_of_first_blocks(policy.mma.blocks_per_multiprocessor)) {
    return;
  }
  const Strip strip = strip_of(params, params.strips, member, first_n + index * kQuantizedStrip);
  const int64_t round = policy.mma.stages * policy.strip_stage_bytes(format, params.strips);
  arch::prefetch_bulk(strip.next, static_cast<uint32_t>(min(strip.left, round)));
}

/// 1-D grid of (member, outputs, rows): blocks that read the same weights are adjacent.
template <class T, WeightFormat format, LinearWeightOnlyTile tile_shape>
__global__ void __launch_bounds__(policy_of(tile_shape).mma.threads(),
                                  policy_of(tile_shape).mma.blocks_per_multiprocessor)
    linear_weight_only(const __grid_constant__ LinearWeightOnlyParams params, uint32_t tiles_m,
                       uint32_t tiles_n) {
  constexpr WeightOnlyPolicy policy = policy_of(tile_shape);
  extern __shared__ __align__(128) char shared[];
  const uint32_t tile_of_members = blockIdx.x / tiles_m;
  const int64_t member = tile_of_members / tiles_n;
  const int64_t first_n = static_cast<int64_t>(tile_of_members % tiles_n) * policy.mma.tile_n();
  prefetch_strips<format, policy>(params, member, first_n);
  arch::follow_grid();
  compute_weight_only_tile<T, format, tile_shape>(
      params, params.strips, member,
      static_cast<int64_t>(blockIdx.x % tiles_m) * policy.mma.tile_m(), first_n, tiles_m == 1,
      shared);
}

template <class T, WeightFormat format, LinearWeightOnlyTile tile>
cudaError_t launch_tile(LinearWeightOnlyParams params, cudaStream_t stream) {
  constexpr WeightOnlyPolicy policy = policy_of(tile);
  static_assert(policy.mma.tile_m() == tile_m(tile) && policy.mma.tile_n() == tile_n(tile));
  static_assert(policy.tiles % 2 == 0, "a stage begins with a group");
  set_alignment(params, sizeof(T));
  return launch_tiles(linear_weight_only<T, format, tile>, params, policy.mma.tile_m(),
                      policy.mma.tile_n(), policy.mma.threads(), policy.shared_bytes(format),
                      stream);
}

template <class T, WeightFormat format>
cudaError_t launch_format(const LinearWeightOnlyParams& params, LinearWeightOnlyTile tile,
                          cudaStream_t stream) {
  using enum LinearWeightOnlyTile;
  switch (tile) {
    case m16n64:
      return launch_tile<T, format, m16n64>(params, stream);
    case m32n64:
      return launch_tile<T, format, m32n64>(params, stream);
    case m64n64:
      return launch_tile<T, format, m64n64>(params, stream);
    case m16n16:
      return launch_tile<T, format, m16n16>(params, stream);
  }
  return cudaErrorInvalidValue;
}

/// Calls f.template operator()<format>() for the runtime value.
template <class F>
cudaError_t with_format(WeightFormat format, F f) {
  switch (format) {
    case WeightFormat::packed:
      return cudaErrorInvalidValue;
    case WeightFormat::fp8_e4m3:
      return f.template operator()<WeightFormat::fp8_e4m3>();
    case WeightFormat::int8:
      return f.template operator()<WeightFormat::int8>();
    case WeightFormat::fp6_e3m2:
      return f.template operator()<WeightFormat::fp6_e3m2>();
    case WeightFormat::int4:
      return f.template operator()<WeightFormat::int4>();
    case WeightFormat::fp4_e2m1:
      return f.template operator()<WeightFormat::fp4_e2m1>();
  }
  return cudaErrorInvalidValue;
}

template <class T>
cudaError_t launch_type(const LinearWeightOnlyParams& params, WeightFormat format,
                        LinearWeightOnlyTile tile, cudaStream_t stream) {
  return with_format(format, [&]<WeightFormat kFormat>() {
    return launch_format<T, kFormat>(params, tile, stream);
  });
}

/// One per file, to compile in parallel.
cudaError_t launch_linear_weight_only_fp16(const LinearWeightOnlyParams& params,
                                           WeightFormat format, LinearWeightOnlyTile tile,
                                           cudaStream_t stream);
cudaError_t launch_linear_weight_only_bf16(const LinearWeightOnlyParams& params,
                                           WeightFormat format, LinearWeightOnlyTile tile,
                                           cudaStream_t stream);

}  // namespace wide::kernels
