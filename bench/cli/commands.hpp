// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The subcommands: options as plain data, one function each. They return an exit code and throw
// wide::Error for the user's mistakes.
#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "bench/command/options.hpp"
#include "bench/report/report.hpp"
#include "bench/run/select.hpp"

namespace wide::bench {

int command_tune(const GlobalOptions& global, const TuneOptions& options, std::ostream& out,
                 std::ostream& err);
int command_run(const GlobalOptions& global, RunOptions options, std::ostream& out,
                std::ostream& err);
int command_profile(const GlobalOptions& global, const ProfileOptions& options, std::ostream& out,
                    std::ostream& err);
int command_inspect(const GlobalOptions& global, const InspectOptions& options, std::ostream& out,
                    std::ostream& err);
int command_trace(const GlobalOptions& global, const TraceOptions& options, std::ostream& out,
                  std::ostream& err);
int command_show(const GlobalOptions& global, const std::vector<std::string>& files,
                 const OutputOptions& output, std::ostream& out);
int command_history(const GlobalOptions& global, const HistoryOptions& options, std::ostream& out,
                    std::ostream& err);
/// `json` is a file, "-" for standard output, or empty.
int command_list(const GlobalOptions& global, const std::string& what, const std::string& ops,
                 const std::string& json, std::ostream& out);
int command_quantize(const GlobalOptions& global, const QuantizeOptions& options,
                     std::ostream& out);
int command_compare(const GlobalOptions& global, const CompareArguments& arguments,
                    std::ostream& out, std::ostream& err);
/// Throws invalid_argument, before there are results, for what command_compare() would refuse.
void require_compare_arguments(const CompareArguments& arguments);
/// command_compare() of results in memory.
int compare_results(const GlobalOptions& global, const CompareArguments& arguments,
                    std::span<const RunResult> base, std::span<const RunResult> candidate,
                    std::ostream& out, std::ostream& err);
int command_report(const ReportArguments& arguments, std::ostream& out, std::ostream& err);
int command_suite(const GlobalOptions& global, const SuiteOptions& options, std::ostream& out,
                  std::ostream& err);
int command_info(const GlobalOptions& global, const InfoOptions& options, std::ostream& out,
                 std::ostream& err);

/// Whether that needs the simulated GPU because there is no real one.
bool launches_need_simulation(const Selection& selection, const GlobalOptions& global);

}  // namespace wide::bench
