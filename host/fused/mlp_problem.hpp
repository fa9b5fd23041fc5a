// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The checks of an MlpProblem, and its layers as problems of linear. What those refuse, the whole
// refuses; nothing is checked twice.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wide/linear.hpp"
#include "wide/mlp.hpp"
#include "wide/tuning.hpp"

namespace wide {

inline constexpr std::string_view kMlpName = "mlp";  ///< in messages

/// What widths, dtype and activations may be, and sizes; `name` is the primitive's, in messages.
void check_mlp_sizes(std::string_view name, const MlpProblem& problem);
/// The member stride of the weights, filled in and checked, likewise.
int64_t complete_mlp_weights_stride(std::string_view name, const MlpProblem& problem);

/// The layers of `members` neighbouring members, complete. Tensors between them are packed for
/// `members`. For one member, x is its own even where it is shared.
std::vector<LinearProblem> mlp_layers(const MlpProblem& problem, int64_t members);

/// The problem with all strides filled in. Throws invalid_argument that names the field.
MlpProblem complete_mlp_problem(MlpProblem problem);

/// Throws invalid_argument that names the first field in which `got` differs from the plan's; both
/// complete.
void require_same_mlp_problem(const MlpProblem& got, const MlpProblem& plan);
/// The same for the operands of a call, of which it needs as much as describe_mlp(): it builds no
/// problem, with widths and layers, except for a message.
void require_same_mlp_operands(const MlpArguments& arguments, const MlpProblem& plan);

/// Elements that rows of a layer's weight are padded to.
int64_t mlp_row_elements(int64_t in_features, Dtype dtype);

/// "64-128-64"
std::string mlp_widths_text(const MlpProblem& problem);

bool is_empty(const MlpProblem& problem);

/// In tuning caches (host/core/tuned_choice.hpp).
std::string problem_key(const MlpProblem& complete);
TuningKey tuning_key(const MlpProblem& problem);

}  // namespace wide
