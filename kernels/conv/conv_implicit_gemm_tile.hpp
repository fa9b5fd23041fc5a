// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The tiles and forms of convolution as a matrix product, apart from their launcher: choosing them
// needs no CUDA header.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace wide::kernels {

/// How pixels are loaded into shared memory, and their side of the product: its columns are the
/// side whose neighbours are neighbours in y.
enum class ConvGemmForm : uint8_t {
  vector,  ///< 16 bytes of channels at a time by cp.async; pixels by channels
  gather,  ///< element by element through registers, lanes along pixels; channels by pixels
};

/// Pixels (positions of all batch rows) by output channels of one group.
enum class ConvGemmTile : uint8_t {
  p128c32,
  p64c64,
  p64c128,   ///< gathered pixels serve twice the channels
  p128c128,  ///< most arithmetic per byte of shared memory
};

inline constexpr std::array kConvVectorTiles{ConvGemmTile::p128c32, ConvGemmTile::p64c64,
                                             ConvGemmTile::p128c128};
inline constexpr std::array kConvGatherTiles{ConvGemmTile::p128c32, ConvGemmTile::p64c64,
                                             ConvGemmTile::p64c128};

constexpr std::string_view tile_name(ConvGemmTile tile) {
  switch (tile) {
    case ConvGemmTile::p128c32:
      return "p128c32";
    case ConvGemmTile::p64c64:
      return "p64c64";
    case ConvGemmTile::p64c128:
      return "p64c128";
    case ConvGemmTile::p128c128:
      return "p128c128";
  }
  return "?";
}

constexpr int64_t tile_pixels(ConvGemmTile tile) {
  return tile == ConvGemmTile::p128c32 || tile == ConvGemmTile::p128c128 ? 128 : 64;
}
constexpr int64_t tile_channels(ConvGemmTile tile) {
  return tile == ConvGemmTile::p128c32 ? 32 : tile == ConvGemmTile::p64c64 ? 64 : 128;
}

/// One for each form: addresses and strides decide between them at launch.
struct ConvGemmTiles {
  ConvGemmTile vector, gather;
};

}  // namespace wide::kernels
