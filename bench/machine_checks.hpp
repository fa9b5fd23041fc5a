// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What in a machine's state costs belief in its times. Pure.
#pragma once

#include <vector>

#include "bench/result.hpp"

namespace wide::bench {

/// Of a result's host and devices: other processes on a GPU (E_OTHER_PROCESSES), one that is
/// divided (E_MIG), and on the CPU clocks that are not kept up (E_GOVERNOR). What is not known is
/// no reason.
std::vector<EnvironmentCheck> machine_checks(const RunResult& result);

}  // namespace wide::bench
