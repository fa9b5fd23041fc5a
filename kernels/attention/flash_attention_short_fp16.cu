// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// flash_attention_short.cuh for fp16.
#include "kernels/attention/flash_attention_short.cuh"

namespace wide::kernels {

cudaError_t launch_flash_attention_short_fp16(const FlashAttentionParams& params,
                                              cudaStream_t stream) {
  return launch_flash_attention_short<__half>(params, stream);
}

}  // namespace wide::kernels
