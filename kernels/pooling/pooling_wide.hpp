// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/pooling/pooling_params.hpp"
#include "wide/dtype.hpp"
#include "wide/pooling_mode.hpp"

namespace wide::kernels {

/// y = pool(x), all members in one launch: with channels first; and with channels last, where those
/// of members are contiguous.
cudaError_t launch_pooling_wide(PoolingMode mode, Dtype dtype, const PoolingParams& params,
                                cudaStream_t stream);
cudaError_t launch_pooling_last(PoolingMode mode, Dtype dtype, const PoolingParams& params,
                                cudaStream_t stream);

}  // namespace wide::kernels
