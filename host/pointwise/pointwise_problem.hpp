// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What no pointwise plan takes, also for those that have no problem yet: builders of graphs.
#pragma once

#include <string>

#include "wide/pointwise.hpp"
#include "wide/tuning.hpp"

namespace wide {

/// The problem's slope, alpha, beta, low and high, whichever its function uses. Throws
/// invalid_argument.
void require_pointwise_parameters(const PointwiseProblem& problem);

/// In tuning caches (host/core/tuned_choice.hpp).
std::string problem_key(const PointwiseProblem& complete);
TuningKey tuning_key(const PointwiseProblem& problem);

}  // namespace wide
