// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launchers of GEMMs whose rows are routed to members by the device (compute capability 8.0 and
// up).
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/linear/linear_mma_tile.hpp"
#include "kernels/linear/linear_weight_only.hpp"
#include "kernels/linear/routed_linear_params.hpp"
#include "wide/dtype.hpp"
#include "wide/weight_format.hpp"

namespace wide::kernels {

/// Of quantised weights: linear.weight and its member stride are as LinearWeightOnlyParams'.
struct RoutedWeightOnlyParams : RoutedLinearParams {
  WeightStrips strips;
};

/// y[to, n] = gate * epilogue(sum_k x[from, k] * weight[i, n, k]) for the rows of all members i, or
/// of params.member, in one launch; rows of no member become zeros. The grid is for any routing.
/// One that is none is not noticed, but rows are read and written inside of the operands only.
/// Nothing is launched where y is empty. cudaErrorInvalidConfiguration for more than 2^31 - 1
/// blocks.
/// Sums run over k upwards in fp32. cudaErrorInvalidValue for a dtype other than fp32, fp16, bf16.
cudaError_t launch_routed_linear_simt(const RoutedLinearParams& params, Dtype dtype,
                                      cudaStream_t stream);
/// The order of a sum depends on the number of rows of its block alone. cudaErrorInvalidValue for
/// tf32x3.
cudaError_t launch_routed_linear_tensor_core(const RoutedLinearParams& params, LinearMath math,
                                             cudaStream_t stream);
/// Products and sums as launch_linear_weight_only()'s; the order of a sum depends on k alone.
/// cudaErrorInvalidValue for packed weights, or a dtype other than fp16 and bf16.
cudaError_t launch_routed_linear_weight_only(const RoutedWeightOnlyParams& params, Dtype dtype,
                                             WeightFormat format, cudaStream_t stream);

}  // namespace wide::kernels
