// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Where a block of conv_direct is in y, and which outputs its lanes have.
#pragma once

#include "kernels/conv/conv_direct_tile.hpp"

namespace wide::kernels {

inline constexpr int kDirectLanes = 32;
inline constexpr int kDirectThreads = kDirectLanes * kDirectMaxWarps;
inline constexpr int kDirectPerLane = kDirectPositions / kDirectLanes;

/// A block's position, in shared memory for the sake of registers.
struct DirectPlace {
  int64_t x;       ///< elements to its first group's first channel, in plane 0
  int64_t weight;  ///< elements to its first channel's
  int member, batch;
  int plane;                        ///< of y
  int first_channel, num_channels;  ///< of the member's y
  int first_group;
  int row, column;  ///< the first output
};
static_assert(sizeof(DirectPlace) <= kDirectPlaceBytes);

__device__ inline DirectPlace direct_place(const ConvParams& p, const DirectTile& tile) {
  uint32_t index = blockIdx.x;
  const auto next = [&](int64_t count) {
    const uint32_t digit = index % static_cast<uint32_t>(count);
    index /= static_cast<uint32_t>(count);
    return static_cast<int>(digit);
  };
  DirectPlace place;
  place.column = next(tile.columns.tiles) << tile.columns.shift;
  place.row = next(tile.rows.tiles) << tile.rows.shift;
  place.plane = next(p.depth.output);
  place.batch = next(p.batch);
  const int in_span = next(tile.channel_tiles) * tile.channels();
  place.first_channel = next(p.out_channels / tile.span) * tile.span + in_span;
  place.num_channels = min(tile.channels(), tile.span - in_span);
  place.first_group = place.first_channel / p.out_per_group;
  place.member = static_cast<int>(index);
  place.x = place.batch * p.x_strides.batch + place.member * p.x_strides.member +
            int64_t{place.first_group} * p.in_per_group * p.x_strides.channel;
  place.weight =
      place.member * p.weight_strides.member + place.first_channel * p.weight_strides.out_channel;
  return place;
}

/// The position of x that a place along an axis holds, from that of place 0 on.
__device__ inline int position_of(const DirectAxis& axis, int place, int stride, int dilation) {
  if (axis.is_halo) return place;
  return (place & (axis.outputs() - 1)) * stride + (place >> axis.shift) * dilation;
}

/// A lane's i-th position in the tile, row after row. A window is that of four neighbours, and
/// eight lanes, which load at once, have neighbouring quads of rows whose banks differ.
__device__ inline int direct_position(const DirectTile& tile, int lane, int i) {
  if (tile.window == 0) return i * kDirectLanes + lane;
  const int quad_shift = tile.columns.shift - 2;  // quads of a row
  int quad = lane;
  if (quad_shift < 3) {
    // The digits of a lane are (high row, row, quad); of a quad (high row, row, low row, quad).
    const int together = 3 - quad_shift;  // 2^together rows
    const int row = lane >> quad_shift & ((1 << together) - 1), others = lane >> 3;
    const int low = others & ((1 << tile.row_shift) - 1), high = others >> tile.row_shift;
    const int in_tile = (high << together | row) << tile.row_shift | low;
    quad = in_tile << quad_shift | (lane & ((1 << quad_shift) - 1));
  }
  return quad * kDirectPerLane + i;
}

}  // namespace wide::kernels
