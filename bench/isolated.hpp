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

/// As run_plan(), but each case by `command`, the words of this run, with the case and a file
/// added. The file holds what the child is told and is replaced by its result: the calibration,
/// which the first child measures for all, and its share of the budget. A child that leaves no
/// result has failed, and its case says how.
void run_isolated(const RunPlan& plan, const std::vector<std::string>& command, RunResult& result);

/// Options that tell a child its case and its file.
inline constexpr const char* kIsolatedCase = "--isolated-case";
inline constexpr const char* kIsolatedResult = "--isolated-result";

/// In a child: makes the plan one of this case alone, as the file tells.
void take_job(RunPlan& plan, const std::string& case_id, const std::string& file);

}  // namespace wide::bench
