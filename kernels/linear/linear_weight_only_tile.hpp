// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The tiles of linear on quantised weights, apart from their launcher: choosing them needs no CUDA
// header.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace wide::kernels {

/// All rows (batch) by outputs (out_features) of one member.
enum class LinearWeightOnlyTile : uint8_t {
  m16n64,
  m32n64,
  m64n64,
  m16n16,  ///< k divided over the four warps: four times the blocks
};

inline constexpr std::array kLinearWeightOnlyTiles{
    LinearWeightOnlyTile::m16n64, LinearWeightOnlyTile::m32n64, LinearWeightOnlyTile::m64n64,
    LinearWeightOnlyTile::m16n16};

constexpr std::string_view tile_name(LinearWeightOnlyTile tile) {
  switch (tile) {
    case LinearWeightOnlyTile::m16n64:
      return "m16n64";
    case LinearWeightOnlyTile::m32n64:
      return "m32n64";
    case LinearWeightOnlyTile::m64n64:
      return "m64n64";
    case LinearWeightOnlyTile::m16n16:
      return "m16n16";
  }
  return "?";
}

constexpr int64_t tile_m(LinearWeightOnlyTile tile) {
  return tile == LinearWeightOnlyTile::m64n64 ? 64 : tile == LinearWeightOnlyTile::m32n64 ? 32 : 16;
}
constexpr int64_t tile_n(LinearWeightOnlyTile tile) {
  return tile == LinearWeightOnlyTile::m16n16 ? 16 : 64;
}

}  // namespace wide::kernels
