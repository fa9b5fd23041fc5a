// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// flash_attention_decode.cuh for bf16.
#include "kernels/attention/flash_attention_decode.cuh"

namespace wide::kernels {

cudaError_t launch_flash_attention_decode_bf16(const FlashAttentionDecodeParams& params,
                                               cudaStream_t stream) {
  return launch_flash_attention_decode<__nv_bfloat16>(params, stream);
}

}  // namespace wide::kernels
