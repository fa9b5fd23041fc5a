// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The options of the subcommands as plain data.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/report/report.hpp"
#include "bench/run/select.hpp"

namespace wide::bench {

struct GlobalOptions {
  std::string color = "auto";
  bool quiet = false, verbose = false, no_gpu = false, simulate = false;
  std::vector<std::string> argv;
};

struct OutputOptions {
  std::vector<std::string> json, csv, md, html, junit;
  std::vector<std::string> exports;  ///< FORMAT=FILE of report/exports.hpp
  bool save = false;
  std::string save_as;           ///< the file to save to, instead of one named by time; or empty
  std::string events;            ///< a file to which each case is written as it ends, or empty
  std::string tag;               ///< of the saved run in the history, or empty
  std::string store;             ///< the history's; empty: store_or_default()
  std::string samples = "auto";  ///< where they go: see samples_in() of samples_file.hpp
  std::string note;              ///< stored in the result
  std::vector<std::string> context;  ///< stored in the result: NAME=VALUE
  int64_t top = 0;
  bool explain = false;
  std::string metrics;   ///< columns of the table, for parse_metrics(); empty: usual
  std::string counters;  ///< the same for the simulated GPU, for parse_counters()
};

struct CompareArguments {
  std::string base, candidate;  ///< a result, or a folder of results of one build; executables
  bool is_rerun = false;        ///< measure the two executables
  std::vector<std::string> run_arguments;  ///< of their `run`
  int64_t repeat = 5;
  std::string metric = "time_ns", threshold = "1.5%", noise_floor = "auto", fdr = "bh",
              method = "auto";
  std::string min_effect, device_pairs;  ///< empty: none
  double alpha = 0.01;
  std::string fail_on = "regression,invalid", format = "table", output, store;
  bool ignore_device = false, all = false, explain = false;
};

struct RunOptions {
  std::string command = "run";  ///< that cases are reproduced by: run or verify
  Selection selection;
  RunConfig config;
  OutputOptions output;
  std::string target_ci = "0.5%", clock_tol = "1%", throttle_threshold = "75%", max_noise = "0.5%",
              cache = "flush";
  std::string init = "uniform";          ///< what operands are filled with: init_of() of choice.hpp
  std::string tuning;                    ///< a tuning cache for "auto", or empty
  std::string saving = "never";          ///< which checked calls to save: parse_saving_rule()
  std::vector<std::string> gpu_options;  ///< given ones that change nothing on the CPU
  std::vector<std::string> peers;        ///< commands of the shell: peer/peer.hpp
  std::string lock_clocks;               ///< "base", "max", MHz, or empty
  double budget_s = -1;                  ///< negative: 60 for preset ci, none otherwise
  bool dry_run = false;
  bool is_strict = false;                      ///< unreliable measurements make the exit code 5
  bool is_profiled = false;                    ///< calls are made for a profiler, not timed
  int64_t profiled_calls = 3;                  ///< of each strategy
  bool is_endless = false;                     ///< keeps making such calls until interrupted
  std::string isolated_case, isolated_result;  ///< this is a child of --isolate
  std::vector<std::string> words;  ///< of this run, if the command line is that of another command
  std::string parent_suite;        ///< of the suite that runs this; or empty
  ReportContent content = ReportContent::times;  ///< anything but times measures nothing
  CompareArguments compare;                      ///< with a base; empty: nothing is compared
  std::shared_ptr<const std::vector<RunResult>> compare_base;  ///< the base, loaded; null: none
  bool is_one_of_several_devices = false;                      ///< of --device
  int64_t repeat = 1;                      ///< sweeps, each with a result of its own
  int64_t repeat_turn = -1;                ///< this is the process of that sweep, counted from 0
  std::string repeat_result;               ///< where that process leaves its result
  double time_limit_s = 0;                 ///< of the whole run; 0: none
  double time_left_s = 0;                  ///< what is left of it, in a process of the run; 0: all
  bool exits_on_error = false;             ///< stop after the first case that failed or is wrong
  int64_t sampled_cases = 0;               ///< of the selection; 0: all
  bool is_adversarial = false;             ///< also runs verify_adversarially() of adversarial.hpp
  bool compares_all = false;               ///< RunPlan's
  std::optional<Calibration> calibration;  ///< of this device, measured just before; none: measured
};

struct ProfileOptions {
  RunOptions run;
  std::string tool = "nsys", set = "basic", folder = ".", regime = "stream";
  std::vector<std::string> tool_arguments;
};

struct InspectOptions {
  RunOptions run;
  std::string what = "counters";
};

struct TraceOptions {
  Selection selection;  ///< one of ops, models and `onnx`
  std::string onnx;     ///< a model's file
  bool is_dot = false;
  std::string style = "list", preset = "default";
  std::string file = "-";         ///< standard output
  std::vector<std::string> json;  ///< files, "-" for standard output
  std::string tuning;             ///< a tuning cache that the steps' plans read, or empty
  bool measures = false;
};

struct TuneOptions {
  Selection selection;
  RunConfig config;
  std::string target_ci = "0.5%";
  double budget_s = -1;               ///< negative: none
  std::string tuning;                 ///< the cache's file; empty: nothing is stored
  std::string apply;                  ///< a cache that "auto" reads here; empty: none
  std::string space;                  ///< for space_of(); empty: everything that is selected
  std::string search = "exhaustive";  ///< or random, halving
  bool measures_again = false;        ///< what the cache's file holds, too
  bool dry_run = false;
};

struct HistoryOptions {
  std::string what = "list";           ///< or show, add, tag, rm, gc, trend, noise, bisect-hint
  std::vector<std::string> arguments;  ///< files of add; runs; a run and its tag
  std::string store;                   ///< empty: store_or_default()
  std::string op, filter, strategy;    ///< for trend, noise, bisect-hint; empty: all
  std::vector<std::string> axes;       ///< the same: NAME=VALUE,VALUE
  int64_t keep = -1;                   ///< number of runs that gc keeps
  bool as_json = false;
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

struct SuiteOptions {
  std::string what = "list";        ///< or validate, run
  std::vector<std::string> suites;  ///< names or files
  std::string entries, device;      ///< for run; empty: all, and as the suite says
  std::string json, results;        ///< for run: the summary's file, the results' folder; or empty
  std::string store;                ///< the history's; empty: store_or_default()
  bool save = false, dry_run = false, is_strict = false;
};

struct InfoOptions {
  std::string ops;                ///< shows what these have, not what the machine has; or empty
  std::string device;             ///< for calibrations and self-checks; empty: all
  std::vector<std::string> json;  ///< files, "-" for standard output
  bool calibrates = false;        ///< measures ceilings, launches and timers
  bool checks_measuring = false;  ///< --self-check
};

struct ReportArguments {
  std::vector<std::string> results;
  std::string html, md;  ///< files, or "-"; at least one is given
  std::string plots = "all";
  std::string compare;  ///< an earlier result or a folder of them, or empty
  std::string metric = "time_ns", threshold = "1.5%", store;
  bool with_history = false;
};

}  // namespace wide::bench
