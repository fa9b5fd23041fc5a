// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How wgmma is started: with the tensor maps of its operands.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/attention/flash_attention_params.hpp"
#include "wide/device.hpp"
#include "wide/flash_attention.hpp"

namespace wide {

/// False where an address is not a multiple of 16 bytes, or there are no keys.
bool has_flash_attention_maps(const FlashAttentionArguments& arguments);

void run_flash_attention_wgmma(const DeviceInfo& device, const FlashAttentionProblem& problem,
                               const kernels::FlashAttentionParams& params,
                               const FlashAttentionArguments& arguments, cudaStream_t stream);

}  // namespace wide
