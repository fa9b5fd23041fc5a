// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launcher that writes every member's addresses to device memory for a vendor's call by pointers.
// Nothing is uploaded: a captured graph recomputes them at every replay.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace wide::kernels {

struct LinearPointersParams {
  const void* weight;
  const void* x;
  void* y;
  int64_t weight_member_bytes, x_member_bytes, y_member_bytes;  ///< between members
  int64_t num_members;
  void** pointers;  ///< [3, num_members]: of weight, of x, of y
};

/// cudaErrorInvalidConfiguration for more than 2^31 - 1 blocks of 256 members.
cudaError_t launch_linear_pointers(const LinearPointersParams& params, cudaStream_t stream);

}  // namespace wide::kernels
