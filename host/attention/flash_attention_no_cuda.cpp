// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/attention/flash_attention_run.hpp"
#include "host/core/check.hpp"

namespace wide {

void run_flash_attention_cuda(const Context&, const FlashAttentionProblem&, FlashAttentionStrategy,
                              const FlashAttentionArguments&, const Execution&) {
  no_cuda("flash_attention");
}

}  // namespace wide
