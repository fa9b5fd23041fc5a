// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// flash_attention_wgmma.cuh for fp16, and the dispatch to both.
#include "kernels/attention/flash_attention_wgmma.cuh"

namespace wide::kernels {

cudaError_t launch_flash_attention_wgmma_fp16(const FlashAttentionWgmmaParams& params,
                                              cudaStream_t stream) {
  return launch_flash_attention_wgmma_type<__half>(params, stream);
}

cudaError_t launch_flash_attention_wgmma(const FlashAttentionWgmmaParams& params, Dtype dtype,
                                         cudaStream_t stream) {
  if (dtype == Dtype::fp16) return launch_flash_attention_wgmma_fp16(params, stream);
  if (dtype == Dtype::bf16) return launch_flash_attention_wgmma_bf16(params, stream);
  return cudaErrorInvalidValue;
}

}  // namespace wide::kernels
