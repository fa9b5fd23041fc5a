// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// flash_attention_decode.cuh for fp16.
#include "kernels/attention/flash_attention_decode.cuh"

namespace wide::kernels {

cudaError_t launch_flash_attention_decode_fp16(const FlashAttentionDecodeParams& params,
                                               cudaStream_t stream) {
  return launch_flash_attention_decode<__half>(params, stream);
}

}  // namespace wide::kernels
