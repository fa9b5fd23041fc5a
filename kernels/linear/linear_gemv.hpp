// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launcher of linear for members of one to four rows.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/linear/linear_params.hpp"
#include "wide/dtype.hpp"

namespace wide::kernels {

inline constexpr int64_t kMaxGemvRows = 4;

/// y[m, i, n] = activation(sum_k x[m, i, k] * weight[i, n, k] + bias[i, n]) for all members i in
/// one launch, in fp32, never tf32. The order of a sum depends on k and the dtype alone. Nothing is
/// launched where y is empty. cudaErrorInvalidConfiguration for more than 2^31 - 1 blocks;
/// cudaErrorInvalidValue for m above kMaxGemvRows or a dtype other than fp32, fp16, bf16.
cudaError_t launch_linear_gemv(LinearParams params, Dtype dtype, cudaStream_t stream);

}  // namespace wide::kernels
