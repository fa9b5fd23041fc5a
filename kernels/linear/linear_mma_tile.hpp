// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The tiles and the arithmetic of linear on warp-level matrix instructions, apart from their
// launchers: choosing them needs no CUDA header.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace wide::kernels {

/// Rows (batch) by outputs (out_features) of one member.
enum class LinearMmaTile : uint8_t {
  m64n64,
  m128n64,
  m128n128,  ///< most arithmetic per byte of shared memory
  // The weight on the instruction's 16-row side: few rows of x fill only 8 columns.
  m8n64,
  m16n64,
  m32n64,
  m16n16,  ///< k divided over the four warps: four times the blocks
};

/// Those of tensor_core, and those of small_m.
inline constexpr std::array kLinearTensorCoreTiles{LinearMmaTile::m64n64, LinearMmaTile::m128n64,
                                                   LinearMmaTile::m128n128};
inline constexpr std::array kLinearSmallMTiles{LinearMmaTile::m8n64, LinearMmaTile::m16n64,
                                               LinearMmaTile::m32n64, LinearMmaTile::m16n16};

constexpr std::string_view tile_name(LinearMmaTile tile) {
  switch (tile) {
    case LinearMmaTile::m64n64:
      return "m64n64";
    case LinearMmaTile::m128n64:
      return "m128n64";
    case LinearMmaTile::m128n128:
      return "m128n128";
    case LinearMmaTile::m8n64:
      return "m8n64";
    case LinearMmaTile::m16n64:
      return "m16n64";
    case LinearMmaTile::m32n64:
      return "m32n64";
    case LinearMmaTile::m16n16:
      return "m16n16";
  }
  return "?";
}

constexpr int64_t tile_m(LinearMmaTile tile) {
  switch (tile) {
    case LinearMmaTile::m64n64:
      return 64;
    case LinearMmaTile::m128n64:
    case LinearMmaTile::m128n128:
      return 128;
    case LinearMmaTile::m8n64:
      return 8;
    case LinearMmaTile::m16n64:
    case LinearMmaTile::m16n16:
      return 16;
    case LinearMmaTile::m32n64:
      return 32;
  }
  return 0;
}
constexpr int64_t tile_n(LinearMmaTile tile) {
  return tile == LinearMmaTile::m128n128 ? 128 : tile == LinearMmaTile::m16n16 ? 16 : 64;
}

/// The type that elements are multiplied as; sums are in fp32.
enum class LinearMath : uint8_t {
  fp16,
  bf16,
  tf32,    ///< fp32 rounded to 11 significant bits
  tf32x3,  ///< fp32 as the sum of two tf32: three products instead of one
};

}  // namespace wide::kernels
