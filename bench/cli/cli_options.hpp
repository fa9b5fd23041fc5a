// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The options of the commands, of which the program's parser is put together.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "bench/cli/commands.hpp"
#include "bench/command/options.hpp"

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

/// What `run` and `verify` do with calls that they check.
void add_checking(CLI::App& app, RunOptions& options);
/// `tune` has none of these: it recommends only what was checked, and measures by graphs.
void add_run(CLI::App& app, RunOptions& options);
/// The options that `verify` has besides those that select and write.
void add_verify(CLI::App& app, RunOptions& options);
/// The options that `profile` has besides those that select.
void add_profile(CLI::App& app, ProfileOptions& options);

void add_compare(CLI::App& app, CompareArguments& arguments);
void add_report(CLI::App& app, ReportArguments& arguments);
void add_suite(CLI::App& app, SuiteOptions& options);
void add_info(CLI::App& app, InfoOptions& options);
void add_quantize(CLI::App& app, QuantizeOptions& options);
void add_history(CLI::App& app, HistoryOptions& options);

}  // namespace wide::bench
