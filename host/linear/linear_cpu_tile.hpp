// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The block kernel, written once over a vector of sixteen floats. Included by one file per
// instruction set, after that file's target pragma: all definitions here are compiled for it, hence
// the anonymous namespace.
//
// A tile of a few rows and columns keeps its lanes in registers over one slice of k; between slices
// they are kept in memory. Operands of 16 bits are decoded one slice at a time into stack buffers,
// each value once per block. `Vector` has load, zero, fma(a, b, sum), store, sum, decode_fp16,
// decode_bf16 and the tile's shape; sum adds lane l to l + 8, then l to l + 4, l + 2, l + 1.
#pragma once

#include <algorithm>

#include "host/linear/linear_cpu_block.hpp"
#include "wide/convert.hpp"

namespace wide::cpu {
namespace {

/// Holds the lanes of a block's sums between slices of k.
struct alignas(64) Lanes {
  float v[kLanes];
};
using BlockLanes = Lanes[kBlockRows][kBlockColumns];

/// Rows of one operand as floats; depth contiguous.
struct Panel {
  const float* base;
  int64_t stride;
  const float* row(int index) const { return base + index * stride; }
};

struct Slice {
  Panel x, weight;
  int64_t depth;
  bool is_first, is_last;
};

/// A row of fp16 or bf16.
template <class Vector>
void decode_16(Dtype dtype, const uint16_t* from, int64_t depth, float* to) {
  int64_t k = 0;
  for (; k + kLanes <= depth; k += kLanes) {
    dtype == Dtype::fp16 ? Vector::decode_fp16(from + k, to + k)
                         : Vector::decode_bf16(from + k, to + k);
  }
  if (k == depth) return;
  uint16_t padded[kLanes] = {};
  for (int64_t i = k; i < depth; ++i) padded[i - k] = from[i];
  float decoded[kLanes];
  dtype == Dtype::fp16 ? Vector::decode_fp16(padded, decoded)
                       : Vector::decode_bf16(padded, decoded);
  for (int64_t i = k; i < depth; ++i) to[i] = decoded[i - k];
}

/// Elements [first, first + depth) of `rows` rows, as floats. fp8 is converted value by value: no
/// instruction set has it, and speed has not mattered yet.
template <class Vector, class Row>
void decode(Dtype dtype, const Row& row, int rows, int64_t first, int64_t depth,
            float (*to)[kBlockDepth]) {
  for (int r = 0; r < rows; ++r) {
    if (dtype == Dtype::fp32) {
      std::copy_n(static_cast<const float*>(row(r)) + first, depth, to[r]);
    } else if (is_fp8(dtype)) {
      decode_row(dtype, static_cast<const uint8_t*>(row(r)) + first, to[r], depth);
    } else {
      decode_16<Vector>(dtype, static_cast<const uint16_t*>(row(r)) + first, depth, to[r]);
    }
  }
}

/// kRows x kColumns dot products over a slice. `column[c]` is a valid row of the weight for every
/// c, even where fewer than kColumns are needed: the rest is computed and dropped.
template <class Vector, int kRows, int kColumns>
void multiply(const Slice& slice, int first_row, int first_column, int columns, BlockLanes& lanes,
              float (*out)[kBlockColumns]) {
  const float* x[kRows];
  const float* weight[kColumns];
  for (int r = 0; r < kRows; ++r) x[r] = slice.x.row(first_row + r);
  for (int c = 0; c < kColumns; ++c) {
    weight[c] = slice.weight.row(first_column + (c < columns ? c : columns - 1));
  }
  Vector sums[kRows][kColumns];
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) {
      sums[r][c] = slice.is_first || c >= columns
                       ? Vector::zero()
                       : Vector::load(lanes[first_row + r][first_column + c].v);
    }
  }
  const auto step = [&](const auto& x_at, const auto& weight_at) {
    Vector weights[kColumns];
    for (int c = 0; c < kColumns; ++c) weights[c] = Vector::load(weight_at(c));
    for (int r = 0; r < kRows; ++r) {
      const Vector value = Vector::load(x_at(r));
      for (int c = 0; c < kColumns; ++c) sums[r][c] = Vector::fma(value, weights[c], sums[r][c]);
    }
  };
  int64_t k = 0;
  for (; k + kLanes <= slice.depth; k += kLanes) {
    step([&](int r) { return x[r] + k; }, [&](int c) { return weight[c] + k; });
  }
  if (k < slice.depth) {
    float x_tail[kRows][kLanes] = {}, weight_tail[kColumns][kLanes] = {};
    for (int64_t i = k; i < slice.depth; ++i) {
      for (int r = 0; r < kRows; ++r) x_tail[r][i - k] = x[r][i];
      for (int c = 0; c < kColumns; ++c) weight_tail[c][i - k] = weight[c][i];
    }
    step([&](int r) { return x_tail[r]; }, [&](int c) { return weight_tail[c]; });
  }
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns && c < columns; ++c) {
      if (slice.is_last) {
        out[first_row + r][first_column + c] = sums[r][c].sum();
      } else {
        sums[r][c].store(lanes[first_row + r][first_column + c].v);
      }
    }
  }
}

template <class Vector>
void multiply_slice(const Slice& slice, const LinearBlock& block, BlockLanes& lanes) {
  constexpr int kRows = Vector::kTileRows, kColumns = Vector::kTileColumns;
  for (int column = 0; column < block.columns; column += kColumns) {
    const int left = block.columns - column < kColumns ? block.columns - column : kColumns;
    int row = 0;
    for (; row + kRows <= block.rows; row += kRows) {
      multiply<Vector, kRows, kColumns>(slice, row, column, left, lanes, block.sums);
    }
    for (; row < block.rows; ++row) {
      multiply<Vector, 1, kColumns>(slice, row, column, left, lanes, block.sums);
    }
  }
}

template <class Vector>
void compute_block(const LinearBlock& block) {
  BlockLanes lanes;
  alignas(64) float x_buffer[kBlockRows][kBlockDepth];
  alignas(64) float weight_buffer[kBlockColumns][kBlockDepth];
  for (int64_t k = 0; k < block.depth; k += kBlockDepth) {
    const int64_t depth = block.depth - k < kBlockDepth ? block.depth - k : kBlockDepth;
    Slice slice{{x_buffer[0], kBlockDepth},
                {weight_buffer[0], kBlockDepth},
                depth,
                k == 0,
                k + depth == block.depth};
    // fp32, too: rows of a packed x are often a power of two apart, and would share cache sets.
    decode<Vector>(
        block.dtype, [&](int r) { return block.x[r]; }, block.rows, k, depth, x_buffer);
    if (block.decode_weight != nullptr) {
      for (int c = 0; c < block.columns; ++c) {
        block.decode_weight(block.weight, c, k, depth, weight_buffer[c]);
      }
    } else if (block.dtype == Dtype::fp32) {
      slice.weight = {static_cast<const float*>(block.weight) + k, block.weight_stride};
    } else {
      const auto* weight = static_cast<const char*>(block.weight);
      const int64_t row_bytes = block.weight_stride * dtype_bytes(block.dtype);
      decode<Vector>(
          block.dtype, [&](int c) -> const void* { return weight + c * row_bytes; }, block.columns,
          k, depth, weight_buffer);
    }
    multiply_slice<Vector>(slice, block, lanes);
  }
  for (int r = 0; block.depth == 0 && r < block.rows; ++r) {
    for (int c = 0; c < block.columns; ++c) block.sums[r][c] = 0;
  }
}

}  // namespace
}  // namespace wide::cpu
