// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operands of wgmma in shared memory, as a descriptor lays them out. The layouts are the canonical
// ones of the PTX ISA, "Shared Memory Matrix Layout", in pieces of 16 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "verify/simt/async.hpp"

namespace wide::simt {

constexpr int kBytesOfK = 32;  ///< of one instruction

struct MatrixDescriptor {
  uint32_t start = 0;                ///< shared address
  uint32_t leading = 0, stride = 0;  ///< bytes
  uint32_t base_offset = 0;
  Swizzle swizzle = Swizzle::none;

  explicit MatrixDescriptor(uint64_t bits);
  /// Bytes after which the swizzle's pattern repeats.
  uint32_t pattern_bytes() const;
};

/// One operand of `size` rows of A or columns of B, k times 32 bytes.
struct SharedOperand {
  MatrixDescriptor descriptor;
  MatrixType type;
  int size;
  bool is_mn_major;  ///< elements of a piece differ in m or n, else in k
};

struct SharedRange {
  uint32_t address;
  int64_t bytes;
};
/// What the operand reads, in order and joined where it is adjacent.
std::vector<SharedRange> ranges(const SharedOperand& operand);

/// Rows [begin, end) of A, each kMaxK floats. `shared` is the block's first byte.
void load_rows(const SharedOperand& a, int begin, int end, const std::byte* shared, float* rows);
/// All of B, k rows of `size` floats.
void load_columns(const SharedOperand& b, const std::byte* shared, float* rows);

}  // namespace wide::simt
