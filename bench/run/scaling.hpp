// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How strategies' times grow with the number of members. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/document/result.hpp"

namespace wide::bench {

/// A fit (statistics/growth.hpp) for every strategy and every choice of the other axes that was
/// timed at three values of n or more, in this regime and above the timer's resolution.
std::vector<ScalingFit> scaling_fits(std::span<const CaseResult> cases, const std::string& op,
                                     Regime regime);

}  // namespace wide::bench
