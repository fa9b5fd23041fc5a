// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Correction for many tests at once.
#pragma once

#include <span>
#include <vector>

namespace wide::bench {

/// Adjusts p so that those below alpha have false discoveries at the rate alpha (Benjamini and
/// Hochberg 1995): min over p_j >= p_i of p_j m / rank(p_j), at most 1. In the order given. Throws
/// invalid_argument for a p outside [0, 1].
std::vector<double> adjust_p_values(std::span<const double> p_values);

}  // namespace wide::bench
