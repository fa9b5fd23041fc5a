// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `run --isolate`: every case in a process of its own, so that one that crashes, or spoils its
// CUDA context for good, costs nobody else.
#pragma once

#include <string>
#include <vector>

#include "bench/runner.hpp"

namespace wide::bench {

/// As run_plan(), but each case by `command`, the words of this run, with the case and a file for
/// its result added. A child that leaves none has failed, and its case says how.
void run_isolated(const RunPlan& plan, const std::vector<std::string>& command, RunResult& result);

/// Options that tell a child its case and the file for its result.
inline constexpr const char* kIsolatedCase = "--isolated-case";
inline constexpr const char* kIsolatedResult = "--isolated-result";

/// Leaves only the case of that id in the plan.
void keep_case(RunPlan& plan, const std::string& case_id);

}  // namespace wide::bench
