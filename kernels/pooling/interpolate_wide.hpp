// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/pooling/interpolate_params.hpp"
#include "wide/dtype.hpp"

namespace wide::kernels {

/// y = x between its positions, all members in one launch: with channels first; and with channels
/// last, where those of members are contiguous.
cudaError_t launch_interpolate_wide(Dtype dtype, const InterpolateParams& params,
                                    cudaStream_t stream);
cudaError_t launch_interpolate_last(Dtype dtype, const InterpolateParams& params,
                                    cudaStream_t stream);

}  // namespace wide::kernels
