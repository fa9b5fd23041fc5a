// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

namespace wide::bench {

/// A kernel of one thread that does nothing: what a launch costs.
cudaError_t launch_empty_kernel(cudaStream_t stream);

/// The same, which may start before the previous kernel has ended, as libwide's do
/// (kernels/common/launch.hpp): the minimum time of a kernel after another.
cudaError_t launch_following_kernel(cudaStream_t stream);

}  // namespace wide::bench
