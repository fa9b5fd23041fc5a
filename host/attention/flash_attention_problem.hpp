// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Open fields of a problem are filled in once; what cannot be run is refused once.
#pragma once

#include <string>

#include "wide/flash_attention.hpp"
#include "wide/tuning.hpp"

namespace wide {

/// For messages.
inline std::string text(KeyLengths lengths) {
  return lengths == KeyLengths::none     ? "none"
         : lengths == KeyLengths::shared ? "shared [batch]"
                                         : "[num_members, batch]";
}

inline constexpr int64_t kMaxHeadDim = 256;  ///< elements of a head

/// What no plan takes, also for those that have no problem yet. Throw invalid_argument.
void require_flash_attention_head_dim(int64_t head_dim);
void require_flash_attention_scale(float scale);
void require_flash_attention_window(int64_t window);
void require_flash_attention_soft_cap(float soft_cap);

/// With kv_seq, kv_heads, scale and all strides set. Throws invalid_argument.
FlashAttentionProblem complete_flash_attention_problem(FlashAttentionProblem problem);

/// Throws invalid_argument where the operands' problem is not the plan's; both complete.
void require_same_flash_attention_problem(const FlashAttentionProblem& got,
                                          const FlashAttentionProblem& plan);

/// Whether y has no element.
bool is_empty(const FlashAttentionProblem& problem);

/// In tuning caches (host/core/tuned_choice.hpp).
std::string problem_key(const FlashAttentionProblem& complete);
TuningKey tuning_key(const FlashAttentionProblem& problem);

}  // namespace wide
