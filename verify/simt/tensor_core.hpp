// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic inside a tensor core. It is not fp32's: the products of one instruction and the
// sum before it are brought to the largest of their exponents, what lies below a few bits is cut
// off there, toward zero, and so is what the whole has too many of. A sum therefore loses a little
// with each instruction, always to the same side, and fp8's, of few bits, a lot.
// Source: Li et al., "MMA-Sim: Bit-Accurate Reference Model of Tensor Cores and Matrix Cores",
// 2025, arXiv:2511.10909, which was compared with the hardware bit by bit.
#pragma once

#include "verify/simt/async.hpp"

namespace wide::simt {

/// Of compute capability 9.0.
struct TensorCore {
  int fraction_bits = 25;  ///< that each term keeps below the largest exponent
  bool is_short = false;   ///< the sum leaves with 13 bits behind the point
  static TensorCore of_mma() { return {}; }
  static TensorCore of_wgmma(MatrixType type);
};

/// d += a b; a: 16 rows of kMaxK floats of which the first k count, b: k rows of n floats, n a
/// multiple of 8; their values are those of the types named.
void multiply_add(const TensorCore& core, MatrixType type_a, const float* a, MatrixType type_b,
                  const float* b, int k, int n, float* d);

}  // namespace wide::simt
