// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Options that say where results are written to and read from.
#pragma once

#include <CLI/CLI.hpp>

#include "bench/cli/commands.hpp"

namespace wide::bench {

/// --store: which history to use.
CLI::Option* add_store(CLI::App& app, std::string& store);

/// --export FORMAT=FILE.
CLI::Option* add_exports(CLI::App& app, OutputOptions& options);

/// All options for what a command that runs cases does with its result.
void add_output(CLI::App& app, OutputOptions& options);
/// --metrics and --roofline, for tables of times.
void add_metrics(CLI::App& app, OutputOptions& options);
/// --counters, for tables of what the simulated GPU counts.
void add_counters(CLI::App& app, OutputOptions& options);

}  // namespace wide::bench
