// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "bench/command/options.hpp"

namespace wide::bench {

/// The options, beyond its axes, that a case's command needs to be the same measurement: every
/// option of `run` or `verify` that differs from its default, and --sim, except where results go
/// and which cases, strategies, baselines and regimes are selected, which a row of a table has
/// itself. Begins with a space.
std::string reproduce_suffix(const RunOptions& options, const Device& device);

}  // namespace wide::bench
