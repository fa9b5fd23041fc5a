// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// linear_wgmma for fp32 multiplied as tf32.
#include "kernels/linear/linear_wgmma.cuh"

namespace wide::kernels {

cudaError_t launch_linear_wgmma_tf32(const LinearWgmmaParams& params, LinearWgmmaTile tile,
                                     cudaStream_t stream) {
  switch (tile) {
    case LinearWgmmaTile::m64n128:
      return launch_wgmma_tile<float, float, LinearWgmmaTile::m64n128>(params, stream);
    case LinearWgmmaTile::m128n128:
      return launch_wgmma_tile<float, float, LinearWgmmaTile::m128n128>(params, stream);
    case LinearWgmmaTile::m128n256:
      return launch_wgmma_tile<float, float, LinearWgmmaTile::m128n256>(params, stream);
    case LinearWgmmaTile::m128n128x2:
      break;
    case LinearWgmmaTile::m128n256x2:
      return launch_wgmma_tile<float, float, LinearWgmmaTile::m128n256x2>(params, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace wide::kernels
