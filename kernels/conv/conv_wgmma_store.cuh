// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Stores conv_wgmma's blocks of 64 pixels by 64 channels of sums: as boxes of the tensor map y,
// whose extents clip what is outside (channels at 16 bytes), or as rows, one per pixel
// (wgmma_store.cuh).
#pragma once

#include <bit>

#include "kernels/common/launch.hpp"
#include "kernels/conv/conv_wgmma.hpp"
#include "kernels/linear/wgmma_store.cuh"

namespace wide::kernels {

/// Where a tile or a block of it begins, in y.
struct ConvTileAt {
  int32_t member, batch, depth, row, column, channel;
};

/// Numbering of a tile's pixels and a member's tiles; what may be moved four at a time.
struct ConvWgmmaPlaces {
  uint32_t tiles_of_columns, tiles_of_rows;
  uint32_t num_boxes;           ///< of x, with a halo: one per 128 bytes of channels of a plane
  int batch_bits, column_bits;  ///< of a pixel's number
  bool y_is_aligned, epilogue_is_aligned;

  /// The place `pixels` and `channels` further on in the tile.
  __device__ ConvTileAt moved(const ConvTileAt& at, int pixels, int channels) const {
    const int positions = pixels >> batch_bits;
    return {at.member,
            at.batch + (pixels & ((1 << batch_bits) - 1)),
            at.depth,
            at.row + (positions >> column_bits),
            at.column + (positions & ((1 << column_bits) - 1)),
            at.channel + channels};
  }
};

inline ConvWgmmaPlaces conv_wgmma_places(const ConvWgmmaParams& params, uint32_t tiles_of_columns,
                                         uint32_t tiles_of_rows, uint32_t num_boxes,
                                         int64_t bytes) {
  constexpr int64_t kGroup = 4;
  const ConvParams& conv = params.conv;
  const auto bits = [](int32_t power) { return std::countr_zero(static_cast<uint32_t>(power)); };
  const auto is_whole = [&](const void* pointer, const ChannelStrides& strides, int64_t plane) {
    return is_aligned(pointer, strides.row, strides.member, kGroup, bytes) &&
           strides.batch % kGroup == 0 && strides.column % kGroup == 0 && plane % kGroup == 0;
  };
  return {tiles_of_columns,
          tiles_of_rows,
          num_boxes,
          bits(params.rectangle.batch),
          bits(params.rectangle.columns),
          is_whole(conv.y, conv.y_strides, conv.depth.y),
          is_aligned(conv.bias, 0, conv.bias_member_stride, kGroup, bytes) &&
              is_whole(conv.residual, conv.residual_strides, conv.depth.residual)};
}

/// The pixels of a block, the first of which is at `from`. Pixels of a block that begins within a
/// tile are ordered like the tile's.
struct ConvRows {
  const ConvParams& conv;
  const ConvWgmmaPlaces& places;
  ConvTileAt from;

  __device__ bool has(int row) const {
    const ConvTileAt at = places.moved(from, row, 0);
    return at.column < conv.output.width && at.row < conv.output.height && at.batch < conv.batch;
  }
  __device__ int64_t y(int row) const { return offset(row, conv.y_strides, conv.depth.y); }
  __device__ int64_t residual(int row) const {
    return offset(row, conv.residual_strides, conv.depth.residual);
  }

 private:
  __device__ int64_t offset(int row, const ChannelStrides& strides, int64_t plane) const {
    const ConvTileAt at = places.moved(from, row, 0);
    return at.batch * strides.batch + at.depth * plane + at.row * strides.row +
           at.column * strides.column;
  }
};

/// Pointers are at pixel 0 of batch row 0, at the block's first channel; rows are ConvRows'.
template <class T>
__device__ inline Destination<T> conv_destination(const ConvParams& conv,
                                                  const ConvWgmmaPlaces& places,
                                                  const ConvTileAt& at) {
  Destination<T> to{};
  to.y = static_cast<T*>(conv.y) + at.member * conv.y_strides.member + at.channel;
  if (conv.bias != nullptr) {
    to.bias = static_cast<const T*>(conv.bias) + at.member * conv.bias_member_stride + at.channel;
  }
  if (conv.residual != nullptr) {
    to.residual = static_cast<const T*>(conv.residual) + at.member * conv.residual_strides.member +
                  at.channel;
  }
  to.num_rows = kBlockM;
  to.num_columns = min(conv.out_channels - at.channel, kBlockN);
  to.factor = 1;
  to.activation = conv.activation;
  to.residual_is_activated = conv.residual_is_activated;
  to.y_is_aligned = places.y_is_aligned;
  to.epilogue_is_aligned = places.epilogue_is_aligned;
  return to;
}

/// Stores a whole block, where place(row, column) is a sum in shared memory: neighbouring lanes
/// store neighbouring channels, kGroup each: four where y is aligned, else one.
template <int kGroup, class T, class Place>
__device__ inline void store_pixels(const Destination<T>& to, const ConvRows& rows, int thread,
                                    const Place& place) {
  constexpr int groups = kBlockN / kGroup;
#pragma unroll 1
  for (int index = thread; index < kBlockM * groups; index += kWarpgroup) {
    const int row = index / groups, column = index % groups * kGroup;
    if (column >= to.num_columns || !rows.has(row)) continue;
    Destination<T> pixel = to;
    pixel.y += rows.y(row);
    if (to.residual != nullptr) pixel.residual += rows.residual(row);
    float values[kColumnGroup] = {};
    if constexpr (kGroup == 1) {
      values[0] = *place(row, column);
    } else {
      load_group(place(row, column), values);
    }
    store_run(pixel, 0, column, min(to.num_columns - column, kGroup), values);
  }
}

/// A block outside y is skipped.
template <class T>
__device__ inline void store_conv_block(const ConvWgmmaParams& params,
                                        const ConvWgmmaPlaces& places, const ConvTileAt& at,
                                        const Storer& storer, uint32_t& box_index,
                                        float (&sums)[kBlockSums]) {
  const ConvParams& conv = params.conv;
  if (at.channel >= conv.out_channels || at.column >= conv.output.width ||
      at.row >= conv.output.height || at.batch >= conv.batch) {
    return;  // all of the warpgroup
  }
  const Destination<T> to = conv_destination<T>(conv, places, at);
  const ConvRows rows{conv, places, at};
  if constexpr (kCanStoreBoxes<T>) {
    if (params.stores_boxes && is_short(to)) {
      return store_box(to, rows, storer, box_index++, sums, [&](const char* box) {
        const int32_t of_members = at.member * conv.out_channels + at.channel;
        arch::store_tile(params.y, box, params.are_volumes ? of_members : at.channel, at.batch,
                         at.column, at.row, params.are_volumes ? at.depth : at.member);
      });
    }
  }
  store_exchanged<kCanStoreBoxes<T>>(storer, sums, [&](const auto& place) {
    if (to.y_is_aligned) {
      store_pixels<kColumnGroup>(to, rows, storer.thread, place);
    } else {
      store_pixels<1>(to, rows, storer.thread, place);
    }
  });
}

}  // namespace wide::kernels
