// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Resolves what a plan leaves open: what its words for operands mean, and which strategies of a
// primitive and regimes of a device are used if none are named.
#pragma once

#include <string>
#include <vector>

#include "bench/run/runner.hpp"

namespace wide::bench {

/// From "uniform", "normal", "int", "trig" or "zeros", with the bounds of the values drawn.
Init init_of(const std::string& dist);
catalog::Fill fill_of(const Init& init);

/// The requested regimes that the device has; if none are requested, the device's usual ones.
std::vector<Regime> regimes_of(const RunPlan& plan);

/// The requested strategies; if none, all of the device, and "auto" if a tuning cache is read.
std::vector<std::string> strategies_of(const RunPlan& plan, const catalog::PrimitiveSpec& spec);

/// Why none of the requested strategies can run on the plan's device, whatever the case; empty if
/// one may.
std::string foreign_strategies_reason(const RunPlan& plan);

/// On a GPU, a strategy that runs kernels of this repository is trusted once there is evidence;
/// those of the CPU are checked by the tests of every build.
bool is_trusted(const Context& context, const catalog::PrimitiveSpec& spec,
                const std::string& strategy);

}  // namespace wide::bench
