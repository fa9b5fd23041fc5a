// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The facts without which a number is worthless: build, machine, time.
#pragma once

#include "bench/document/result.hpp"

namespace wide::bench {

/// Fills id, started, tool_*, git_*, compiler, hostname, os, kernel, cpu, cores and, for the first
/// of its devices, host_state.
void describe_environment(RunResult& result);

}  // namespace wide::bench
