// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "wide/dtype.hpp"
#include "wide/gate_function.hpp"

namespace wide::kernels {

struct TopKParams {
  const void* scores = nullptr;  ///< [rows, num_members]
  void* ids = nullptr;           ///< [rows, choices]
  float* gates = nullptr;        ///< [rows, choices]; null: not wanted
  int64_t rows = 0, num_members = 0, choices = 0, scores_row_stride = 0;
  /// Choices of this launch. Those before are read from `ids`; the last launch writes all gates.
  int64_t first = 0, last = 0;
  int id_bytes = 8;  ///< 4 or 8
  GateFunction gate = GateFunction::softmax;
};

/// All choices in one launch where first is 0 and last is choices.
cudaError_t launch_top_k(Dtype dtype, const TopKParams& params, cudaStream_t stream);

}  // namespace wide::kernels
