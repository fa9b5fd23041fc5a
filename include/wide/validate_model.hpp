// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// validate_model: members side by side against each alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "wide/model_plan.hpp"

namespace wide {

/// How far each member of the wide model is from the same member run alone, node by node
/// (preset "safe"), on random inputs: the largest difference over the largest value; infinite where
/// there is a NaN; 0 for a member without rows. Rows of a routed model go to random members; of a
/// mixture what members alone make of them is summed, and a member's are those it has a part in.
/// Dropout has the same masks in both. For ensembles, the inputs are compared, not the result.
/// Parameters on the device must be complete, as for Model. Allocates and waits.
std::vector<double> validate_model(const Context& context, const Graph& graph,
                                   const ModelProblem& problem,
                                   std::span<const MemberParameters> members,
                                   const ModelOptions& options = {}, uint64_t seed = 42);

}  // namespace wide
