// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How the CPU's convolutions see x, whatever its layout, type and padding: as channels of floats in
// which all neighbouring outputs read neighbouring inputs, for every tap.
//
// A channel is a stack of padded planes. Where the convolution takes steps of s, a plane is
// split into s * s phases, each with every s-th row and column: a tap reads one phase in steps
// of 1. Where taps are far apart and outputs few, each tap has a phase of its own instead, with
// what it reads alone. Rows follow each other, so that outputs of several rows are one run of
// positions, too: those at the end of a row are computed and dropped.
#pragma once

#include <vector>

#include "wide/conv.hpp"

namespace wide::cpu {

/// The terms of some planes of y that read x: the others, whose planes of the kernel lie in the
/// padding, are zeros as long as their weights are finite.
struct ConvPlaneTerms {
  int64_t first = 0, end = 0;      ///< planes of the kernel
  std::vector<int64_t> terms{};    ///< ascending
  std::vector<int64_t> inputs{};   ///< of these, from the first channel of a group on
  std::vector<int64_t> padding{};  ///< the terms that are left out
};

/// One batch row of one member as staged, and where its terms are.
struct ConvStage {
  PerAxis phases{}, size{};  ///< of a plane, and of a phase
  PerAxis phase_step{};      ///< rows and columns from one phase to the next
  int64_t planes = 0;
  int64_t channel_floats = 0;
  int64_t image_floats = 0;  ///< the channels and some zeros that the last rows read
  int64_t channels_at_once = 1, rows_at_once = 1;  ///< see stage_part()
  int64_t row_parts = 0, parts = 0;
  std::vector<ConvPlaneTerms> plane_terms{};  ///< of each kind of y's planes; the first has all
  std::vector<int64_t> weights{};  ///< of a group's terms, from the output channel's first one on
  bool has_dense_weights = false;  ///< these are 0, 1, 2, ..

  int64_t phase_floats() const { return size.height * size.width; }
  int64_t plane_floats() const { return phases.height * phases.width * phase_floats(); }
  int64_t rows() const { return planes * phases.height * phases.width * size.height; }
  /// Positions of a plane of y, with those that are dropped.
  int64_t positions(const PerAxis& output) const {
    return (output.height - 1) * size.width + output.width;
  }
};

/// Throws invalid_argument where the padded sizes do not fit in 64 bits.
ConvStage make_conv_stage(const ConvProblem& problem);

/// Which of stage.plane_terms are those of a plane of y.
size_t kind_of_plane(const ConvProblem& problem, const ConvStage& stage, int64_t plane);

/// Writes one of stage.parts parts of an image: some rows of some neighbouring channels. `x` is its
/// first channel.
void stage_part(const ConvProblem& problem, const ConvStage& stage, const void* x, int64_t part,
                float* image);

/// to[c][r] = from[r][c]; `rows` and `columns` are rounded up to multiples of four.
[[gnu::always_inline]] inline void transpose(const float* from, int64_t from_stride, float* to,
                                             int64_t to_stride, int64_t rows, int64_t columns) {
  using Four [[gnu::vector_size(16)]] = float;
  using There [[gnu::vector_size(16), gnu::may_alias, gnu::aligned(4)]] = float;
  for (int64_t c = 0; c < columns; c += 4) {
    for (int64_t r = 0; r < rows; r += 4) {
      Four row[4];
      for (int i = 0; i < 4; ++i) {
        row[i] = *reinterpret_cast<const There*>(from + (r + i) * from_stride + c);
      }
      const Four low01 = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
      const Four low23 = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
      const Four high01 = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
      const Four high23 = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
      const Four columns_of[4] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                                  __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                                  __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                                  __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
      for (int i = 0; i < 4; ++i) {
        *reinterpret_cast<There*>(to + (c + i) * to_stride + r) = columns_of[i];
      }
    }
  }
}

}  // namespace wide::cpu
