// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the hand-rolled GEMMs are told.
#pragma once

#include <cstdint>

#include "wide/epilogue.hpp"
#include "wide/plan.hpp"

namespace wide::kernels {

/// `m, n, k` are one member's: m its rows (batch), n its out_features, k its in_features. All
/// operands have k or n contiguous; strides are in elements.
struct LinearParams {
  const void* x;       ///< [m, num_members, k]; member stride 0: shared
  const void* weight;  ///< [num_members, n, k]
  const void* bias;    ///< [num_members, n], or null
  void* y;             ///< [m, num_members, n]
  int64_t num_members, m, n, k;
  RowStrides x_strides, weight_strides, y_strides;
  int64_t bias_member_stride;
  Activation activation;
  /// Whether 16 bytes (bias and y: four elements) may be moved at a time. Set by the launchers.
  bool x_is_aligned, weight_is_aligned, bias_is_aligned, y_is_aligned;
};

}  // namespace wide::kernels
