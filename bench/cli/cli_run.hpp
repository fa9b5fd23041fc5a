// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The options that only `wbench run` has.
#pragma once

#include <CLI/CLI.hpp>

#include "bench/cli/commands.hpp"

namespace wide::bench {

/// What `run` and `verify` do with calls that they check.
void add_checking(CLI::App& app, RunOptions& options);

/// `tune` has none of these: it recommends only what was checked, and measures by graphs.
void add_run(CLI::App& app, RunOptions& options);

/// The options that `wbench verify` has besides those that select and write.
void add_verify(CLI::App& app, RunOptions& options);

/// The options that `wbench profile` has besides those that select.
void add_profile(CLI::App& app, ProfileOptions& options);

}  // namespace wide::bench
