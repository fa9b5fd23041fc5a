// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The checks of a RecurrentProblem, and its products as problems of linear. What those refuse, the
// whole refuses; nothing is checked twice.
#pragma once

#include <string>
#include <string_view>

#include "wide/linear.hpp"
#include "wide/recurrent.hpp"
#include "wide/tuning.hpp"

namespace wide {

inline constexpr std::string_view kRecurrentName = "recurrent";  ///< in messages

/// The problem with all strides filled in. Throws invalid_argument that names the field.
RecurrentProblem complete_recurrent_problem(RecurrentProblem problem);

/// Throws invalid_argument that names the first field in which `got` differs from the plan's; both
/// complete.
void require_same_recurrent_problem(const RecurrentProblem& got, const RecurrentProblem& plan);

/// Packed where open or nothing steps along it; member stride 0 where all members share x.
RecurrentStrides complete_recurrent_strides(const RecurrentProblem& problem,
                                            const RecurrentStrides& strides, int64_t features,
                                            bool is_shared);

/// Sequences and steps of x as rows of one stride: sequence after sequence, or step after step, as
/// in x. For complete problems, which fold.
struct RecurrentRows {
  bool is_step_after_step = false;
  int64_t stride = 0;  ///< of x, from row to row
};
RecurrentRows recurrent_rows(const RecurrentProblem& problem);

/// Strides of `members` members' gates u, packed in the order of x's rows.
RecurrentStrides recurrent_gate_strides(const RecurrentProblem& problem, int64_t members);

/// x's products, u = W_input x + b_input, of `members` neighbouring members, complete. For one
/// member, x is its own even where it is shared.
LinearProblem recurrent_input_product(const RecurrentProblem& problem, int64_t members);
/// A step's product, v = W_hidden h + b_hidden, of hidden states with strides `hidden`.
LinearProblem recurrent_hidden_product(const RecurrentProblem& problem, int64_t members,
                                       const RowStrides& hidden);
/// Strides of y's steps, and of the states that sequences begin with, for strategies that run step
/// by step: zeros are packed for `members`.
RowStrides recurrent_step_strides(const RecurrentProblem& problem);
RowStrides recurrent_first_strides(const RecurrentProblem& problem, int64_t members);

bool is_empty(const RecurrentProblem& problem);

/// In tuning caches (host/core/tuned_choice.hpp).
std::string problem_key(const RecurrentProblem& complete);
TuningKey tuning_key(const RecurrentProblem& problem);

}  // namespace wide
