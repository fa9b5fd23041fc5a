// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// conv_wgmma for fp32 multiplied as tf32.
#include "kernels/conv/conv_wgmma.cuh"

namespace wide::kernels {

cudaError_t launch_conv_wgmma_tf32(const ConvWgmmaParams& params, ConvWgmmaTile tile,
                                   cudaStream_t stream) {
  return launch_conv_wgmma_type<float>(params, tile, stream);
}

}  // namespace wide::kernels
