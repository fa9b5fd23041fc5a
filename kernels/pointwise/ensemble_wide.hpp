// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "wide/dtype.hpp"
#include "wide/ensemble_function.hpp"

namespace wide::kernels {

/// x [rows, members, features], y [rows, features]; strides in elements.
struct EnsembleParams {
  const void* x = nullptr;
  const uint8_t* mask = nullptr;  ///< [members], 0: left out; null: all count
  void* y = nullptr;
  int64_t num_members = 0, rows = 0, features = 0;
  int64_t x_row_stride = 0, x_member_stride = 0, y_row_stride = 0;
  /// Members of this launch; if not all, partial results are read from `state` where first > 0, and
  /// written there where last < num_members.
  int64_t first = 0, last = 0;
  void* state = nullptr;  ///< planes of [rows, features], one per part of a sum
  bool is_sum = false;    ///< of a mean, which then is not divided; set by the launcher
};

/// All members in one launch where first is 0 and last is num_members.
cudaError_t launch_ensemble_wide(EnsembleFunction function, Dtype dtype,
                                 const EnsembleParams& params, cudaStream_t stream);

}  // namespace wide::kernels
