// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// linear_mma.cuh with x on the instruction's 16-row side: for members whose rows fill a tile.
#include "kernels/linear/linear_mma.cuh"

namespace wide::kernels {

cudaError_t launch_linear_tensor_core(const LinearParams& params, LinearMath math,
                                      LinearMmaTile tile, cudaStream_t stream) {
  if (params.num_members == 0 || params.m == 0 || params.n == 0) return cudaSuccess;
  return with_math(math, [&]<class Math>() {
    switch (tile) {
      case LinearMmaTile::m64n64:
        return launch_linear_mma<Math, LinearMmaTile::m64n64>(params, stream);
      case LinearMmaTile::m128n64:
        return launch_linear_mma<Math, LinearMmaTile::m128n64>(params, stream);
      case LinearMmaTile::m128n128:
        // The registers of 32-bit operands do not fit alongside its sums.
        if constexpr (sizeof(typename Math::Element) == 2) {
          return launch_linear_mma<Math, LinearMmaTile::m128n128>(params, stream);
        }
        [[fallthrough]];
      default:
        return cudaErrorInvalidValue;
    }
  });
}

}  // namespace wide::kernels
