// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Whether a run will measure anything that an earlier one has measured: found before it takes its
// time.
#pragma once

#include <span>
#include <string>

#include "bench/document/result.hpp"
#include "bench/run/runner.hpp"

namespace wide::bench {

/// Why no cell of the plan, a case by a strategy in a regime, is in `base`; empty where one may be.
std::string incomparable_reason(const RunPlan& plan, std::span<const RunResult> base);

}  // namespace wide::bench
