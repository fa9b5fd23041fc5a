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
  m128n256,  ///< most arithmetic per byte; not for fp8, whose sums are kept twice
};

inline constexpr std::array kLinearWgmmaTiles{LinearWgmmaTile::m64n128, LinearWgmmaTile::m128n128,
                                              LinearWgmmaTile::m128n256};

constexpr std::string_view tile_name(LinearWgmmaTile tile) {
  switch (tile) {
    case LinearWgmmaTile::m64n128:
      return "m64n128";
    case LinearWgmmaTile::m128n128:
      return "m128n128";
    case LinearWgmmaTile::m128n256:
      return "m128n256";
  }
  return "?";
}

constexpr int64_t tile_m(LinearWgmmaTile tile) {
  return tile == LinearWgmmaTile::m64n128 ? 64 : 128;
}
constexpr int64_t tile_n(LinearWgmmaTile tile) {
  return tile == LinearWgmmaTile::m128n256 ? 256 : 128;
}
/// Bytes of in_features per stage: the width of a tensor map's box.
inline constexpr int64_t kWgmmaTileBytes = 128;
/// Rows and outputs of a stored box: 128 bytes of 16-bit outputs.
inline constexpr int64_t kWgmmaStoreM = 64, kWgmmaStoreN = 64;

}  // namespace wide::kernels
