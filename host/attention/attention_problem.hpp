// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// attention as the problems of its parts: projections of inputs, flash_attention, a projection of
// its heads. What the parts refuse, the whole refuses; nothing is checked twice.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "wide/attention.hpp"
#include "wide/linear.hpp"
#include "wide/tuning.hpp"

namespace wide {

inline constexpr std::string_view kAttentionName = "attention";  ///< in messages

/// One, or three of a cross attention; made at every run of a plan, hence without an allocation.
class Projections {
 public:
  void push_back(const LinearProblem& problem) { problems_[count_++] = problem; }
  size_t size() const { return count_; }
  const LinearProblem& operator[](size_t i) const { return problems_[i]; }
  const LinearProblem& front() const { return problems_[0]; }
  const LinearProblem& back() const { return problems_[count_ - 1]; }
  const LinearProblem* begin() const { return problems_.data(); }
  const LinearProblem* end() const { return problems_.data() + count_; }

 private:
  std::array<LinearProblem, 3> problems_{};
  size_t count_ = 0;
};

/// Complete problems of the parts, of `members` neighbouring members. Tensors between the parts are
/// packed for `members`: one [rows, members, 3D] of queries, keys and values, or three.
struct AttentionParts {
  Projections projections;  ///< one to 3D; cross: to queries, to keys, to values
  FlashAttentionProblem core;
  LinearProblem output;
};
AttentionParts attention_parts(const AttentionProblem& problem, int64_t members);

/// Fills in everything that may be left open. Throws invalid_argument.
AttentionProblem complete_attention_problem(AttentionProblem problem);

/// Throws invalid_argument where the operands' problem is not the plan's; both complete.
void require_same_attention_problem(const AttentionProblem& got, const AttentionProblem& plan);

/// Whether y has no element.
bool is_empty(const AttentionProblem& problem);

/// In tuning caches (host/core/tuned_choice.hpp).
std::string problem_key(const AttentionProblem& complete);
TuningKey tuning_key(const AttentionProblem& problem);

}  // namespace wide
