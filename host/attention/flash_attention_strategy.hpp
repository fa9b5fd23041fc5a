// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which strategy runs a flash_attention: pure functions of problem, device and what was verified.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "host/core/verified.hpp"
#include "host/core/wide_strategy.hpp"
#include "wide/device.hpp"
#include "wide/flash_attention.hpp"

namespace wide {

enum class FlashAttentionStrategy : uint8_t {
  sequential,   ///< a call per member: cuDNN's, or of the kernel that suits the dtype
  simt,         ///< CUDA
  short_keys,   ///< CUDA: "short"
  tensor_core,  ///< CUDA
  wgmma,        ///< CUDA, compute capability 9.0
  wide,         ///< CPU
  cudnn,        ///< CUDA, one call of cuDNN's
};

std::string_view strategy_name(FlashAttentionStrategy strategy);

/// CUDA's kernel for any problem of the dtype: tensor_core for 16 bits, simt for fp32.
FlashAttentionStrategy flash_attention_kernel(const FlashAttentionProblem& problem);
/// The one that is expected to be fastest: short where it takes the problem, as it reads keys once
/// and rescales nothing, and wastes no warp on queries that are not there; else wgmma, where heads
/// fill more than half of what it pads them to.
FlashAttentionStrategy flash_attention_best_kernel(const FlashAttentionProblem& problem,
                                                   const DeviceInfo& device);

/// Why the strategy cannot run the problem on the device; empty where it can.
std::string flash_attention_unsupported_reason(FlashAttentionStrategy strategy,
                                               const FlashAttentionProblem& problem,
                                               const DeviceInfo& device);

struct FlashAttentionChoice {
  FlashAttentionStrategy strategy = FlashAttentionStrategy::sequential;
  std::string explain;
};

/// "auto" on CUDA is the best of ours that is in `verified`, else `cudnn` where `cudnn_refusal`,
/// which is asked for that alone, is empty, else `sequential`. Throws invalid_argument for an
/// unknown name, unsupported with the reason for one that cannot run.
FlashAttentionChoice choose_flash_attention_strategy(const FlashAttentionProblem& problem,
                                                     const DeviceInfo& device,
                                                     std::string_view name,
                                                     std::span<const VerifiedStrategy> verified,
                                                     const VendorRefusal& cudnn_refusal);

}  // namespace wide
