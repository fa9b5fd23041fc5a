// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// recurrent_fused.cuh's products of 16-bit elements on tensor cores (mma.sync m16n8k16): a block
// has 16 sequences, and a warp's eight units are an instruction's columns, one instruction a gate.
#pragma once

#include "kernels/arch/matrix.cuh"
#include "kernels/recurrent/recurrent_fused.cuh"

namespace wide::kernels {

template <class T>
struct RecurrentHalfProduct {
  using Element = T;
  static constexpr int kRows = 16, kElements = 4, kColumns = 2;

  __device__ static int lane() { return static_cast<int>(threadIdx.x % 32); }
  __device__ static int row(int e) { return lane() / 4 + e / 2 * 8; }
  __device__ static int column(int e) { return lane() % 4 * 2 + e % 2; }

  /// sums += h W^T; the warp's rows of `weights` are ordered by gate.
  template <int kGates>
  __device__ static void multiply(float (&sums)[kGates][kElements], const char* weights,
                                  const char* states, const RecurrentFusedShape& shape, int hidden,
                                  int /*count: rows cost nothing*/) {
    // ldmatrix's four matrices: for states rows 0-7 and 8-15 of 8 k, then of the next 8 k; for
    // weights eight rows of 32 k.
    const char* a_row = states + lane() % 16 * shape.pitch + lane() / 16 * kChunkBytes;
    const char* b_row = weights + lane() % 8 * shape.pitch + lane() / 8 * kChunkBytes;
    const int gate_bytes = kRecurrentUnits * shape.pitch;
#pragma unroll 2
    for (int k = 0; k < hidden; k += 32) {
      const int byte = k * static_cast<int>(sizeof(T));
      uint32_t a[2][4];
      arch::ldmatrix(a[0], a_row + byte);
      arch::ldmatrix(a[1], a_row + byte + 2 * kChunkBytes);
#pragma unroll
      for (int g = 0; g < kGates; ++g) {
        uint32_t b[4];
        arch::ldmatrix(b, b_row + g * gate_bytes + byte);
        arch::mma_m16n8k16<T>(sums[g], a[0], {b[0], b[1]});
        arch::mma_m16n8k16<T>(sums[g], a[1], {b[2], b[3]});
      }
    }
  }
};

}  // namespace wide::kernels
