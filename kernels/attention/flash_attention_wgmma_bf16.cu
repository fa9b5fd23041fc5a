// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// flash_attention_wgmma.cuh for bf16.
#include "kernels/attention/flash_attention_wgmma.cuh"

namespace wide::kernels {

cudaError_t launch_flash_attention_wgmma_bf16(const FlashAttentionWgmmaParams& params,
                                              cudaStream_t stream) {
  return launch_flash_attention_wgmma_type<__nv_bfloat16>(params, stream);
}

}  // namespace wide::kernels
