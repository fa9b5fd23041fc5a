// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Tensor maps of the tensor memory accelerator: our own contents in the 128 bytes that the driver's
// CUtensorMap has, written by the simulated driver and read by Async. Not what a device expects.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace wide::simt {

/// Bytes after which the pieces of a shared tile are permuted.
enum class Swizzle : uint8_t { none, bytes_32, bytes_64, bytes_128 };

constexpr int kPiece = 16;  ///< bytes that stay together under every swizzle

/// address ^ (pieces permuted within the swizzle's span); on final shared addresses.
constexpr uint32_t swizzled(uint32_t address, Swizzle swizzle) {
  const uint32_t mask = swizzle == Swizzle::bytes_128  ? 7
                        : swizzle == Swizzle::bytes_64 ? 3
                        : swizzle == Swizzle::bytes_32 ? 1
                                                       : 0;
  return address ^ ((address >> 7 & mask) << 4);
}

struct alignas(64) TensorMap {
  uint64_t magic = 0;
  uint64_t reserved = 0;  ///< CUTLASS clears a bit in this word of a map that older drivers made
  uint64_t address = 0;
  std::array<uint64_t, 5> extent{};        ///< elements, innermost first
  std::array<uint64_t, 4> stride_bytes{};  ///< of dimensions 1 to rank - 1
  std::array<uint16_t, 5> box{};           ///< elements of a tile; at most 256
  std::array<uint8_t, 5> element_stride{};
  uint8_t rank = 0, element_bytes = 0;
  Swizzle swizzle = Swizzle::none;
  uint8_t fills_nan = 0;  ///< out of range: NaN instead of zeros

  static constexpr uint64_t kMagic = 0x7769646574656e73;
};
static_assert(sizeof(TensorMap) == 128);

/// Why the driver would refuse this map; empty: it would not. Rules of cuTensorMapEncodeTiled.
std::string tensor_map_error(const TensorMap& map);

}  // namespace wide::simt
