// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y[m, i, n] = activation(sum_k x[m, i, k] * weight[i, n, k] + bias[i, n]) for one to four rows m:
// bound by reading the weights once, with too few rows to be worth a tile.
//
// Plan: a group of 8 or 32 lanes computes four neighbouring outputs of all rows. Its lanes read 16
// contiguous bytes each of one weight row, four rows before any is used; the lanes of a
// multiprocessor have more in flight than memory can serve. x comes from the L1 cache, shared by
// all groups of a member. Each lane sums what it reads in order of k; the group's partial sums are
// added by a butterfly. Groups of 8 lanes are for rows of few bytes, too short for 32 lanes.
#include "kernels/linear/linear_gemv.hpp"

#include "kernels/arch/grid.cuh"
#include "kernels/arch/load.cuh"
#include "kernels/common/dispatch.hpp"
#include "kernels/common/vector_load.cuh"
#include "kernels/linear/linear_launch.cuh"
#include "kernels/linear/linear_tile.cuh"

namespace wide::kernels {

namespace {

constexpr int kThreads = 128;
constexpr int kOutputs = 4;           // per group
constexpr int kResidentBlocks = 8;    // per multiprocessor, most of these kernels' by registers
constexpr int kPrefetchBytes = 1024;  // of a weight row: a wide group's first four loads, or two
constexpr int kNarrowGroup = 8;       // lanes
constexpr int kWideGroup = 32;

constexpr int outputs_per_block(int group) {
  return kThreads / group * kOutputs;
}

/// Adds a lane's share of the sums from `at` on, in whole vectors; returns where it stopped.
template <class T, int kRows, int kGroup>
__device__ inline int64_t add_vectors(const Source<T>& x, const Source<T>& weight, int first,
                                      int64_t at, int64_t k, float (&sums)[kOutputs][kRows]) {
  constexpr int kSize = Vec16<T>::kSize;
#pragma unroll 2
  for (; at + kSize <= k; at += kGroup * kSize) {
    Vec16<T> weights[kOutputs];
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) {
      const int row = min(first + o, weight.num_rows - 1);
      weights[o] = load_vec16_here(weight.base + row * weight.row_stride + at);
    }
#pragma unroll
    for (int m = 0; m < kRows; ++m) {
      const int row = min(m, x.num_rows - 1);
      const Vec16<T> values = load_vec16_here(x.base + row * x.row_stride + at);
#pragma unroll
      for (int e = 0; e < kSize; ++e) {
#pragma unroll
        for (int o = 0; o < kOutputs; ++o) {
          sums[o][m] = fmaf(to_float(values.v[e]), to_float(weights[o].v[e]), sums[o][m]);
        }
      }
    }
  }
  return at;
}

/// The same element by element, in the same order: unaligned operands, or less than a vector.
template <class T, int kRows, int kGroup>
__device__ inline void add_elements(const Source<T>& x, const Source<T>& weight, int first,
                                    int64_t at, int64_t k, float (&sums)[kOutputs][kRows]) {
  constexpr int kSize = Vec16<T>::kSize;
#pragma unroll 1
  for (; at < k; at += kGroup * kSize) {
#pragma unroll 1
    for (int64_t e = at; e < min(at + kSize, k); ++e) {
      float values[kRows];
#pragma unroll
      for (int m = 0; m < kRows; ++m) {
        values[m] = to_float(arch::load(x.base + min(m, x.num_rows - 1) * x.row_stride + e));
      }
#pragma unroll
      for (int o = 0; o < kOutputs; ++o) {
        const int row = min(first + o, weight.num_rows - 1);
        const float w = to_float(arch::load(weight.base + row * weight.row_stride + e));
#pragma unroll
        for (int m = 0; m < kRows; ++m) sums[o][m] = fmaf(values[m], w, sums[o][m]);
      }
    }
  }
}

/// A one-dimensional grid of (member, outputs); tiles_m is 1.
template <class T, int kRows, int kGroup>
__global__ void __launch_bounds__(kThreads)
    linear_gemv(const __grid_constant__ LinearParams params, uint32_t, uint32_t tiles_n) {
  constexpr int kBlockOutputs = outputs_per_block(kGroup);
  const int64_t member = blockIdx.x / tiles_n;
  const int64_t first_n = static_cast<int64_t>(blockIdx.x % tiles_n) * kBlockOutputs;
  if (arch::is_of_first_blocks(kResidentBlocks)) {
    prefetch_weight_rows<T>(params, member, first_n, kBlockOutputs, 0, params.k, kPrefetchBytes);
  }
  arch::follow_grid();  // before a member's scale is read
  const TileOperands<T> tile = tile_operands<T>(params, member, 0, first_n, kRows, kBlockOutputs);
  const int lane = static_cast<int>(threadIdx.x) % kGroup;
  const int first = static_cast<int>(threadIdx.x) / kGroup * kOutputs;
  float sums[kOutputs][kRows] = {};
  int64_t at = lane * Vec16<T>::kSize;
  if (tile.x.is_aligned && tile.weight.is_aligned) {
    at = add_vectors<T, kRows, kGroup>(tile.x, tile.weight, first, at, params.k, sums);
  }
  add_elements<T, kRows, kGroup>(tile.x, tile.weight, first, at, params.k, sums);

  // In the end all lanes of a group hold its sums; lane m stores the four of row m.
  float four[kOutputs] = {};
#pragma unroll
  for (int m = 0; m < kRows; ++m) {
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) {
      float sum = sums[o][m];
#pragma unroll
      for (int distance = kGroup / 2; distance > 0; distance /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, distance);
      }
      if (lane == m) four[o] = sum;
    }
  }
  const int count = min(tile.y.num_columns - first, kOutputs);
  if (lane < tile.y.num_rows && count > 0) {
    store_run(tile.y, lane, first, count, four);
  }
}

template <class T, int kRows>
cudaError_t launch_rows(const LinearParams& params, cudaStream_t stream) {
  const bool is_narrow = params.k * static_cast<int64_t>(sizeof(T)) <= kWideGroup * 16 / 2;
  const auto launch = [&](auto* kernel, int group) {
    return launch_tiles(kernel, params, kMaxGemvRows, outputs_per_block(group), kThreads, 0,
                        stream);
  };
  return is_narrow ? launch(linear_gemv<T, kRows, kNarrowGroup>, kNarrowGroup)
                   : launch(linear_gemv<T, kRows, kWideGroup>, kWideGroup);
}

}  // namespace

cudaError_t launch_linear_gemv(LinearParams params, Dtype dtype, cudaStream_t stream) {
  if (params.num_members == 0 || params.m == 0 || params.n == 0) return cudaSuccess;
  if (params.m > kMaxGemvRows) return cudaErrorInvalidValue;
  return dispatch_float(dtype, [&]<class T>(std::type_identity<T>) {
    set_alignment(params, sizeof(T));
    return params.m == 1   ? launch_rows<T, 1>(params, stream)
           : params.m == 2 ? launch_rows<T, 2>(params, stream)
                           : launch_rows<T, 4>(params, stream);
  });
}

}  // namespace wide::kernels
