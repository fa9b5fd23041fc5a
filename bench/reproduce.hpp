// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "bench/commands.hpp"

namespace wide::bench {

/// What a case's command needs beyond its axes to be the same measurement: every option of `run` or
/// `verify` that is not as it is without, but for those that say where results go, and which cases,
/// strategies, baselines and regimes are selected: a row of a table has its own. Begins with a
/// space.
std::string reproduce_suffix(const RunOptions& options, const Device& device);

}  // namespace wide::bench
