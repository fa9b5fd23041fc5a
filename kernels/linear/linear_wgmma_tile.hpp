// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The tiles of linear_wgmma, apart from its launcher: choosing one needs no CUDA header.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace wide::kernels {

/// Rows (batch) by outputs (out_features) of one member.
enum class LinearWgmmaTile : uint8_t {
  m64n128,
  m128n128,
  m128n256,    ///< most arithmetic per byte; not for fp8, whose sums are kept twice
  m128n128x2,  ///< fp8: two blocks with neighbouring rows read each weight of theirs once from L2
  m128n256x2,  ///< the same for the others
};

inline constexpr std::array kLinearWgmmaTiles{
    LinearWgmmaTile::m64n128, LinearWgmmaTile::m128n128, LinearWgmmaTile::m128n256,
    LinearWgmmaTile::m128n128x2, LinearWgmmaTile::m128n256x2};

constexpr std::string_view tile_name(LinearWgmmaTile tile) {
  switch (tile) {
    case LinearWgmmaTile::m64n128:
      return "m64n128";
    case LinearWgmmaTile::m128n128:
      return "m128n128";
    case LinearWgmmaTile::m128n256:
      return "m128n256";
    case LinearWgmmaTile::m128n128x2:
      return "m128n128x2";
    case LinearWgmmaTile::m128n256x2:
      return "m128n256x2";
  }
  return "?";
}

/// Blocks of a cluster that share the weights of a tile, each with rows of its own.
constexpr int64_t tile_blocks(LinearWgmmaTile tile) {
  return tile == LinearWgmmaTile::m128n128x2 || tile == LinearWgmmaTile::m128n256x2 ? 2 : 1;
}
/// Whether the tile is built for fp8, or else for the others.
constexpr bool is_built_for(LinearWgmmaTile tile, bool is_fp8) {
  switch (tile) {
    case LinearWgmmaTile::m64n128:
    case LinearWgmmaTile::m128n128:
      return true;
    case LinearWgmmaTile::m128n256:
    case LinearWgmmaTile::m128n256x2:
      return !is_fp8;
    case LinearWgmmaTile::m128n128x2:
      return is_fp8;
  }
  return false;
}
/// Of one block: rows of x that it loads, and outputs that it computes.
constexpr int64_t block_m(LinearWgmmaTile tile) {
  return tile == LinearWgmmaTile::m64n128 ? 64 : 128;
}
/// Of all its blocks.
constexpr int64_t tile_m(LinearWgmmaTile tile) {
  return block_m(tile) * tile_blocks(tile);
}
constexpr int64_t tile_n(LinearWgmmaTile tile) {
  return tile == LinearWgmmaTile::m128n256 || tile == LinearWgmmaTile::m128n256x2 ? 256 : 128;
}
/// Rows of the weight that a block loads: for all blocks.
constexpr int64_t block_weight_rows(LinearWgmmaTile tile) {
  return tile_n(tile) / tile_blocks(tile);
}
/// Bytes of in_features per stage: the width of a tensor map's box.
inline constexpr int64_t kWgmmaTileBytes = 128;
/// Rows and outputs of a stored box: 128 bytes of 16-bit outputs.
inline constexpr int64_t kWgmmaStoreM = 64, kWgmmaStoreN = 64;

}  // namespace wide::kernels
