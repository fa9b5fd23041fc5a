// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launcher of the hand-rolled batched GEMM on the ordinary fp32 units.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/linear/linear_simt_tile.hpp"
#include "wide/dtype.hpp"
#include "wide/epilogue.hpp"
#include "wide/plan.hpp"

namespace wide::kernels {

/// `m, n, k` are one member's: m its rows (batch), n its out_features, k its in_features. All
/// operands have k or n contiguous; strides are in elements.
struct LinearSimtParams {
  const void* x;       ///< [m, num_members, k]; member stride 0: shared
  const void* weight;  ///< [num_members, n, k]
  const void* bias;    ///< [num_members, n], or null
  void* y;             ///< [m, num_members, n]
  int64_t num_members, m, n, k;
  RowStrides x_strides, weight_strides, y_strides;
  int64_t bias_member_stride;
  Activation activation;
  /// Whether 16 bytes (bias and y: four elements) may be moved at a time. Set by the launcher.
  bool x_is_aligned, weight_is_aligned, bias_is_aligned, y_is_aligned;
};

/// y[m, i, n] = activation(sum_k x[m, i, k] * weight[i, n, k] + bias[i, n]) for all members i in
/// one launch. Sums run over k upwards in fp32, whatever the tile: the tile changes no bit.
/// Nothing is launched where y is empty. cudaErrorInvalidConfiguration for more than 2^31 - 1
/// tiles, cudaErrorInvalidValue for a dtype other than fp32, fp16, bf16.
cudaError_t launch_linear_simt(LinearSimtParams params, Dtype dtype, LinearSimtTile tile,
                               cudaStream_t stream);

}  // namespace wide::kernels
