// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Parameters of the hand-rolled GEMMs.
#pragma once

#include <cstdint>

#include "wide/epilogue.hpp"
#include "wide/strides.hpp"

namespace wide::kernels {

/// What is applied to a sum before rounding: y = activation(alpha * scale * sum + bias + residual),
/// or the residual added after the activation.
struct LinearEpilogue {
  const void* bias;      ///< [num_members, n], or null
  const float* scale;    ///< [num_members, n], or [num_members, 1]; or null
  const void* residual;  ///< [m, num_members, n], or null; may be y itself
  int64_t bias_member_stride, scale_member_stride;
  RowStrides residual_strides;
  float alpha;
  Activation activation;
  bool scale_is_per_output;
  bool residual_is_activated;
  /// Whether four neighbours of each operand may be read at a time. Set by the launchers.
  bool is_aligned;
};

/// Where k is divided over blocks: each sums its share, a later kernel adds up the shares.
struct LinearPlanes {
  float* sums;    ///< [count, m, num_members, n]
  int32_t count;  ///< 0: k is not divided
};

/// `m, n, k` are one member's: m its rows (batch), n its out_features, k its in_features. All
/// operands have k or n contiguous; strides are in elements.
struct LinearParams {
  const void* x;       ///< [m, num_members, k]; member stride 0: shared
  const void* weight;  ///< [num_members, n, k]
  void* y;             ///< [m, num_members, n]
  int64_t num_members, m, n, k;
  RowStrides x_strides, weight_strides, y_strides;
  LinearEpilogue epilogue;
  LinearPlanes planes;  ///< small_m only
  /// Whether 16 bytes (y: four elements) may be moved at a time. Set by the launchers.
  bool x_is_aligned, weight_is_aligned, y_is_aligned;
};

}  // namespace wide::kernels
