// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the plans of all norms are made of, and the checks that their problems share.
#pragma once

#include <string>
#include <string_view>

#include "host/core/wide_strategy.hpp"
#include "wide/context.hpp"
#include "wide/plan.hpp"
#include "wide/tensor.hpp"

namespace wide {

/// A plan's fixed state; Problem with all strides filled in.
template <class Problem>
struct NormState {
  Context context;
  Problem problem;
  WideChoice choice;
  std::string range;  ///< for NVTX
};

template <class Problem>
NormState<Problem> make_norm_state(std::string_view primitive, const Context& context,
                                   const Problem& problem, const PlanOptions& options,
                                   bool wide_is_verified) {
  WideChoice choice =
      choose_wide_strategy(primitive, context.info(), options.strategy, wide_is_verified);
  std::string range =
      "wide::" + std::string(primitive) + "(" + std::string(strategy_name(choice.strategy)) + ")";
  return {context, problem, std::move(choice), std::move(range)};
}

/// "layernorm: rows is -1, expected >= 0"
void require_least(std::string_view primitive, const char* name, int64_t value, int64_t least);
/// fp32, fp16 or bf16.
void require_norm_dtype(std::string_view primitive, Dtype dtype);
/// A finite number >= 0.
void require_epsilon(std::string_view primitive, float epsilon);

/// What operands show against what the plan was made for, field by field.
void require_same_count(std::string_view primitive, const char* name, int64_t got,
                        int64_t expected);
void require_same_dtype(std::string_view primitive, Dtype got, Dtype expected);
void require_same_presence(std::string_view primitive, const char* argument, bool got,
                           bool expected);

/// A parameter's member stride where a problem written by hand gives none.
inline void complete_parameter(int64_t& stride, bool is_present, int64_t count) {
  if (!is_present) stride = 0;
  if (is_present && stride == 0) stride = count;
}

/// The member stride of parameters [num_members, count], `axes` in messages, of `dtype`; `count`
/// where there is one member.
int64_t parameter_stride(std::string_view primitive, const char* argument,
                         const ConstTensorView& view, std::string_view axes, int64_t num_members,
                         int64_t count, Dtype dtype);

}  // namespace wide
