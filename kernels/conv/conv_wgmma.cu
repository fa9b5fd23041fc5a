// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// conv_wgmma for fp16, and the dispatch to the others.
#include "kernels/conv/conv_wgmma.cuh"

namespace wide::kernels {

cudaError_t launch_conv_wgmma(const ConvWgmmaParams& params, Dtype dtype, ConvWgmmaTile tile,
                              cudaStream_t stream) {
  const ConvParams& conv = params.conv;
  if (conv.num_members == 0 || conv.batch == 0 || conv.out_channels == 0) return cudaSuccess;
  switch (dtype) {
    case Dtype::fp16:
      return launch_conv_wgmma_type<__half>(params, tile, stream);
    case Dtype::bf16:
      return launch_conv_wgmma_bf16(params, tile, stream);
    case Dtype::fp32:
      return launch_conv_wgmma_tf32(params, tile, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace wide::kernels
