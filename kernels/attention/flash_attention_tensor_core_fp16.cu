// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// flash_attention_mma.cuh for fp16.
#include "kernels/attention/flash_attention_mma.cuh"

namespace wide::kernels {

cudaError_t launch_flash_attention_fp16(const FlashAttentionParams& params, cudaStream_t stream) {
  return launch_flash_attention_mma<__half>(params, stream);
}

}  // namespace wide::kernels
