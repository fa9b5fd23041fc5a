// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the routed GEMMs are told. Needs no CUDA header: a plan counts the blocks before there is a
// launch.
#pragma once

#include <cstdint>

#include "kernels/common/routed_slots.hpp"
#include "kernels/linear/linear_params.hpp"

namespace wide::kernels {

/// Rows of a block at most, and those up to which it takes the shorter of the kernel's two tiles.
inline constexpr int32_t kRoutedTile = 64, kRoutedShortTile = 16;
inline constexpr int64_t kRoutedTileN = 64;  ///< outputs of a block
/// Rows of a slot of wgmma, which has tiles of its own.
inline constexpr int32_t kRoutedWgmmaTile = 128;
/// Slots whose blocks are neighbours for the same outputs, before those for the next ones.
inline constexpr uint32_t kRoutedGroup = 8;

struct RoutedLinearParams {
  /// x and y from row 0 on, `m` is the number of y's rows; row strides only.
  LinearParams linear;
  const int32_t* first_rows;  ///< [num_members + 1]
  const int32_t* order;       ///< [m]
  const float* gates;         ///< [m], or null
  int32_t choices;            ///< rows of `order` that read one row of x
  bool gathers, scatters;
  /// The member whose rows are computed alone, num_members for the rows of none; negative: all.
  int64_t member;
};

}  // namespace wide::kernels
