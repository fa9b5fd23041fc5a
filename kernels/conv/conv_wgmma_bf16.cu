// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// conv_wgmma for bf16.
#include "kernels/conv/conv_wgmma.cuh"

namespace wide::kernels {

cudaError_t launch_conv_wgmma_bf16(const ConvWgmmaParams& params, ConvWgmmaTile tile,
                                   cudaStream_t stream) {
  return launch_conv_wgmma_type<__nv_bfloat16>(params, tile, stream);
}

}  // namespace wide::kernels
