// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Cuts interpolate's outputs into tiles (tile_cut.hpp), and says how a block writes its own.
#pragma once

#include <algorithm>

#include "kernels/common/grid_blocks.hpp"
#include "kernels/pooling/interpolate_params.hpp"
#include "kernels/pooling/tile_cut.hpp"

namespace wide::kernels {

constexpr int kGroup =
    4;  // neighbouring outputs of a thread: enough to share what finds their rows
// Outputs of a tile, none of which are kept in shared memory: a band of so many where there are
// enough of these, else of fewer. Bands of an image have rows of x in common.
constexpr int64_t kFewOutputs = 8192, kMostOutputs = 32768;
constexpr int kMaxTaps = 1024;  // of a tile's rows and columns, in shared memory

struct InterpolateCut : Cut {
  InterpolateCut() = default;
  explicit InterpolateCut(const Cut& cut) : Cut(cut) {}

  /// Rows of y are whole vectors of `group` outputs: a thread has one of them in a part of the rows
  /// below each other. Else y is written as runs of any alignment.
  bool has_groups = false;
  int parts = 1, rows_of_part = 1;
  Divisor32 by_parts;
  Run y_run = Run::row;  ///< the contiguous part of a tile's outputs
  int y_pitch = 0;       ///< as staged_runs.cuh has it
  Divisor32 by_y_chunks;
  int num_taps = 0;  ///< of its rows and columns
};

/// Finds tiles for a dtype with `size` elements in 16 bytes.
class InterpolateCutter final : public TileCutter<InterpolateParams> {
 public:
  InterpolateCutter(const InterpolateParams& p, int size) : TileCutter(p, size) {
    if (p.columns.out % kGroup == 0 && are_groups()) unit_ = kGroup;
    const int64_t of_image = int64_t{p.rows.out} * p.columns.out;
    const int64_t tiles = of_image / kMostOutputs * cut_.num_images;
    most_of_image_ = tiles >= kEnoughTiles ? kMostOutputs : kFewOutputs;
  }

  InterpolateCut cut() {
    cut_tiles();
    InterpolateCut all(cut_);
    all.has_groups = unit_ > 1;
    all.group = unit_;
    all.across = all.columns / all.group;
    all.by_across = Divisor32(all.across);
    all.num_taps = all.rows + all.columns;
    // As many parts as there are threads for: the rows of one share what they have in common.
    const int parts = std::clamp(kTileThreads / (all.images * all.across), 1, all.rows);
    all.rows_of_part = (all.rows + parts - 1) / parts;
    all.parts = (all.rows + all.rows_of_part - 1) / all.rows_of_part;
    all.by_parts = Divisor32(all.parts);
    set_y_run(all);
    return all;
  }

 private:
  int extent(const LinearAxis& axis, int count) const override {
    const int64_t between = ((count - 1) * axis.step + axis.parts - 1) / axis.parts;
    return static_cast<int>(std::min<int64_t>(between + 2, axis.in));
  }
  bool allows(int images, int rows, int columns) const override {
    const int64_t outputs = int64_t{rows} * columns;
    return outputs <= most_of_image_ && images * outputs <= kMostOutputs &&
           int64_t{rows} + columns <= kMaxTaps;
  }
  bool are_groups() const {
    const ChannelStrides& s = p_.y_strides;
    return reinterpret_cast<uintptr_t>(p_.y) % static_cast<uintptr_t>(kGroup * 16 / size_) == 0 &&
           (s.batch | s.member | s.channel | s.row) % kGroup == 0;
  }
  void set_y_run(InterpolateCut& all) const {
    const bool has_whole_rows =
        all.strips == 1 && (p_.rows.out == 1 || p_.y_strides.row == p_.columns.out);
    const bool has_whole_images =
        has_whole_rows && all.bands == 1 &&
        (all.num_images == 1 ||
         (all.is_joined && p_.y_strides.channel == int64_t{p_.rows.out} * p_.columns.out));
    all.y_run = has_whole_images ? Run::tile : has_whole_rows ? Run::image : Run::row;
    const int rows = all.y_run == Run::row ? 1 : all.rows;
    const int length = all.columns * rows * (all.y_run == Run::tile ? all.images : 1);
    all.y_pitch = (length + 2 * size_ - 2) / size_ * size_;
    all.by_y_chunks = Divisor32(all.y_pitch / size_);
  }

  int64_t most_of_image_;
};

inline int64_t interpolate_blocks(const Cut& cut) {
  return block_product({(cut.num_images + cut.images - 1) / cut.images, cut.bands, cut.strips});
}

}  // namespace wide::kernels
