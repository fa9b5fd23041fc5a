// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A block's tile, channels first: which outputs it has, and their inputs in shared memory.
#pragma once

#include "kernels/common/staged_runs.cuh"
#include "kernels/pooling/tile_cut.hpp"

namespace wide::kernels {

/// Offset of an image's first element.
__device__ inline int64_t image_offset(const Cut& cut, const ChannelStrides& s, int64_t image) {
  if (cut.is_joined) return image * s.channel;
  int64_t channel, member;
  const int64_t batch = cut.by_members.divide(cut.by_channels.divide(image, channel), member);
  return batch * s.batch + member * s.member + channel * s.channel;
}

/// The outputs of a block, and the inputs that they need.
struct Tile {
  int64_t first_image;
  int images;
  int row, rows, column, columns;
  int in_row, in_rows, in_column, in_columns;
};

/// span_of(axis, output, count): the first position and the number of positions that outputs
/// [output, output + count) take.
template <class Params, class SpanOf>
__device__ Tile tile_of(const Params& p, const Cut& cut, const SpanOf& span_of) {
  int strip, band;
  const int bands = cut.by_strips.divide(static_cast<int>(blockIdx.x), strip);
  Tile tile;
  tile.first_image = int64_t{cut.by_bands.divide(bands, band)} * cut.images;
  tile.images = static_cast<int>(min(int64_t{cut.images}, cut.num_images - tile.first_image));
  tile.row = band * cut.rows;
  tile.rows = min(cut.rows, p.rows.out - tile.row);
  tile.column = strip * cut.columns;
  tile.columns = min(cut.columns, p.columns.out - tile.column);
  // Runs of several rows have whole rows; of several images, all rows of each.
  int2 down{0, p.rows.in}, across{0, p.columns.in};
  if (cut.run != Run::tile) down = span_of(p.rows, tile.row, tile.rows);
  if (cut.run == Run::row) across = span_of(p.columns, tile.column, tile.columns);
  tile.in_row = down.x;
  tile.in_rows = down.y;
  tile.in_column = across.x;
  tile.in_columns = across.y;
  return tile;
}

/// A tile's inputs in shared memory.
template <class T, class Params>
class Inputs {
 public:
  /// `starts`: room for cut.runs numbers.
  __device__ Inputs(const Params& p, const Cut& cut, const Tile& tile, T* kept, int* starts)
      : p_(p), cut_(cut), tile_(tile), kept_(kept), starts_(starts) {}

  /// Loads what is one run, and returns where it begins; the block may read it after a barrier. The
  /// same as load(), except that an address is found once instead of with every 16 bytes.
  __device__ const T* load_one() const {
    constexpr int kSize = Vec16<T>::kSize;
    const T* const from = address_of(0);
    const int length =
        tile_.in_rows * tile_.in_columns * (cut_.run == Run::tile ? tile_.images : 1);
    const int thread = static_cast<int>(threadIdx.x), phase = phase_of(from);
    for (int i = thread * kSize - phase; i < length; i += kTileThreads * kSize) {
      if (i < 0) continue;
      arch::cp_async_16(kept_ + phase + i, from + i,
                        min(length - i, kSize) * static_cast<int>(sizeof(T)));
    }
    arch::cp_async_commit();
    const int element = thread - phase;
    if (phase > 0 && thread < kSize && element >= 0 && element < length) {
      kept_[thread] = from[element];
    }
    arch::cp_async_wait<0>();
    return kept_ + phase;
  }
  /// Loads them; the block may read them after a barrier.
  __device__ void load() const {
    if (cut_.run == Run::tile) {
      const T* const first = load_one();
      if (threadIdx.x == 0) starts_[0] = static_cast<int>(first - kept_);
      return;
    }
    const int runs = cut_.run == Run::image ? tile_.images : tile_.images * cut_.in_rows;
    const int length = cut_.run == Run::row ? tile_.in_columns : tile_.in_rows * tile_.in_columns;
    const auto from = [this](int run) { return address_of(run); };
    const int thread = static_cast<int>(threadIdx.x);
    bring_runs(kept_, {cut_.pitch, cut_.by_chunks}, runs, length, {thread, kTileThreads}, from);
    for (int run = thread; run < runs; run += kTileThreads) {
      starts_[run] = run * cut_.pitch + phase_of(address_of(run));
    }
    arch::cp_async_wait<0>();
  }

  /// Element (row, column) of the tile's `image`, with x's coordinates.
  __device__ const T* at(int image, int row, int column) const {
    const int in_row = row - tile_.in_row, in_column = column - tile_.in_column;
    if (cut_.run == Run::row) {
      return kept_ + starts_[image * cut_.in_rows + in_row] + in_column;
    }
    const bool is_one = cut_.run == Run::tile;
    return kept_ + starts_[is_one ? 0 : image] +
           ((is_one ? image * tile_.in_rows : 0) + in_row) * tile_.in_columns + in_column;
  }

 private:
  /// Null for a row that no output needs.
  __device__ const T* address_of(int run) const {
    int row = 0, image = run;
    if (cut_.run == Run::row) image = cut_.by_in_rows.divide(run, row);
    if (row >= tile_.in_rows) return nullptr;
    return static_cast<const T*>(p_.x) +
           image_offset(cut_, p_.x_strides, tile_.first_image + image) +
           (tile_.in_row + row) * p_.x_strides.row + tile_.in_column;
  }

  const Params& p_;
  const Cut& cut_;
  const Tile& tile_;
  T* kept_;
  int* starts_;
};

}  // namespace wide::kernels
