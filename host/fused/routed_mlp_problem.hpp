// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The checks of a RoutedMlpProblem, and its layers as problems of routed_linear. What those refuse,
// the whole refuses; nothing is checked twice.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wide/mlp.hpp"
#include "wide/routed_linear.hpp"
#include "wide/routed_mlp.hpp"
#include "wide/tuning.hpp"

namespace wide {

inline constexpr std::string_view kRoutedMlpName = "routed_mlp";  ///< in messages

/// The same networks of `batch` rows a member, as mlp has them: their weights lie alike.
MlpProblem mlp_of(const RoutedMlpProblem& problem, int64_t batch = 0);

/// Complete. The first gathers and the last scatters as the problem does; in between rows lie in
/// routed order, packed.
std::vector<RoutedLinearProblem> routed_mlp_layers(const RoutedMlpProblem& problem);

/// The problem with all strides filled in. Throws invalid_argument that names the field.
RoutedMlpProblem complete_routed_mlp_problem(RoutedMlpProblem problem);

/// Throws invalid_argument that names the first field in which `got` differs from the plan's; both
/// complete.
void require_same_routed_mlp_problem(const RoutedMlpProblem& got, const RoutedMlpProblem& plan);

/// The same for the operands of a call, of which it needs as much as describe_routed_mlp(); `mlp`
/// is mlp_of(plan). It builds no problem except for a message.
void require_same_routed_mlp_operands(const RoutedMlpArguments& arguments,
                                      const RoutedMlpProblem& plan, const MlpProblem& mlp);

/// Whether there is no output element.
inline bool is_empty(const RoutedMlpProblem& problem) {
  return problem.num_rows == 0;
}

/// In tuning caches (host/core/tuned_choice.hpp).
std::string problem_key(const RoutedMlpProblem& complete);
TuningKey tuning_key(const RoutedMlpProblem& problem);

}  // namespace wide
