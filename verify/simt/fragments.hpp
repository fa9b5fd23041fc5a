// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How the lanes of a warp hold matrices for mma.sync and wgmma. Both use the same fragments: a
// row's elements lie in the four lanes of a quad, a register (4 bytes) each, so that tables for 1-,
// 2- and 4-byte elements are one table in bytes. Operands become fp32 once per product: exact for
// all types, products of two of them included.
#pragma once

#include <cstdint>
#include <span>

#include "verify/simt/async.hpp"

namespace wide::simt {

constexpr int kFragmentRows = 16;  ///< of A and D, of one warp
constexpr int kMaxK = 32;          ///< elements; the distance of A's rows

constexpr int element_bytes(MatrixType type) {
  return type == MatrixType::tf32                               ? 4
         : type == MatrixType::e4m3 || type == MatrixType::e5m2 ? 1
                                                                : 2;
}
/// As PTX spells it.
const char* name(MatrixType type);
/// Whether PTX multiplies them with each other.
bool are_compatible(MatrixType a, MatrixType b);

/// `count` consecutive elements.
void to_floats(MatrixType type, const void* elements, int64_t count, float* to);

/// Registers of A (2 or 4), or of B (1 or 2): rows of kMaxK floats, 16 rows of A, 8 columns of B.
void load_a_fragment(MatrixType type, std::span<const uint32_t* const> registers, float* rows);
void load_b_fragment(MatrixType type, std::span<const uint32_t* const> registers, float* columns);

/// C and D: 16 rows of `n` floats, in n / 2 registers, or in n / 4 where they are pairs of fp16.
void load_accumulators(std::span<const uint32_t* const> registers, bool is_half, int n,
                       float* rows);
void store_accumulators(std::span<uint32_t* const> registers, bool is_half, int n,
                        const float* rows);

/// fp16 accumulators: every sum that leaves the tensor core is one.
void round_to_half(std::span<float> values);

}  // namespace wide::simt
