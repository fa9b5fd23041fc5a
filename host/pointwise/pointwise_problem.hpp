// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What no pointwise plan takes, also for those that have no problem yet: builders of graphs.
#pragma once

#include "wide/pointwise.hpp"

namespace wide {

/// The problem's slope, alpha, beta, low and high, whichever its function uses. Throws
/// invalid_argument.
void require_pointwise_parameters(const PointwiseProblem& problem);

}  // namespace wide
