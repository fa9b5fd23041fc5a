// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `suite`: lists shipped suites, checks a file, runs the entries one after another. All of
// a suite is checked before any of it runs; later errors affect only their own entry.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <system_error>

#include "bench/cases/value_spec.hpp"
#include "bench/cli/cli.hpp"
#include "bench/cli/commands.hpp"
#include "bench/command/options.hpp"
#include "bench/command/output_files.hpp"
#include "bench/command/run_selection.hpp"
#include "bench/history/names.hpp"
#include "bench/machine/calibrate.hpp"
#include "bench/machine/environment.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/process/interrupt.hpp"
#include "bench/process/simulation.hpp"
#include "bench/report/table.hpp"
#include "bench/report/terminal.hpp"
#include "bench/run/select.hpp"
#include "bench/suite/outcome.hpp"
#include "bench/timer/seconds.hpp"
#include "host/core/file.hpp"
#include "host/core/text.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

EntrySize size_of(const Suite& suite) {
  EntrySize size;
  for (const SuiteEntry& entry : suite.entries) {
    const EntrySize one = size_of(entry);
    size.cases += one.cases;
    size.impossible += one.impossible;
  }
  return size;
}

int list_suites(const SuiteOptions& options, std::ostream& out) {
  if (!options.suites.empty()) {
    throw Error(ErrorCode::invalid_argument, "suite list: \"" + options.suites.front() +
                                                 "\" is one too many; suite validate checks it");
  }
  std::vector<std::vector<std::string>> rows{{"suite", "entries", "cases", "description"}};
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const ShippedSuite& shipped : shipped_suites()) {
    const Suite suite = load_suite(std::string(shipped.name));
    const int64_t cases = size_of(suite).cases;
    rows.push_back({suite.name, std::to_string(suite.entries.size()), std::to_string(cases),
                    suite.description});
    array.push_back({{"suite", suite.name},
                     {"entries", suite.entries.size()},
                     {"cases", cases},
                     {"description", suite.description}});
  }
  out << (!options.json.empty() ? array.dump(1) + "\n" : listing_text(rows, output_width()));
  return kSuccess;
}

/// Every suite is checked, so that one broken file does not hide another.
int validate_suites(const SuiteOptions& options, std::ostream& out, std::ostream& err) {
  int code = kSuccess;
  for (const std::string& name : options.suites) {
    try {
      const Suite suite = load_suite(name);
      const EntrySize size = size_of(suite);
      out << fmt::format("{}: ok: suite {}, {}, {}, {}\n", name, suite.name,
                         counted(suite.entries.size(), "entry", "entries"),
                         counted(size.cases, "case"), counted(size.impossible, "impossible point"));
    } catch (const Error& error) {
      err << "wbench: " << error.what() << "\n";
      code = worse_code(code, error.code() == ErrorCode::invalid_argument ? kUsage : kRuntimeError);
    }
  }
  return code;
}

void keep_entries(Suite& suite, const std::string& names) {
  if (names.empty()) return;
  std::vector<SuiteEntry> kept;
  std::vector<std::string_view> known;
  for (const SuiteEntry& entry : suite.entries) known.push_back(entry.name);
  for (const std::string& name : parse_list("entry", names, known)) {
    const auto found = std::find_if(suite.entries.begin(), suite.entries.end(),
                                    [&](const SuiteEntry& e) { return e.name == name; });
    if (found == suite.entries.end()) {
      throw Error(ErrorCode::invalid_argument,
                  "--entry: " + catalog::unknown_name_message("entry", name, known));
    }
    kept.push_back(*found);
  }
  suite.entries = std::move(kept);
}

/// Measured ceilings of a device are reused by the entries of the next minute: many short ones
/// would otherwise spend most of their time on them.
class Ceilings {
 public:
  std::optional<Calibration> of(const std::string& device) const {
    const auto found = measured_.find(device);
    if (found == measured_.end() || Clock::now() - found->second.when > kHold) return {};
    return found->second.calibration;
  }

  void keep(const std::string& device, const Calibration& calibration) {
    if (calibration == Calibration() || of(device)) return;
    measured_[device] = {calibration, Clock::now()};
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kHold{60};
  struct Measured {
    Calibration calibration;
    Clock::time_point when;
  };
  std::map<std::string, Measured> measured_;
};

class SuiteRun {
 public:
  SuiteRun(const GlobalOptions& global, const SuiteOptions& options, std::ostream& out,
           std::ostream& err)
      : global_(global), options_(options), out_(out), err_(err) {}

  SuiteOutcome run(const Suite& suite, const std::string& source) {
    RunResult facts;
    describe_environment(facts);
    SuiteOutcome outcome{suite.name, source, facts.started, 0, true, {}};
    suite_name_ = suite.name;
    folder_ = options_.results;
    if (folder_.empty() && options_.save) {
      folder_ = "results/" + facts.id + "-" + suite.name;
      std::erase(folder_, ':');
    }
    const auto start = std::chrono::steady_clock::now();
    for (const SuiteEntry& entry : suite.entries) {
      if (is_interrupted()) {
        outcome.entries.emplace_back();
        outcome.entries.back().entry = entry;
        continue;
      }
      if (!options_.dry_run)
        out_ << fmt::format("{}== {} ({} of {})\n", outcome.entries.empty() ? "" : "\n", entry.name,
                            outcome.entries.size() + 1, suite.entries.size());
      outcome.entries.push_back(run_entry(entry));
    }
    outcome.complete = !is_interrupted();
    outcome.duration_s = seconds_since(start);
    return outcome;
  }

