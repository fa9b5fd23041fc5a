// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The tiles of conv_wgmma, apart from its launcher: choosing one needs no CUDA header.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace wide::kernels {

/// Pixels (positions of several batch rows) by output channels of one member.
enum class ConvWgmmaTile : uint8_t {
  p128c64,
  p256c64,  ///< weights serve twice the pixels
  p128c128,
  p256c128,  ///< most arithmetic per byte
  h256c64,   ///< x stays in shared memory for all taps, with its halo: a fraction of the bytes
  h256c128,
};

inline constexpr std::array kConvWgmmaTiles{ConvWgmmaTile::p128c64,  ConvWgmmaTile::p256c64,
                                            ConvWgmmaTile::p128c128, ConvWgmmaTile::p256c128,
                                            ConvWgmmaTile::h256c64,  ConvWgmmaTile::h256c128};

constexpr std::string_view tile_name(ConvWgmmaTile tile) {
  switch (tile) {
    case ConvWgmmaTile::p128c64:
      return "p128c64";
    case ConvWgmmaTile::p256c64:
      return "p256c64";
    case ConvWgmmaTile::p128c128:
      return "p128c128";
    case ConvWgmmaTile::p256c128:
      return "p256c128";
    case ConvWgmmaTile::h256c64:
      return "h256c64";
    case ConvWgmmaTile::h256c128:
      return "h256c128";
  }
  return "?";
}

constexpr int32_t tile_pixels(ConvWgmmaTile tile) {
  return tile == ConvWgmmaTile::p128c64 || tile == ConvWgmmaTile::p128c128 ? 128 : 256;
}
constexpr int32_t tile_channels(ConvWgmmaTile tile) {
  switch (tile) {
    case ConvWgmmaTile::p128c64:
    case ConvWgmmaTile::p256c64:
    case ConvWgmmaTile::h256c64:
      return 64;
    default:
      return 128;
  }
}
constexpr bool has_halo(ConvWgmmaTile tile) {
  return tile == ConvWgmmaTile::h256c64 || tile == ConvWgmmaTile::h256c128;
}

/// The positions of y that are a tile's pixels, batch rows fastest: powers of two.
struct ConvRectangle {
  int32_t batch, columns, rows;

  friend constexpr bool operator==(const ConvRectangle&, const ConvRectangle&) = default;
};

/// The first `pixels` of a rectangle are one, too: a power of two, no more than it has.
constexpr ConvRectangle first_pixels(const ConvRectangle& of, int32_t pixels) {
  const int32_t batch = of.batch < pixels ? of.batch : pixels;
  const int32_t columns = of.columns < pixels / batch ? of.columns : pixels / batch;
  return {batch, columns, pixels / batch / columns};
}

/// For tiles with a halo: contiguous batch rows, in whole groups of which a tap shifts, and
/// positions of x that shared memory holds.
inline constexpr int32_t kConvHaloBatch = 8, kConvHaloPositions = 60;

/// Bytes of channels per stage: the width of a tensor map's box.
inline constexpr int64_t kConvWgmmaTileBytes = 128;
/// Pixels and channels of a stored box: 128 bytes of 16-bit outputs.
inline constexpr int32_t kConvWgmmaStorePixels = 64, kConvWgmmaStoreChannels = 64;
/// The largest distance in positions between pixels of a box.
inline constexpr int64_t kConvWgmmaMostStride = 8;

}  // namespace wide::kernels
