// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Cuts pools into tiles (tile_cut.hpp), and says how their windows are taken.
#pragma once

#include <algorithm>
#include <bit>

#include "kernels/common/grid_blocks.hpp"
#include "kernels/pooling/pooling_params.hpp"
#include "kernels/pooling/tile_cut.hpp"
#include "wide/pooling_mode.hpp"

namespace wide::kernels {

constexpr int kMaxLanes = 32;
constexpr int kPoolingThreads = kTileThreads;
constexpr int kMinWholeLanes = 4;
constexpr int kMaxWhole = 4096;  // elements of a whole image that one team adds up

// For channels last.
constexpr int kLastThreads = 256;
constexpr int kMaxTeam = 32;
constexpr int kTapsOfThread = 8;  // at least, before a window is divided

/// The most positions that `count` neighbouring windows take.
inline int extent_of(PoolingMode mode, const PoolingAxis& axis, int count) {
  const int64_t wanted =
      mode == PoolingMode::adaptive_average
          ? (int64_t{count} * axis.in + axis.out - 1) / axis.out + 1
          : int64_t{count - 1} * axis.stride + int64_t{axis.kernel - 1} * axis.dilation + 1;
  return static_cast<int>(std::min<int64_t>(wanted, axis.in));
}

/// The most taps of a window along one axis.
inline int taps_along(PoolingMode mode, const PoolingAxis& axis) {
  return mode == PoolingMode::adaptive_average ? (axis.in + axis.out - 1) / axis.out : axis.kernel;
}

/// Elements of a thread's vectors where rows allow it: 16 bytes, or 8 where 16-bit ones become
/// floats, which then need as many registers.
constexpr int wide_vector(PoolingMode mode, int size) {
  return mode == PoolingMode::max ? size : 4;
}

/// Finds tiles for a problem and a dtype with `size` elements in 16 bytes.
class Cutter final : public TileCutter<PoolingParams> {
 public:
  Cutter(PoolingMode mode, const PoolingParams& p, int size) : TileCutter(p, size), mode_(mode) {}

  /// Whether each window takes a block, unless whole_lanes is set; by a member's sizes alone.
  bool is_long() const {
    const int rows = extent_of(mode_, p_.rows, 1), columns = extent_of(mode_, p_.columns, 1);
    return inputs_per_output() >= 1024 || !fits(Run::row, 1, 1, 1) ||
           rows * int64_t{columns} > 8192;
  }

  Cut cut() {
    set_whole();
    if (cut_.whole_lanes > 0) return cut_;
    cut_tiles();
    set_lanes();
    set_unrolled();
    if (cut_.unrolled > 0) set_vector();
    set_steps();
    return cut_;
  }

