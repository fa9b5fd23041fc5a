// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What no interpolate plan takes, also for those that have no problem yet: builders of graphs.
#pragma once

#include <string>

#include "wide/interpolate.hpp"
#include "wide/tuning.hpp"

namespace wide {

/// The problem with all numbers of outputs filled in; what is not about positions may be missing.
/// Throws invalid_argument.
InterpolateProblem resolved_positions(InterpolateProblem problem);

/// In tuning caches (host/core/tuned_choice.hpp).
std::string problem_key(const InterpolateProblem& complete);
TuningKey tuning_key(const InterpolateProblem& problem);

}  // namespace wide
