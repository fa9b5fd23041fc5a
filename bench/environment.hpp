// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The facts that a number is worth nothing without: build, machine, time.
#pragma once

#include <string>

#include "bench/result.hpp"

namespace wide::bench {

/// Fills id, started, tool_*, git_*, compiler, hostname, os, kernel, cpu, cores and, by the first
/// of its devices, host_state.
void describe_environment(RunResult& result);

}  // namespace wide::bench
