// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A block of linear's outputs on the CPU, and the versions of its kernel for the instruction sets.
//
// Every output is a dot product in sixteen fp32 lanes: lane l sums k = l, l + 16, l + 32, ... in
// that order, then the lanes are added pairwise. This order depends on in_features only, and the
// versions with fused multiply-add give the same bits.
#pragma once

#include <cstdint>

#include "wide/dtype.hpp"

namespace wide::cpu {

inline constexpr int kLanes = 16;
inline constexpr int kBlockRows = 16;     ///< of x
inline constexpr int kBlockColumns = 32;  ///< rows of the weight: outputs
/// in_features decoded at a time. A block needs 80 KiB of stack: the caller's threads may have
/// little.
inline constexpr int64_t kBlockDepth = 256;

/// sums[r][c] = sum_k x[r][k] * weight[c, k]; k contiguous.
struct LinearBlock {
  const void* x[kBlockRows] = {};  ///< the rows, wherever they are
  const void* weight = nullptr;
  int64_t weight_stride = 0;  ///< in elements
  Dtype dtype = Dtype::fp32;
  int rows = 0, columns = 0;  ///< at most kBlockRows, kBlockColumns
  int64_t depth = 0;
  float (*sums)[kBlockColumns] = nullptr;
  /// Writes [first, first + count) of the weight's row `row` as floats, where the weight is encoded
  /// and not rows of elements; `first` is a multiple of kBlockDepth. Else null.
  void (*decode_weight)(const void* weight, int row, int64_t first, int64_t count,
                        float* out) = nullptr;
};

using LinearBlockKernel = void (*)(const LinearBlock&);

void linear_block_portable(const LinearBlock& block);
/// AVX2, FMA and F16C; null where the compiler cannot build it.
extern const LinearBlockKernel linear_block_avx2;
/// AVX-512 F; null where the compiler cannot build it.
extern const LinearBlockKernel linear_block_avx512;
/// The best one for the processor that the program runs on.
LinearBlockKernel best_linear_block();

}  // namespace wide::cpu
