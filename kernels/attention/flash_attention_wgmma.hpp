// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launcher of attention on Hopper's warpgroup products.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "kernels/attention/flash_attention_params.hpp"
#include "kernels/attention/flash_attention_wgmma_tile.hpp"
#include "wide/dtype.hpp"

namespace wide::kernels {

struct FlashAttentionWgmmaParams {
  /// {head_dim, heads, members, positions, batch rows} of 16 bits, kv_heads for k and v; boxes of
  /// {kAttentionPanel, 1, 1, rows, 1} with the 128-byte swizzle: kAttentionBoxQueries rows of q and
  /// y, attention_wgmma_keys() of k and v.
  CUtensorMap q, k, v, y;
  /// Shared by all members: the tensor has a single one.
  bool q_is_shared, k_is_shared, v_is_shared;
  FlashAttentionParams attention;  ///< pointers of q, k, v, y are ignored; no bias
  int num_multiprocessors;
};

/// fp16 and bf16, heads of up to 256 elements. cudaErrorInvalidConfiguration for 2^31 blocks of
/// queries or more; cudaErrorInvalidValue for other dtypes or heads.
cudaError_t launch_flash_attention_wgmma(const FlashAttentionWgmmaParams& params, Dtype dtype,
                                         cudaStream_t stream);

// One per dtype, each in its own file.
cudaError_t launch_flash_attention_wgmma_fp16(const FlashAttentionWgmmaParams& params,
                                              cudaStream_t stream);
cudaError_t launch_flash_attention_wgmma_bf16(const FlashAttentionWgmmaParams& params,
                                              cudaStream_t stream);

}  // namespace wide::kernels
