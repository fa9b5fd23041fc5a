// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Descriptors of tensors for Hopper's bulk tensor copies (TMA), for *_cuda.cpp and .cu files. The
// driver's function that makes them is looked up through the runtime: nothing links libcuda.
// Source: CUDA driver API, "Tensor Map Object Management".
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>

#include "wide/dtype.hpp"

namespace wide {

/// Bytes after which a box's 16-byte pieces are permuted in shared memory.
enum class TileSwizzle : int { none = 0, bytes_32 = 1, bytes_64 = 2, bytes_128 = 3 };

/// A tensor of 1 to 5 dimensions, the contiguous one first, and the box that one copy moves.
struct TileMap {
  const void* data = nullptr;  ///< aligned to 16 bytes
  Dtype dtype = Dtype::fp32;
  int rank = 1;
  std::array<int64_t, 5> extent{};  ///< elements
  std::array<int64_t, 5> stride{};  ///< elements; stride[0] is 1, the others multiples of 16 bytes
  std::array<int64_t, 5> box{};     ///< elements, at most 256; the first a multiple of 16 bytes
  /// Distance of a box's elements, 1 to 8; 1 in the first dimension. A copy moves box / step
  /// elements, rounded up.
  std::array<int64_t, 5> step{1, 1, 1, 1, 1};
  TileSwizzle swizzle = TileSwizzle::none;  ///< the box's first extent is at most these bytes
};

/// Whether a tensor may begin at the address.
inline bool is_on_16_bytes(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % 16 == 0;
}

/// Writes the descriptor, to be passed to a kernel as const __grid_constant__. Does not touch the
/// device, but the calling thread must have a context (CurrentDevice). Not returned: g++ 12 aligns
/// what a function returns to less than a map's 128 bytes. Throws Error: unsupported where the
/// driver has no tensor maps; invalid_argument for a tensor or box that it refuses.
void encode_tile_map(const TileMap& map, CUtensorMap& encoded);

}  // namespace wide
