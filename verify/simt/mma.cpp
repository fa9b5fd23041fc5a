// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// mma.sync: one warp's product of fragments, for the shapes m16n8 of floating-point types.
#include <array>
#include <string>

#include "verify/simt/async.hpp"
#include "verify/simt/formats.hpp"
#include "verify/simt/fragments.hpp"
#include "verify/simt/tensor_core.hpp"

namespace wide::simt {

namespace {

constexpr int kRows = 16, kColumns = 8;

std::string describe(const MmaShape& shape) {
  return "mma.m" + std::to_string(shape.m) + "n" + std::to_string(shape.n) + "k" +
         std::to_string(shape.k) + (shape.d_is_half ? ".f16." : ".f32.") + name(shape.type_a) +
         "." + name(shape.type_b) + (shape.c_is_half ? ".f16" : ".f32");
}

}  // namespace

void require_mma(const MmaShape& shape) {
  const int k_bytes = shape.k * element_bytes(shape.type_a);
  if (shape.m != kRows || shape.n != kColumns || (k_bytes != 16 && k_bytes != 32)) {
    throw Unsupported(describe(shape) + ": this shape, expected m16n8 and 16 or 32 bytes of k");
  }
  if (!are_compatible(shape.type_a, shape.type_b)) {
    throw Unsupported(describe(shape) + ": these two types");
  }
  const bool may_be_half = shape.type_a == MatrixType::f16 || element_bytes(shape.type_a) == 1;
  if (shape.d_is_half != shape.c_is_half || (shape.d_is_half && !may_be_half)) {
    throw Unsupported(describe(shape) + ": this type of accumulators");
  }
}

void mma(Warp& warp, const MmaShape& shape, std::span<uint32_t* const> d,
         std::span<const uint32_t* const> a, std::span<const uint32_t* const> b,
         std::span<const uint32_t* const> c) {
  std::array<float, kRows * kMaxK> rows;
  std::array<float, kColumns * kMaxK> columns, b_rows;
  std::array<float, kRows * kColumns> sums;
  load_a_fragment(shape.type_a, a, rows.data());
  load_b_fragment(shape.type_b, b, columns.data());
  for (int k = 0; k < shape.k; ++k) {
    for (int n = 0; n < kColumns; ++n) {
      b_rows[static_cast<size_t>(k * kColumns + n)] = columns[static_cast<size_t>(n * kMaxK + k)];
    }
  }
  load_accumulators(c, shape.c_is_half, kColumns, sums.data());
  multiply_add(TensorCore::of_mma(), shape.type_a, rows.data(), shape.type_b, b_rows.data(),
               shape.k, kColumns, sums.data());
  store_accumulators(d, shape.d_is_half, kColumns, sums.data());
  warp.block->launch.counters.mma_flops += int64_t{2} * kRows * kColumns * shape.k;
}

}  // namespace wide::simt
