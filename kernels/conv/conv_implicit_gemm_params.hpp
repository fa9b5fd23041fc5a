// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A convolution as a matrix product: one member's group multiplies pixels (positions of all batch
// rows) by output channels, and sums over terms. A term is an element of the weight's row
// [channels, kernel depth, height, width], numbered in memory order, so that a block reads weights
// contiguously in either layout. Kernels of images omit the depth: they have three axes of terms,
// kernels of volumes four.
#pragma once

#include <cstdint>

#include "kernels/common/divisor.hpp"
#include "kernels/conv/conv_params.hpp"

namespace wide::kernels {

inline constexpr int kImageAxes = 3, kVolumeAxes = 4;  ///< of terms

/// One of the axes of a weight's row, and the effect of a step along it.
struct ConvTermAxis {
  int32_t count;               ///< its extent
  int32_t per_stage;           ///< this axis' digit of a stage's number of terms
  int32_t x, weight;           ///< elements
  int32_t depth, row, column;  ///< positions of x
};

struct ConvGemmParams {
  ConvParams conv;
  ConvTermAxis axes[kVolumeAxes];  ///< the fastest first; for images the last has one step, 0
  int32_t num_terms;
  int64_t num_pixels;
  Divisor planes;              ///< per batch row of y
  Divisor positions, columns;  ///< per plane of y, and per row of those
  bool weight_is_contiguous, weight_is_aligned;
  bool y_has_vectors;   ///< four neighbours along the product's columns are neighbours in y
  bool y_has_channels;  ///< otherwise, with pixels as columns: four channels of one are
  bool bias_is_aligned, residual_is_aligned;  ///< the same for them
};

}  // namespace wide::kernels
