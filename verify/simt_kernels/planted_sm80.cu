// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Two kernels as they are written for sm_80, each right for kBug = 0 and with one planted bug for
// every other value: what the simulated GPU must find. verify/simulator/simt_planted_test.cpp says
// how.
#include <cuda_bf16.h>

#include <cstdint>

#include "kernels/arch/cp_async.cuh"
#include "kernels/arch/matrix.cuh"

namespace wide::planted {

using Element = __nv_bfloat16;
constexpr uint32_t kFullMask = 0xffffffffu;

// ---- the mean of every row: a warp-wide sum, then one over the warps

template <int kBug>
__global__ void __launch_bounds__(128) row_mean(const float* x, float* y, int columns) {
  __shared__ float sums[4];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const float* row = x + int64_t{blockIdx.x} * columns;
  float sum = 0.0f;
  const int end = kBug == 1 ? columns + 1 : columns;  // 1: reads beyond the last row's end
  for (int c = thread; c < end; c += 128) sum += row[c];
  const uint32_t mask =
      kBug == 2 ? 0x0000ffffu : kFullMask;  // 2: half of the lanes are not in the mask
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(mask, sum, distance);
  if (lane == 0) sums[warp] = sum;
  if (kBug != 3) __syncthreads();  // 3: no barrier between writing and reading the sums
  if (kBug == 4 && lane < 16) __syncthreads();  // 4: a barrier that half of a warp reaches
  if (thread == 0) {
    float total = 0.0f;
    for (int i = 0; i < (kBug == 5 ? 5 : 4); ++i) total += sums[i];  // 5: reads behind the array
    y[kBug == 6 ? 0 : blockIdx.x] =
        total / static_cast<float>(columns);  // 6: all blocks write y[0]
  }
}

// ---- c [m, n] = a [m, k] b [n, k]^T in bf16, 64 x 64 tiles, cp.async in three stages, mma.sync

constexpr int kTile = 64, kStep = 32, kStages = 3, kThreads = 128;
constexpr int kRowBytes = kStep * 2;

/// 16-byte pieces of a row change places so that eight rows of one column use all banks.
template <int kBug>
__device__ int piece_offset(int row, int piece, bool is_read) {
  const int shift = kBug == 7 && is_read ? 0 : row / 2 % 4;  // 7: read without the permutation
  return row * kRowBytes + ((piece ^ shift) * 16);
}

template <int kBug>
__device__ void load_tile(char* to, const Element* from, int first_row, int rows, int k,
                          int first_k) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile * 4; i += kThreads) {
    const int row = i / 4, piece = i % 4;
    const bool exists =
        (kBug == 8 || first_row + row < rows) && first_k + piece * 8 < k;  // 8: no row bound
    const Element* source =
        exists ? from + int64_t{first_row + row} * k + first_k + piece * 8 : from;
    kernels::arch::cp_async_16(to + piece_offset<kBug>(row, piece, false), source, exists ? 16 : 0);
  }
}

template <int kBug>
__device__ void multiply(const char* a_tile, const char* b_tile, float (&sums)[8][4]) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  for (int k = 0; k < kStep; k += 16) {
    uint32_t a[4];
    const int a_row = warp * 16 + lane % 16, a_piece = k / 8 + lane / 16;
    kernels::arch::ldmatrix(a, a_tile + piece_offset<kBug>(a_row, a_piece, true));
    for (int n = 0; n < 8; n += 2) {
      uint32_t b[4];
      const int b_row = n * 8 + lane % 8 + lane / 16 * 8, b_piece = k / 8 + lane / 8 % 2;
      kernels::arch::ldmatrix(b, b_tile + piece_offset<kBug>(b_row, b_piece, true));
      kernels::arch::mma_m16n8k16<Element>(sums[n], a, {b[0], b[1]});
      kernels::arch::mma_m16n8k16<Element>(sums[n + 1], a, {b[2], b[3]});
    }
  }
}

template <int kBug>
__global__ void __launch_bounds__(kThreads)
    gemm_sm80(const Element* a, const Element* b, float* c, int m, int n, int k) {
  __shared__ alignas(128) char tiles[kStages][2][kTile * kRowBytes];
  const int first_m = static_cast<int>(blockIdx.y) * kTile,
            first_n = static_cast<int>(blockIdx.x) * kTile;
  const int steps = (k + kStep - 1) / kStep;
  const auto begin = [&](int step) {
    if (step < steps) {
      load_tile<kBug>(tiles[step % kStages][0], a, first_m, m, k, step * kStep);
      load_tile<kBug>(tiles[step % kStages][1], b, first_n, n, k, step * kStep);
    }
    if (kBug != 9 || step != 1) kernels::arch::cp_async_commit();  // 9: one group is not committed
  };
  float sums[8][4] = {};
  for (int step = 0; step < kStages - 1; ++step) begin(step);
  for (int step = 0; step < steps; ++step) {
    kernels::arch::cp_async_wait<kBug == 10 ? kStages - 1
                                            : kStages - 2>();  // 10: waits for one group too few
    if (kBug != 11) __syncthreads();  // 11: nobody waits for the other threads' copies
    begin(kBug == 12 ? step + kStages
                     : step + kStages - 1);  // 12: fills the stage that is being read
    multiply<kBug>(tiles[step % kStages][0], tiles[step % kStages][1], sums);
  }
  kernels::arch::cp_async_wait<0>();
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  for (int j = 0; j < 8; ++j) {
    for (int i = 0; i < 4; ++i) {
      const int row = first_m + warp * 16 + lane / 4 + i / 2 * 8,
                column = first_n + j * 8 + lane % 4 * 2 + i % 2;
      if (row < m && column < n) c[int64_t{row} * n + column] = sums[j][i];
    }
  }
}

// Every variant by name: "row_meanILi3EE".
template __global__ void row_mean<0>(const float*, float*, int);
template __global__ void row_mean<1>(const float*, float*, int);
template __global__ void row_mean<2>(const float*, float*, int);
template __global__ void row_mean<3>(const float*, float*, int);
template __global__ void row_mean<4>(const float*, float*, int);
template __global__ void row_mean<5>(const float*, float*, int);
template __global__ void row_mean<6>(const float*, float*, int);
template __global__ void gemm_sm80<0>(const Element*, const Element*, float*, int, int, int);
template __global__ void gemm_sm80<7>(const Element*, const Element*, float*, int, int, int);
template __global__ void gemm_sm80<8>(const Element*, const Element*, float*, int, int, int);
template __global__ void gemm_sm80<9>(const Element*, const Element*, float*, int, int, int);
template __global__ void gemm_sm80<10>(const Element*, const Element*, float*, int, int, int);
template __global__ void gemm_sm80<11>(const Element*, const Element*, float*, int, int, int);
template __global__ void gemm_sm80<12>(const Element*, const Element*, float*, int, int, int);

}  // namespace wide::planted
