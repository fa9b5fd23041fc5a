// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Options of where results go and come from.
#pragma once

#include <CLI/CLI.hpp>

#include "bench/commands.hpp"

namespace wide::bench {

/// --store: which history.
CLI::Option* add_store(CLI::App& app, std::string& store);

/// --export FORMAT=FILE.
CLI::Option* add_exports(CLI::App& app, OutputOptions& options);

/// All that a command that runs cases does with its result.
void add_output(CLI::App& app, OutputOptions& options);
/// --metrics and --roofline, of tables of times.
void add_metrics(CLI::App& app, OutputOptions& options);
/// --counters, of tables of what the simulated GPU counts.
void add_counters(CLI::App& app, OutputOptions& options);

}  // namespace wide::bench
