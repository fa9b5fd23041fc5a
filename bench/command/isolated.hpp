// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `run --isolate`: every case in a process of its own, so that one that crashes, or leaves its
// CUDA context unusable, does not affect the others.
#pragma once

#include <string>
#include <vector>

#include "bench/run/runner.hpp"

namespace wide::bench {

/// As run_plan(), but runs each case by `command`, the words of this run, with the case and a file
/// added. The file passes parameters to the child and is replaced by its result: the calibration,
/// which the first child measures for all, and the child's share of the budget. A child that leaves
/// no result has failed, and its case says how.
void run_isolated(const RunPlan& plan, const std::vector<std::string>& command, RunResult& result);

/// Options that give a child its case and its file.
inline constexpr const char* kIsolatedCase = "--isolated-case";
inline constexpr const char* kIsolatedResult = "--isolated-result";

/// In a child: reduces the plan to this case alone, by the parameters in the file.
void take_job(RunPlan& plan, const std::string& case_id, const std::string& file);

}  // namespace wide::bench
