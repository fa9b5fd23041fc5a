// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launcher of attention of few queries on many keys.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/attention/flash_attention_decode_part.hpp"
#include "kernels/attention/flash_attention_params.hpp"

namespace wide::kernels {

struct FlashAttentionDecodeParams {
  FlashAttentionParams attention;
  int32_t num_parts;  ///< that a head's keys are divided into
  float* parts;       ///< [member, batch row, kv_head, part]; ignored where there is one
};

/// fp16 and bf16, heads of up to 256 elements, up to kDecodeRows queries that share keys. One
/// launch; two where there are several parts. cudaErrorInvalidConfiguration for 2^31 parts or more;
/// cudaErrorInvalidValue for other heads or more queries.
cudaError_t launch_flash_attention_decode_fp16(const FlashAttentionDecodeParams& params,
                                               cudaStream_t stream);
cudaError_t launch_flash_attention_decode_bf16(const FlashAttentionDecodeParams& params,
                                               cudaStream_t stream);

}  // namespace wide::kernels
