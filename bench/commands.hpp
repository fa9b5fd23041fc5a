// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The subcommands: options as plain data, one function each. They return an exit code and throw
// wide::Error for what the command line's caller got wrong.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "bench/report/report.hpp"
#include "bench/select.hpp"

namespace wide::bench {

struct GlobalOptions {
  std::string color = "auto";
  bool quiet = false, verbose = false, no_gpu = false, simulate = false;
  std::vector<std::string> argv;
};

struct OutputOptions {
  std::vector<std::string> json, csv, md;
  bool save = false;
  int64_t top = 0;
  bool explain = false;
};

struct RunOptions {
  Selection selection;
  RunConfig config;
  OutputOptions output;
  std::string target_ci = "0.5%";
  std::string tuning;    ///< a tuning cache for "auto", or empty
  double budget_s = -1;  ///< negative: 60 for preset ci, none otherwise
  bool dry_run = false;
  ReportContent content = ReportContent::times;  ///< what is not times measures nothing
};

struct TuneOptions {
  Selection selection;
  RunConfig config;
  std::string target_ci = "0.5%";
  double budget_s = -1;  ///< negative: none
  std::string tuning;    ///< the cache's file; empty: nothing is kept
  bool dry_run = false;
};

struct QuantizeOptions {
  std::string file;  ///< a weight's elements one after another, [out, in]; empty: random ones
  std::string dtype = "fp32";
  int64_t out_features = 1024, in_features = 1024;
  int64_t seed = 0;
  std::vector<std::string> formats{"all"};
  std::vector<int64_t> group_sizes{128};
  std::string json;  ///< a file, "-" for standard output, or empty
};

int command_tune(const GlobalOptions& global, const TuneOptions& options, std::ostream& out,
                 std::ostream& err);
int command_run(const GlobalOptions& global, RunOptions options, std::ostream& out,
                std::ostream& err);
int command_show(const GlobalOptions& global, const std::vector<std::string>& files,
                 const OutputOptions& output, std::ostream& out);
int command_list(const GlobalOptions& global, const std::string& what, const std::string& ops,
                 bool as_json, std::ostream& out);
int command_quantize(const GlobalOptions& global, const QuantizeOptions& options,
                     std::ostream& out);
int command_info(const GlobalOptions& global, bool as_json, std::ostream& out);

/// What the cases of a run come to; interrupted counts first, then the first of 1, 3, 6, 0.
int exit_code_of(const RunResult& result, bool was_interrupted);

}  // namespace wide::bench
