// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The operands of a convolution's tile on the CPU: its inputs, a row of floats per term, and its
// weights.
//
// Where neighbouring outputs read neighbouring inputs, the terms of one row of the kernel are one
// row of inputs, shifted: it is copied once, padding and all, for all of them.
#pragma once

#include <algorithm>
#include <array>

#include "host/conv/conv_cpu_tile.hpp"
#include "host/conv/conv_run.hpp"
#include "wide/convert.hpp"

namespace wide::cpu {

inline const void* element_at(const void* base, int64_t offset, Dtype dtype) {
  return static_cast<const char*>(base) + offset * dtype_bytes(dtype);
}

/// `count` values `stride` elements apart.
inline void decode(Dtype dtype, const void* base, int64_t offset, int64_t stride, float* out,
                   int64_t count) {
  if (stride == 1) return decode_row(dtype, element_at(base, offset, dtype), out, count);
  for (int64_t i = 0; i < count; ++i) {
    decode_row(dtype, element_at(base, offset + i * stride, dtype), out + i, 1);
  }
}

/// One term of every output of a group, in the order in which they lie in the weight.
class Term {
 public:
  /// The first one.
  explicit Term(const ConvProblem& p) : p_(p) {}

  void advance() {
    if (p_.layout == ChannelLayout::channels_last) {
      if (++channel_ < p_.in_channels / p_.groups) return;
      channel_ = 0;
    }
    if (++column_ < p_.kernel.width) return;
    column_ = 0;
    if (++row_ < p_.kernel.height) return;
    row_ = 0;
    if (++plane_ < p_.depth.kernel) return;
    plane_ = 0;
    ++channel_;
  }

  /// From the output channel's first weight.
  int64_t weight() const {
    return channel_ * p_.weight.in_channel + plane_ * p_.depth.weight_stride +
           row_ * p_.weight.row + column_ * p_.weight.column;
  }
  /// From the group's first channel, at position 0.
  int64_t x() const { return channel_ * p_.x.channel; }
  int64_t plane() const { return plane_ * p_.depth.dilation; }
  int64_t row() const { return row_ * p_.dilation.height; }
  int64_t column() const { return column_ * p_.dilation.width; }

 private:
  const ConvProblem& p_;
  int64_t channel_ = 0, plane_ = 0, row_ = 0, column_ = 0;
};

/// Whether an output channel's weights are contiguous in that order.
inline bool has_dense_weights(const ConvProblem& p) {
  const ConvWeightStrides& s = p.weight;
  const int64_t in = p.in_channels / p.groups, height = p.kernel.height, width = p.kernel.width;
  const bool is_first = p.layout == ChannelLayout::channels_first;
  const int64_t row = is_first ? width : width * in, plane = height * row;
  return (height == 1 || s.row == row) && (p.depth.kernel == 1 || p.depth.weight_stride == plane) &&
         (is_first ? in == 1 || s.in_channel == p.depth.kernel * plane
                   : width == 1 || s.column == in);
}

/// Neighbouring outputs of one row of y, a part of a tile; all of a tile's are in one plane.
struct Run {
  int64_t row, column;
  int first, count;  ///< in the tile
};

/// A tile: where it lies.
struct Place {
  int64_t member, batch, group, channel;  ///< the first output channel, of the member's
  int64_t plane;
  int channels;
  int num_runs;
  std::array<Run, kConvPositions> runs;
};

/// The inputs of one term at a run's positions, or of the term in another column of the kernel;
/// 0 in the padding. `offset` is that of the group's first channel; the outputs are in `plane`.
inline void gather_run(const ConvProblem& p, const void* x, int64_t offset, const Term& term,
                       int64_t kernel_column, int64_t plane, const Run& run, float* out) {
  const int64_t from = plane * p.depth.stride - p.depth.padding + term.plane();
  const int64_t row = run.row * p.stride.height - p.padding.height + term.row();
  const int64_t column = run.column * p.stride.width - p.padding.width + kernel_column;
  const int64_t step = p.stride.width;
  const auto steps = [&](int64_t columns) { return step == 1 ? columns : columns / step; };
  int64_t first = column >= 0 ? 0 : std::min<int64_t>(run.count, steps(-column + step - 1));
  int64_t end = column >= p.input.width
                    ? 0
                    : std::min<int64_t>(run.count, steps(p.input.width - 1 - column) + 1);
  const bool has_row = from >= 0 && from < p.depth.input && row >= 0 && row < p.input.height;
  if (!has_row || first >= end) first = end = run.count;
  std::fill_n(out, first, 0.0f);
  std::fill(out + end, out + run.count, 0.0f);
  if (first == end) return;
  decode(p.dtype, x,
         offset + term.x() + from * p.depth.x_stride + row * p.x.row +
             (column + first * step) * p.x.column,
         step * p.x.column, out + first, end - first);
}

class TileInputs {
 public:
  TileInputs(const ConvProblem& p, const void* x, const Place& place)
      : p_(p),
        x_(x),
        offset_(place.batch * p.x.batch + place.member * p.x.member +
                place.group * (p.in_channels / p.groups) * p.x.channel),
        place_(place),
        reach_((p.kernel.width - 1) * p.dilation.width),
        shares_rows_(p.layout == ChannelLayout::channels_first && p.stride.width == 1 &&
                     p.kernel.width > 1 && reach_ <= kSpan - kConvPositions &&
                     place.num_runs == 1) {}

