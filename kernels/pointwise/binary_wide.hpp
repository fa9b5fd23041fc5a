// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/pointwise/packed_runs.hpp"
#include "wide/binary_function.hpp"
#include "wide/dtype.hpp"
#include "wide/epilogue.hpp"

namespace wide::kernels {

/// y = activation(function(x, second)), all members in one launch.
cudaError_t launch_binary_wide(BinaryFunction function, Activation activation, Dtype dtype,
                               const PackedParams& params, cudaStream_t stream);

}  // namespace wide::kernels
