// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y = softmax(scale q k^T) v of every head of every member, in one launch. Heads are padded with
// zeros to one of a few widths, each of which is one instantiation per dtype.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/attention/flash_attention_params.hpp"

namespace wide::kernels {

/// The width that a head is padded to; the widest has smaller tiles, too, for devices whose blocks
/// do not hold the others.
enum class HeadWidth : uint8_t { d32, d64, d96, d128, d192, d256, d256_lean };

/// fp32 throughout; widths 32, 64, 128 and 256.
cudaError_t launch_flash_attention_simt(FlashAttentionParams params, cudaStream_t stream);
/// On tensor cores.
cudaError_t launch_flash_attention_fp16(const FlashAttentionParams& params, cudaStream_t stream);
cudaError_t launch_flash_attention_bf16(const FlashAttentionParams& params, cudaStream_t stream);
/// The same for few keys: up to 256 for heads of up to 64 elements, 128 for up to 128, 64 for up to
/// 256.
cudaError_t launch_flash_attention_short_fp16(const FlashAttentionParams& params,
                                              cudaStream_t stream);
cudaError_t launch_flash_attention_short_bf16(const FlashAttentionParams& params,
                                              cudaStream_t stream);

}  // namespace wide::kernels
