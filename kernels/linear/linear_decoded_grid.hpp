// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How warps divide the weights that linear_decoded.cu decodes, apart from its launcher: whether a
// grid is possible is asked without a CUDA header, too.
#pragma once

#include <cstdint>

#include "kernels/common/grid_blocks.hpp"

namespace wide::kernels {

/// Tiles of 64 inputs that a warp decodes, of one strip of 16 outputs: 256 bytes of a row, and
/// codes enough under way.
inline constexpr int kDecodedTiles = 2;
inline constexpr int kDecodedWarps = 8;  ///< of a block, all of one member

/// Blocks that decode one member. Its strips times tiles fit in 64 bits.
constexpr int64_t decoded_blocks(int64_t strips, int64_t tiles) {
  const int64_t warps = strips * ((tiles + kDecodedTiles - 1) / kDecodedTiles);
  return (warps + kDecodedWarps - 1) / kDecodedWarps;
}

/// Whether one launch can number the warps of all members.
constexpr bool are_decodable(int64_t blocks_of_member, int64_t num_members) {
  return blocks_of_member <= kMaxGridBlocks / kDecodedWarps / num_members;
}

}  // namespace wide::kernels
