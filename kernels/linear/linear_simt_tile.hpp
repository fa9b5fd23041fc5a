// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The tile shapes of linear_simt, apart from its launcher: choosing one needs no CUDA header.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace wide::kernels {

/// Rows (batch) by outputs (out_features) of one member; each is one instantiation per dtype.
enum class LinearSimtTile : uint8_t {
  m16n64,    ///< few rows per member: many small blocks, deep prefetch
  m32n64,    ///< up to twice as many, still reading each weight once
  m64n64,    ///< in between
  m128n128,  ///< most arithmetic per byte of shared memory
};

inline constexpr std::array kLinearSimtTiles{LinearSimtTile::m16n64, LinearSimtTile::m32n64,
                                             LinearSimtTile::m64n64, LinearSimtTile::m128n128};

constexpr std::string_view tile_name(LinearSimtTile tile) {
  switch (tile) {
    case LinearSimtTile::m16n64:
      return "m16n64";
    case LinearSimtTile::m32n64:
      return "m32n64";
    case LinearSimtTile::m64n64:
      return "m64n64";
    case LinearSimtTile::m128n128:
      return "m128n128";
  }
  return "?";
}

constexpr int64_t tile_m(LinearSimtTile tile) {
  switch (tile) {
    case LinearSimtTile::m16n64:
      return 16;
    case LinearSimtTile::m32n64:
      return 32;
    case LinearSimtTile::m64n64:
      return 64;
    case LinearSimtTile::m128n128:
      return 128;
  }
  return 0;
}
constexpr int64_t tile_n(LinearSimtTile tile) {
  return tile == LinearSimtTile::m128n128 ? 128 : 64;
}

}  // namespace wide::kernels
