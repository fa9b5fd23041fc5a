// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a plan leaves open: what its words for operands mean, and which of a primitive's strategies
// and of a device's regimes are meant where none are named.
#pragma once

#include <string>
#include <vector>

#include "bench/runner.hpp"

namespace wide::bench {

/// "uniform", "normal", "int", "trig" or "zeros", with the bounds of what is drawn.
Init init_of(const std::string& dist);
catalog::Fill fill_of(const Init& init);

/// Those asked for that the device has; without any the device's usual ones.
std::vector<Regime> regimes_of(const RunPlan& plan);

/// Those asked for; without any all of the device, and "auto" where a tuning cache is read.
std::vector<std::string> strategies_of(const RunPlan& plan, const catalog::PrimitiveSpec& spec);

/// Why none of those asked for can run on the plan's device, whatever the case; empty where one
/// may.
std::string foreign_strategies_reason(const RunPlan& plan);

/// A strategy of this repository's kernels is trusted on a GPU once evidence says so; the CPU's
/// are judged by the tests of every build.
bool is_trusted(const Context& context, const catalog::PrimitiveSpec& spec,
                const std::string& strategy);

}  // namespace wide::bench