  /// Gathers `depth` terms from `term` on, which moves past them.
  void gather(Term& term, int depth) {
    float* row = values_ - kSpan;
    for (int t = 0; t < depth; ++t, term.advance()) {
      if (!shares_rows_) {
        float* values = values_ + t * kConvPositions;
        for (int r = 0; r < place_.num_runs; ++r) {
          const Run& run = place_.runs[static_cast<size_t>(r)];
          gather_run(p_, x_, offset_, term, term.column(), place_.plane, run, values + run.first);
        }
        terms_[t] = values;
        continue;
      }
      if (t == 0 || term.column() == 0) {
        Run run = place_.runs[0];
        run.count += static_cast<int>(reach_);
        row += kSpan;
        gather_run(p_, x_, offset_, term, 0, place_.plane, run, row);
      }
      terms_[t] = row + term.column();
    }
  }
  const float* const* terms() const { return terms_; }

 private:
  /// Length and number of shared rows: two or more terms each; the first may continue one.
  static constexpr int kSpan = 2 * kConvPositions, kRows = kConvDepth / 2 + 2;

  const ConvProblem& p_;
  const void* x_;
  int64_t offset_;
  const Place& place_;
  int64_t reach_;
  bool shares_rows_;
  float values_[kRows * kSpan] = {};  // values past a run are multiplied, too, and dropped
  const float* terms_[kConvDepth];
};

/// The weights of terms [first, first + depth), `begin` the first of them, for the tile's channels,
/// at `stride` from channel to channel: in place, or decoded into `buffer`.
inline const float* gather_weights(const ConvProblem& p, const void* weight, const Place& place,
                                   int64_t first, const Term& begin, int depth, float* buffer,
                                   int64_t& stride) {
  const bool is_dense = has_dense_weights(p);
  const int64_t base = place.member * p.weight.member + place.channel * p.weight.out_channel;
  stride = p.weight.out_channel;
  if (is_dense && p.dtype == Dtype::fp32) return static_cast<const float*>(weight) + base + first;
  for (int o = 0; o < place.channels; ++o, buffer += kConvDepth) {
    const int64_t channel = base + o * p.weight.out_channel;
    if (is_dense) {
      decode(p.dtype, weight, channel + first, 1, buffer, depth);
      continue;
    }
    Term term = begin;
    for (int t = 0; t < depth; ++t, term.advance()) {
      decode(p.dtype, weight, channel + term.weight(), 1, buffer + t, 1);
    }
  }
  stride = kConvDepth;
  return buffer - place.channels * kConvDepth;
}

}  // namespace wide::cpu
