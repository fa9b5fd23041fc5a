// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the ragged GEMMs are told: a table in device memory that belongs to the problem and is
// uploaded once, and the operands' addresses, which belong to a call.
#pragma once

#include <cstdint>

#include "kernels/linear/linear_params.hpp"

namespace wide::kernels {

/// A member; `m, n, k` are its rows (batch), out_features and in_features. Offsets into the
/// operands' storages and strides from row to row are in elements. 64 bytes, which a block asks for
/// in four requests: sizes and strides of one member fit in 32 bits, or no kernel takes it.
struct alignas(16) RaggedMember {
  int64_t x_offset, weight_offset, y_offset, bias_offset;
  int32_t m, n, k;
  int32_t x_row, weight_row, y_row;
  int32_t product;  ///< its place among those of cuBLAS's grouped call; -1: it is none of them
  /// Whether 16 bytes (y and what is added to it: four elements) may be moved at a time, where the
  /// storages begin at such addresses.
  bool x_is_aligned, weight_is_aligned, y_is_aligned, epilogue_is_aligned;
};

/// A tile of a member's outputs: what one thread block computes.
struct alignas(16) RaggedTile {
  uint32_t member;
  uint32_t m, n;  ///< its place among the member's tiles
  uint32_t rows;  ///< of the tile: which of the kernel's two it is
};

/// The two tiles of each kernel, both 64 outputs wide and of as many threads: a block takes the one
/// that its member asks for.
inline constexpr uint32_t kRaggedShortTile = 16, kRaggedTallTile = 64;  ///< rows
inline constexpr int64_t kRaggedTileN = 64;

struct RaggedLinearParams {
  const RaggedMember* members;
  const RaggedTile* tiles;  ///< in the order in which they are begun
  int64_t num_tiles;
  const void* x;  ///< storages
  const void* weight;
  void* y;
  /// The epilogue kernel's alone: a storage whose members lie as y's, or y itself; null: zeros.
  const float* sums;
  LinearEpilogue epilogue;  ///< of storages, without strides: residual's members lie as y's
  /// Whether the storages begin where aligned members are aligned. Set by the launchers.
  bool x_is_aligned, weight_is_aligned, y_is_aligned;
};

}  // namespace wide::kernels
