// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// linear_mma.cuh with the weight on the instruction's 16-row side: few rows of x, so that reading
// the weights once takes the time.
#include "kernels/linear/linear_mma.cuh"

namespace wide::kernels {

cudaError_t launch_linear_small_m(const LinearParams& params, LinearMath math, LinearMmaTile tile,
                                  cudaStream_t stream) {
  if (params.num_members == 0 || params.m == 0 || params.n == 0) return cudaSuccess;
  return with_math(math, [&]<class Math>() {
    switch (tile) {
      case LinearMmaTile::m8n64:
        return launch_linear_mma<Math, LinearMmaTile::m8n64>(params, stream);
      case LinearMmaTile::m16n64:
        return launch_linear_mma<Math, LinearMmaTile::m16n64>(params, stream);
      case LinearMmaTile::m32n64:
        return launch_linear_mma<Math, LinearMmaTile::m32n64>(params, stream);
      case LinearMmaTile::m16n16:
        return launch_linear_mma<Math, LinearMmaTile::m16n16>(params, stream);
      default:
        return cudaErrorInvalidValue;
    }
  });
}

}  // namespace wide::kernels
