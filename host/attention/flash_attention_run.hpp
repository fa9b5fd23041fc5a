// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a plan calls after the operands were validated. The problem is complete: every stride,
// kv_seq, kv_heads and scale are set, and it is not empty.
#pragma once

#include "host/attention/flash_attention_strategy.hpp"

namespace wide {

void run_flash_attention_cpu(const Context& context, const FlashAttentionProblem& problem,
                             FlashAttentionStrategy strategy,
                             const FlashAttentionArguments& arguments);
void run_flash_attention_cuda(const Context& context, const FlashAttentionProblem& problem,
                              FlashAttentionStrategy strategy,
                              const FlashAttentionArguments& arguments, const Execution& execution);

}  // namespace wide
