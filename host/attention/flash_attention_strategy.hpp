// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which strategy runs a flash_attention: pure functions of problem, device and what was verified.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "host/core/strategy_choice.hpp"
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
  decode,       ///< CUDA
  wide,         ///< CPU
  cudnn,        ///< CUDA, one call of cuDNN's
};

std::string_view strategy_name(FlashAttentionStrategy strategy);

/// CUDA's kernel for any problem of the dtype: tensor_core for 16 bits, simt for fp32.
FlashAttentionStrategy flash_attention_kernel(const FlashAttentionProblem& problem);
/// CUDA's kernels for the problem, in the expected order of speed: short where it takes the
/// problem, as it reads keys once, rescales nothing and wastes no warp on missing queries, unless
/// tensor_core has whole tiles of it; decode for few queries; wgmma, where heads fill their padded
/// width, or scores half of its tiles; the one for any problem.
std::vector<FlashAttentionStrategy> flash_attention_kernels(const FlashAttentionProblem& problem,
                                                            const DeviceInfo& device);

/// Parts that decode divides a head's keys into, and their workspace. They depend on one member's
/// problem alone, so that its bits do not depend on the number of members.
int flash_attention_decode_parts(const FlashAttentionProblem& problem);
int64_t flash_attention_workspace_bytes(FlashAttentionStrategy strategy,
                                        const FlashAttentionProblem& problem);

/// Why the strategy cannot run the problem on the device; empty where it can.
std::string flash_attention_unsupported_reason(FlashAttentionStrategy strategy,
                                               const FlashAttentionProblem& problem,
                                               const DeviceInfo& device);

using FlashAttentionChoice = StrategyChoice<FlashAttentionStrategy>;

/// "auto" on CUDA is the best of ours that is in `verified`, else `cudnn` where `cudnn_refusal`,
/// which is called only then, is empty, else `sequential`. Throws invalid_argument for an unknown
/// name, unsupported with the reason for one that cannot run.
FlashAttentionChoice choose_flash_attention_strategy(const FlashAttentionProblem& problem,
                                                     const DeviceInfo& device,
                                                     std::string_view name,
                                                     std::span<const VerifiedStrategy> verified,
                                                     const VendorRefusal& cudnn_refusal,
                                                     const Tuning& tuning = {});

}  // namespace wide