 private:
  EntryOutcome run_entry(const SuiteEntry& entry) {
    RunOptions run = entry.options;
    if (!options_.device.empty()) run.selection.device = options_.device;
    run.selection.no_gpu = global_.no_gpu;
    run.dry_run = options_.dry_run;
    run.output.store = options_.store;
    run.parent_suite = suite_name_;
    run.words = run_words(run);
    measure_ceilings(run);
    run.calibration = ceilings_.of(run.selection.device);
    std::string file;
    if (!folder_.empty() && !run.dry_run) file = folder_ + "/" + entry.name + ".json";
    if (options_.save) {
      run.output.save_as = file;
    } else if (!file.empty()) {
      std::error_code ignored;  // writing reports the error
      std::filesystem::create_directories(folder_, ignored);
      run.output.json = {file};
    }
    RunResult result;
    int code = kRuntimeError;
    std::string message;
    const std::string device = run.selection.device;
    try {
      code = run_selection(global_, std::move(run), result, out_, err_);
      ceilings_.keep(device, result.calibration);
    } catch (const Error& error) {
      code = error.code() == ErrorCode::invalid_argument ? kUsage : kRuntimeError;
      message = error.what();
    } catch (const std::exception& error) {
      message = error.what();
    }
    EntryOutcome outcome = outcome_of(entry, result, code, options_.is_strict);
    outcome.message = message;
    if (!result.cases.empty() && std::filesystem::exists(file)) outcome.file = file;
    if (!message.empty()) err_ << "wbench: " << entry.where << ": " << message << "\n";
    return outcome;
  }

  /// Before the entry, unless they are known, so that all of its budget is its cases': on a GPU
  /// they take seconds. A device that cannot be used is reported by the entry; cases in processes
  /// of their own have the first one's ceilings, since this one holds no device.
  void measure_ceilings(const RunOptions& run) {
    const std::string& device = run.selection.device;
    if (run.dry_run || run.config.isolate || is_simulated() || ceilings_.of(device)) return;
    if (global_.verbose) err_ << "measuring ceilings\n" << std::flush;
    try {
      ceilings_.keep(device, calibrate(select_context(run.selection)));
    } catch (const std::exception&) {
    }
  }

  const GlobalOptions& global_;
  const SuiteOptions& options_;
  std::ostream& out_;
  std::ostream& err_;
  std::string suite_name_, folder_;
  Ceilings ceilings_;
};

/// Judges the outputs, before any entry runs; makes the results' folder.
void require_suite_outputs(const SuiteOptions& options, const Suite& suite) {
  std::error_code error;
  if (!options.results.empty()) std::filesystem::create_directories(options.results, error);
  if (error) throw Error(ErrorCode::io, "cannot write " + options.results + ": " + error.message());
  NamedFiles outputs{{"--json", options.json}};
  for (const SuiteEntry& entry : suite.entries) {
    if (!options.results.empty())
      outputs.push_back({"--results", options.results + "/" + entry.name + ".json"});
  }
  require_outputs(outputs, {{"the suite", options.suites.front()}});
  if (options.save && !suite.entries.empty()) {
    const std::string folder = options.results.empty() ? "results" : options.results;
    require_saving(folder + "/" + suite.entries.front().name + ".json",
                   store_or_default(options.store));
  }
}

int run_suite(const GlobalOptions& global, const SuiteOptions& options, std::ostream& out,
              std::ostream& err) {
  if (options.suites.size() != 1) {
    throw Error(ErrorCode::invalid_argument, "suite run: " + std::to_string(options.suites.size()) +
                                                 " suites, expected one; see suite list");
  }
  Suite suite = load_suite(options.suites.front());
  keep_entries(suite, options.entries);
  if (!options.dry_run) require_suite_outputs(options, suite);
  (void)size_of(suite);  // a mistake in the last entry must not cost the first one's time
  std::ostream nowhere(nullptr);
  const bool is_document = options.json == "-";
  SuiteRun runs(global, options, is_document ? nowhere : out, err);
  const SuiteOutcome outcome = runs.run(suite, options.suites.front());
  if (options.dry_run) return outcome.exit_code();
  if (!is_document) out << "\n" << suite_text(outcome, output_width(), wants_color(global.color));
  if (is_document) out << suite_json(outcome);
  int code = outcome.exit_code();
  if (!options.json.empty() && !is_document) {
    try {
      write_file(options.json, suite_json(outcome));
    } catch (const Error& error) {
      err << "wbench: " << error.what() << "\n";
      code = worse_code(code, kRuntimeError);
    }
  }
  return code;
}

}  // namespace

int command_suite(const GlobalOptions& global, const SuiteOptions& options, std::ostream& out,
                  std::ostream& err) {
  if (options.what == "list") return list_suites(options, out);
  if (options.what == "run") return run_suite(global, options, out, err);
  if (options.suites.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "suite validate: no suite, expected a file or one of suite list");
  }
  return validate_suites(options, out, err);
}

}  // namespace wide::bench
