// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launcher of linear on quantised weights (compute capability 8.0 and up).
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/linear/linear_params.hpp"
#include "kernels/linear/linear_weight_only_tile.hpp"
#include "wide/dtype.hpp"
#include "wide/weight_format.hpp"

namespace wide::kernels {

/// The parts of a member's blob, of 16 outputs each.
struct WeightStrips {
  int64_t bytes;        ///< of a strip
  int tiles_per_group;  ///< of 64 inputs: 1 or 2
};

/// `weight` points to the first member's blob, weight_strides.member is in bytes; both multiples of
/// 16.
struct LinearWeightOnlyParams : LinearParams {
  WeightStrips strips;
};

/// y[m, i, n] = epilogue(sum_k x[m, i, k] * weight[i, n, k]) for all members i in one launch. Code
/// values are multiplied exactly, sums over 64 inputs are multiplied by their scale in fp32. The
/// order of a sum depends on k and the tile alone. Nothing is launched where y is empty.
/// cudaErrorInvalidConfiguration for more than 2^31 - 1 blocks; cudaErrorInvalidValue for packed
/// weights, or a dtype other than fp16 and bf16.
cudaError_t launch_linear_weight_only(const LinearWeightOnlyParams& params, Dtype dtype,
                                      WeightFormat format, LinearWeightOnlyTile tile,
                                      cudaStream_t stream);

}  // namespace wide::kernels
