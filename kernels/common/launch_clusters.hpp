// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launches in clusters. Apart from launch.hpp, so that what is proved of other kernels does not
// depend on it.
#pragma once

#include <cuda_runtime_api.h>

#include <type_traits>

#include "kernels/common/launch.hpp"

namespace wide::kernels {

/// launch_kernel() where `cluster` neighbouring blocks run at the same time and reach one another's
/// shared memory (kernels/arch/cluster.cuh). They divide grid.x. 1 launches without clusters; up to
/// 8 are possible on any device of compute capability 9.0.
template <class... Args>
cudaError_t launch_clusters(void (*kernel)(Args...), unsigned cluster, dim3 grid, dim3 threads,
                            size_t shared_bytes, cudaStream_t stream,
                            const std::type_identity_t<Args>&... args) {
  if (cluster == 1) return launch_kernel(kernel, grid, threads, shared_bytes, stream, args...);
  cudaLaunchAttribute attributes[2]{};
  cudaLaunchAttribute& clusters = attributes[0];
  clusters.id = cudaLaunchAttributeClusterDimension;
  clusters.val.clusterDim = {cluster, 1, 1};
  cudaLaunchAttribute& overlap = attributes[1];
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  const cudaError_t status = may_overlap(overlap.val.programmaticStreamSerializationAllowed);
  if (status != cudaSuccess) return status;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = overlap.val.programmaticStreamSerializationAllowed != 0 ? 2 : 1;
  return cudaLaunchKernelEx(&config, kernel, args...);
}

}  // namespace wide::kernels
