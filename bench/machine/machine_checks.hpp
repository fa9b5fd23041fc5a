// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Reasons in a machine's state to trust its times less. Pure.
#pragma once

#include <optional>
#include <vector>

#include "bench/document/result.hpp"

namespace wide::bench {

/// From a result's host and devices: other processes on a GPU (E_OTHER_PROCESSES), a GPU divided
/// by MIG (E_MIG), and on the CPU a governor that lowers clocks (E_GOVERNOR). What is unknown
/// causes no warning.
std::vector<EnvironmentCheck> machine_checks(const RunResult& result);

/// From ceilings measured before and after a sweep: E_CEILINGS_MOVED, with both, if one of them
/// differs by more than this; on an idle machine they differ by a tenth. Times and speedups do not
/// depend on ceilings, so they are not doubted; floors keep using those before, because cases
/// have been judged and written by them, and neither says what held in between.
constexpr double kCeilingsMovedPct = 15;
std::optional<EnvironmentCheck> ceilings_check(const Calibration& before, const Calibration& after);

/// E_NO_CEILING, with their names, if a GPU of this compute capability has ceilings that could not
/// be measured.
std::optional<EnvironmentCheck> missing_ceilings_check(const Calibration& calibration,
                                                       int compute_capability);

/// E_ABOVE_FLOOR, with the highest, if any median of a result is above this of its floor: a cache
/// served what the floor takes from memory, or the ceilings are those of a loaded machine. On a GPU
/// only cold ones count: the operands of warm ones may well lie in its L2.
constexpr double kAboveFloor_pct = 150;
std::optional<EnvironmentCheck> floors_check(const RunResult& result);

/// For a run that took longer than its budget: E_BUDGET, with both. It took the minimum number of
/// samples, so its results are less certain than the budget was meant to give.
std::optional<EnvironmentCheck> budget_check(const RunResult& result);
/// "--budget 2 s was exceeded by 1.50 s: .."; empty if it was exceeded by less than 1 % of it.
std::string budget_text(double budget_s, double taken_s);

}  // namespace wide::bench
