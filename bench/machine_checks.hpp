// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What in a machine's state costs belief in its times. Pure.
#pragma once

#include <optional>
#include <vector>

#include "bench/result.hpp"

namespace wide::bench {

/// Of a result's host and devices: other processes on a GPU (E_OTHER_PROCESSES), one that is
/// divided (E_MIG), and on the CPU clocks that are not kept up (E_GOVERNOR). What is not known is
/// no reason.
std::vector<EnvironmentCheck> machine_checks(const RunResult& result);

/// Of ceilings measured before and after a sweep: E_CEILINGS_MOVED, with both, where one of them
/// differs by more than this; on an idle machine they differ by a tenth. Times and speedups do not
/// depend on ceilings, so nothing else is doubted; and floors stay what the first ones make them,
/// since cases have been judged and written by them, and neither says what held in between.
constexpr double kCeilingsMovedPct = 15;
std::optional<EnvironmentCheck> ceilings_check(const Calibration& before, const Calibration& after);

/// Of a run that took longer than its budget: E_BUDGET, with both. Its samples are as few as they
/// may be, so what it says is less sure than what the budget was given for.
std::optional<EnvironmentCheck> budget_check(const RunResult& result);
/// "--budget 2 s was exceeded by 1.50 s: .."; empty where it was not, by 1 % of it at least.
std::string budget_text(double budget_s, double taken_s);

}  // namespace wide::bench
