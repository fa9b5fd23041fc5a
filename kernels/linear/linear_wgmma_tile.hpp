// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The tiles of linear_wgmma, apart from its launcher: choosing one needs no CUDA header.
#pragma once

#include <cstdint>

namespace wide::kernels {

/// Rows (batch) by outputs (out_features) of one member.
enum class LinearWgmmaTile : uint8_t { m64n128, m128n128 };

constexpr int64_t tile_m(LinearWgmmaTile tile) {
  return tile == LinearWgmmaTile::m64n128 ? 64 : 128;
}
constexpr int64_t tile_n(LinearWgmmaTile) {
  return 128;
}
/// Inputs (in_features) of one stage: 128 bytes of a 16-bit type, which a tensor map's box is wide.
inline constexpr int64_t kWgmmaTileK = 64;

}  // namespace wide::kernels