 private:
  int extent(const PoolingAxis& axis, int count) const override {
    return extent_of(mode_, axis, count);
  }
  bool is_whole(const PoolingAxis& axis) const {
    return axis.out == 1 && (mode_ == PoolingMode::adaptive_average ||
                             (axis.padding == 0 && axis.kernel == axis.in &&
                              (axis.dilation == 1 || axis.kernel == 1)));
  }
  /// By a member's sizes alone, except how an image is read: a lane takes every lanes-th of its
  /// vectors in either case.
  void set_whole() {
    const int64_t length = int64_t{p_.rows.in} * p_.columns.in, vectors = length / size_;
    if (!is_whole(p_.rows) || !is_whole(p_.columns) || length % size_ != 0) return;
    if (vectors < kMinWholeLanes || length > kMaxWhole) return;
    const auto lanes = std::bit_ceil(static_cast<uint64_t>(vectors + 3) / 4);
    cut_.whole_lanes = std::clamp(static_cast<int>(lanes), kMinWholeLanes, kMaxLanes);
    cut_.has_whole_vectors = (p_.rows.in == 1 || p_.x_strides.row == p_.columns.in) &&
                             begins_at_multiples(p_.x, p_.x_strides, size_);
  }
  int64_t inputs_per_output() const {
    return int64_t{p_.rows.in} * p_.columns.in / (int64_t{p_.rows.out} * p_.columns.out);
  }
  void set_steps() {
    cut_.across = cut_.columns / cut_.group;
    cut_.by_across = Divisor32(cut_.across);
    cut_.step_images = kPoolingThreads / (cut_.rows * cut_.across);
    cut_.step_rows = kPoolingThreads / cut_.across % cut_.rows;
    cut_.step_columns = kPoolingThreads % cut_.across;
  }
  /// Small windows without dilation, where a tile's inputs and outputs are one run each.
  void set_unrolled() {
    const int kernel = p_.columns.kernel;
    const bool is_small = (kernel == 2 || kernel == 3) &&
                          (p_.rows.kernel == kernel || p_.rows.kernel == 1) &&
                          p_.rows.dilation == 1 && p_.columns.dilation == 1;
    const bool has_runs =
        (cut_.run == Run::tile || (cut_.run == Run::image && cut_.images == 1)) &&
        cut_.strips == 1 && (p_.rows.out == 1 || p_.y_strides.row == p_.columns.out) &&
        (cut_.images == 1 || p_.y_strides.channel == int64_t{p_.rows.out} * p_.columns.out);
    const bool is_fixed = mode_ != PoolingMode::adaptive_average && cut_.lanes() == 1;
    if (is_small && has_runs && is_fixed) cut_.unrolled = kernel;
  }
  /// Whether all windows have as many elements, or elements and padding that counts.
  bool is_full(const PoolingAxis& axis) const {
    return (axis.padding == 0 || p_.counts_padding) &&
           (axis.out - 1) * int64_t{axis.stride} + axis.kernel <=
               int64_t{axis.in} + 2 * axis.padding;
  }
  /// Whether an operand and its images begin at a multiple of a power of two of elements.
  bool begins_at_multiples(const void* data, const ChannelStrides& s, int count) const {
    return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(count * 16 / size_) == 0 &&
           (s.batch | s.member | s.channel) % count == 0;
  }
  /// Whether rows are whole groups, which begin with a vector in x, and so in shared memory, and
  /// can be stored as one.
  bool allows_vector(int vector) const {
    const PoolingAxis& across = p_.columns;
    const int group = vector / across.stride;
    return across.in % vector == 0 && across.out % group == 0 &&
           int64_t{across.out} * across.stride <= across.in &&
           begins_at_multiples(p_.x, p_.x_strides, vector) &&
           begins_at_multiples(p_.y, p_.y_strides, group);
  }
  /// Of unrolled windows those that usual networks have; vectors of the largest size that there is
  /// code for.
  void set_vector() {
    const PoolingAxis& across = p_.columns;
    const bool is_pair = across.kernel == 2 && across.stride == 2 && across.padding == 0;
    const bool is_triple = across.kernel == 3 && ((across.stride == 2 && across.padding <= 1) ||
                                                  (across.stride == 1 && across.padding == 1));
    if (!is_pair && !is_triple) return;
    for (const int vector : {wide_vector(mode_, size_), 2}) {
      if (!allows_vector(vector)) continue;
      cut_.has_full_windows = is_full(p_.rows) && is_full(across);
      cut_.vector = vector;
      cut_.group = vector / across.stride;
      return;
    }
  }
  /// A team where an output has at least that many inputs of its own: else outputs suffice.
  void set_lanes() {
    const auto across = static_cast<unsigned>(taps_along(mode_, p_.columns));
    const int64_t taps = int64_t{taps_along(mode_, p_.rows)} * across;
    const auto lanes = std::bit_floor(
        static_cast<unsigned>(std::min<int64_t>({inputs_per_output(), taps, int64_t{kMaxLanes}})));
    if (lanes < 16) return;
    cut_.lanes_x = static_cast<int>(std::min(lanes, std::bit_ceil(across)));
    cut_.lanes_y = static_cast<int>(lanes) / cut_.lanes_x;
  }

  PoolingMode mode_;
};

/// Blocks of a launch: one per output where windows are long.
inline int64_t pooling_blocks(const PoolingParams& p, const Cut& cut, bool is_long) {
  if (cut.whole_lanes > 0) {
    return (cut.num_images - 1) / (kPoolingThreads / cut.whole_lanes) + 1;
  }
  return is_long ? block_product({cut.num_images, p.rows.out, p.columns.out})
                 : block_product(
                       {(cut.num_images + cut.images - 1) / cut.images, cut.bands, cut.strips});
}

/// Channels last: threads that share a window, a power of two, and blocks of a launch that moves
/// `vector` channels at a time.
inline int pooling_last_team(PoolingMode mode, const PoolingParams& p) {
  const int64_t taps = int64_t{taps_along(mode, p.rows)} * taps_along(mode, p.columns);
  return static_cast<int>(std::bit_floor(
      static_cast<unsigned>(std::clamp<int64_t>(taps / kTapsOfThread, 1, kMaxTeam))));
}
inline int64_t pooling_last_blocks(PoolingMode mode, const PoolingParams& p, int vector) {
  const int64_t vectors =
      p.batch * p.rows.out * p.columns.out * (p.num_members * p.channels / vector);
  return (vectors - 1) / (kLastThreads / pooling_last_team(mode, p)) + 1;
}

}  // namespace wide::kernels
