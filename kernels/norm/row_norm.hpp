// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "wide/chain_norm.hpp"
#include "wide/dtype.hpp"
#include "wide/epilogue.hpp"

namespace wide::kernels {

/// Of rows that are routed: whose row r is, ids[r] - first_id of [0, num_members), or no member's.
/// Such rows lie like those of one member, and all members' parameters are given.
struct RowOwners {
  static constexpr int64_t kNobody = -1, kAll = -2;

  const void* ids = nullptr;  ///< [rows]; null: rows are not routed
  bool is_int64 = false;      ///< else int32
  int64_t first_id = 0, num_members = 0;
  int64_t only = kAll;  ///< whose rows are computed, the others left alone; kNobody's become zeros
};

/// x, residual, sum, y [rows, members, features], bias, gamma, beta [members, features]; strides in
/// elements.
struct RowNormParams {
  const void* x = nullptr;
  const void* bias = nullptr;      ///< null: 0; chains only
  const void* residual = nullptr;  ///< null: 0; chains only
  const void* gamma = nullptr;     ///< null: 1
  const void* beta = nullptr;      ///< null: 0
  void* y = nullptr;               ///< may be x or residual
  void* sum = nullptr;             ///< likewise; null: not written; chains only
  int64_t num_members = 0, rows = 0, features = 0;
  int64_t x_row_stride = 0, x_member_stride = 0;
  int64_t y_row_stride = 0, y_member_stride = 0;
  int64_t residual_row_stride = 0, residual_member_stride = 0;
  int64_t sum_row_stride = 0, sum_member_stride = 0;
  int64_t bias_member_stride = 0, gamma_member_stride = 0, beta_member_stride = 0;
  float epsilon = 0;
  Activation activation = Activation::none;  ///< chains only
  ChainNorm norm = ChainNorm::none;          ///< chains only
  RowOwners owners{};
};

/// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, all members in one launch.
cudaError_t launch_layernorm_wide(Dtype dtype, const RowNormParams& params, cudaStream_t stream);

/// y = x / sqrt(mean of squares + epsilon) * gamma + beta, all members in one launch.
cudaError_t launch_rmsnorm_wide(Dtype dtype, const RowNormParams& params, cudaStream_t stream);

/// sum = residual + activation(x + bias), rounded to the dtype; y = norm(sum).
cudaError_t launch_chain_wide(Dtype dtype, const RowNormParams& params, cudaStream_t stream);

}  // namespace wide::kernels
