// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Shared by the kernels on Hopper's warpgroup products: one warpgroup loads operands by bulk tensor
// copies, two multiply, with rings of stages between them; sums are stored as boxes.
#pragma once

#include <cstdint>

#include "kernels/arch/matrix.cuh"
#include "kernels/common/pack_pair.cuh"

namespace wide::kernels {

constexpr int kWarpgroup = 128;  // threads
constexpr int kConsumers = 2;    // warpgroups that multiply
constexpr int kWgmmaThreads = kWarpgroup * (1 + kConsumers);
constexpr int kInstructionBytes = 32;  // of k
/// Per thread, where the producers' warpgroup releases registers to the consumers.
constexpr int kProducerRegisters = 24, kConsumerRegisters = 240;

/// A position in a ring, counted from the launch's first stage.
template <int kStages>
struct Ring {
  uint32_t stage, parity;

  __device__ explicit Ring(uint32_t position)
      : stage(position % kStages), parity(position / kStages % 2) {}
  __device__ void advance() {
    if (++stage < kStages) return;
    stage = 0;
    parity ^= 1;
  }
};

/// A box that is stored: 64 rows of 128 bytes, with the 128-byte swizzle.
constexpr int kBlockM = 64;                                 // rows of an instruction, and of a box
constexpr int kBlockN = 64;                                 // 128 bytes of 16-bit outputs
constexpr int kBlockSums = kBlockM * kBlockN / kWarpgroup;  // per thread
constexpr int kColumnBlocks = kBlockN / 8;

/// Rounds a warpgroup's sums, wgmma's D fragments, to 16 bits and writes them as a box.
template <class Out>
__device__ inline void write_box(char* box, int thread, const float (&sums)[kBlockSums]) {
  constexpr int kRow = kBlockN * 2, kPiece = 16;  // bytes
  // The lane passes row lane % 16 of the matrices of two blocks of outputs.
  const int lane = thread % 32, named_row = thread / 32 * 16 + lane % 16;
#pragma unroll
  for (int block = 0; block < kColumnBlocks; block += 2) {
    uint32_t packed[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      packed[i] = pack_pair<Out>(sums[4 * block + 2 * i], sums[4 * block + 2 * i + 1]);
    }
    const int piece = block + lane / 16;
    arch::stmatrix(box + named_row * kRow + (piece ^ named_row % 8) * kPiece, packed);
  }
}

}  // namespace wide::kernels
