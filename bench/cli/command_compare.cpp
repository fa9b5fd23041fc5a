// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `compare`: whether a candidate's results are slower than a base's. Needs no device.
#include <fmt/format.h>

#include <optional>
#include <ostream>
#include <set>
#include <sstream>

#include "bench/cli/cli.hpp"
#include "bench/cli/commands.hpp"
#include "bench/command/options.hpp"
#include "bench/command/output_files.hpp"
#include "bench/command/running.hpp"
#include "bench/compare/notes.hpp"
#include "bench/compare/rerun.hpp"
#include "bench/compare/verdicts.hpp"
#include "bench/history/names.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/report/terminal.hpp"
#include "host/core/file.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

constexpr const char *kHistory = "history", *kAuto = "auto";

/// Both sides: loaded, or measured now.
RerunOutcome runs_of(const CompareArguments& a, std::ostream& progress, std::ostream& err) {
  if (a.is_rerun)
    return run_by_turns({a.base, a.candidate, a.run_arguments, a.repeat}, progress, err);
  if (!a.run_arguments.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "compare: \"" + a.run_arguments.front() + "\" is one too many; see --rerun");
  }
  if (a.base == "-" && a.candidate == "-") {
    throw Error(ErrorCode::invalid_argument,
                "compare: standard input is given twice, expected it for base or candidate");
  }
  return {load_named_results(a.base, a.store), load_named_results(a.candidate, a.store), kSuccess};
}

/// "A:B,C:D"
std::vector<DevicePair> parse_device_pairs(const std::string& text) {
  std::vector<DevicePair> pairs;
  std::istringstream list(text);
  for (std::string item; std::getline(list, item, ',');) {
    const size_t colon = item.find(':');
    const DevicePair pair{item.substr(0, colon),
                          colon == std::string::npos ? "" : item.substr(colon + 1)};
    const bool is_pair = !pair.base.empty() && !pair.candidate.empty() &&
                         pair.candidate.find(':') == std::string::npos;
    if (!is_pair) {
      throw Error(ErrorCode::invalid_argument,
                  "--pair-devices: \"" + item + "\", expected BASE:CANDIDATE such as 0:1");
    }
    pairs.push_back(pair);
  }
  return pairs;
}

CompareMethod parse_method(const std::string& name) {
  for (const CompareMethod method :
       {CompareMethod::bootstrap, CompareMethod::mwu, CompareMethod::welch, CompareMethod::student,
        CompareMethod::interval}) {
    if (to_string(method) == name) return method;
  }
  return CompareMethod::automatic;  // the parser accepts only known names
}

/// What was measured before the candidate, which may itself be saved. None if there is no
/// store, unless it `must_exist`.
std::optional<std::vector<HistorySeries>> history_without(std::span<const RunResult> candidate,
                                                          const std::string& store,
                                                          bool must_exist) {
  const std::string name = store_or_default(store);
  if (!must_exist && !has_history(name)) return std::nullopt;
  std::vector<HistoryPoint> points = open_history(name, true)->points();
  std::set<std::string> ids;
  for (const RunResult& run : candidate) ids.insert(run.id);
  std::erase_if(points, [&](const HistoryPoint& p) { return ids.contains(p.run); });
  return series_of(points);
}

CompareOptions compare_options(const CompareArguments& a) {
  CompareOptions options;
  options.metric = &find_measured_metric(a.metric);
  options.threshold_pct = parse_threshold(a.threshold, *options.metric);
  options.alpha = a.alpha;
  options.adjusts_p = a.fdr == "bh";
  options.method = parse_method(a.method);
  if (!a.min_effect.empty()) options.min_effect_pct = parse_percent("--min-effect", a.min_effect);
  options.device_pairs = parse_device_pairs(a.device_pairs);
  if (a.noise_floor == "none") options.noise_floor_pct = 0;
  if (a.noise_floor != "none" && a.noise_floor != "runs" && a.noise_floor != kHistory &&
      a.noise_floor != kAuto) {
    options.noise_floor_pct =
        parse_percent("--noise-floor", a.noise_floor, "auto, runs, history, none or ");
  }
  return options;
}

std::string document_of(const Comparison& comparison, const CompareArguments& a,
                        const CompareView& view, const FailOn& fail_on) {
  if (a.format == "md") return compare_markdown(comparison, view);
  if (a.format == "json") return compare_json(comparison, fail_on);
  if (a.format == "junit") return compare_junit(comparison, fail_on);
  if (a.format == "github") return compare_github(comparison, fail_on);
  return compare_text(comparison, view);
}

/// Refuses to replace what is compared.
void require_output(const CompareArguments& a) {
  NamedFiles inputs;
  add_results(inputs, a.is_rerun ? "the executable" : "the base", a.base);
  add_results(inputs, a.is_rerun ? "the executable" : "the candidate", a.candidate);
  require_outputs({{"--output", a.output}}, inputs);
}

}  // namespace

void require_compare_arguments(const CompareArguments& arguments) {
  (void)compare_options(arguments);
  (void)parse_fail_on(arguments.fail_on);
}

int compare_results(const GlobalOptions& global, const CompareArguments& arguments,
                    std::span<const RunResult> base, std::span<const RunResult> candidate,
                    std::ostream& out, std::ostream& err) {
  std::ostream nowhere(nullptr);
  std::ostream& notes = global.quiet ? nowhere : err;
  CompareOptions options = compare_options(arguments);
  const FailOn fail_on = parse_fail_on(arguments.fail_on);
  const std::string shared = shared_runs_note(base, candidate);
  for (const auto& runs : {base, candidate}) {
    for (const RunResult& run : runs) {
      for (const std::string& note : {samples_note(run), schema_note(run)})
        if (!note.empty()) notes << "wbench: compare: run " << run.id << ": " << note << "\n";
    }
  }
  // Interleaved sides were measured at the same time, so only the noise of the runs applies.
  const bool is_automatic = arguments.noise_floor == kAuto && !arguments.is_rerun;
  if (arguments.noise_floor == kHistory || is_automatic)
    options.history = history_without(candidate, arguments.store, !is_automatic);
  const Comparison comparison = compare(base, candidate, options);
  if (comparison.has_device_mismatch() && !arguments.ignore_device) {
    err << "wbench: compare: base ran on " << comparison.base_device << ", candidate on "
        << comparison.candidate_device
        << "; --ignore-device or --pair-devices compares them all the same\n";
    return kEnvironment;
  }
  if (!shared.empty()) notes << "wbench: compare: " << shared << "\n";
  for (const std::string& note : comparison.notes) notes << "wbench: compare: " << note << "\n";
  const int code = exit_code_of(comparison, fail_on);
  if (const std::string note = unjudged_note(comparison); !note.empty())
    (code == kInconclusive ? err : notes) << "wbench: compare: " << note << "\n";
  const CompareView view{output_width(), wants_color(global.color), arguments.all,
                         arguments.explain};
  const std::string document = document_of(comparison, arguments, view, fail_on);
  if (arguments.output.empty() || arguments.output == "-") {
    out << document;
  } else {
    write_file(arguments.output, document);
    out << summary_line(comparison) << "\n";
  }
  if (code == kNothingRan) err << "wbench: compare: no cell is in both\n";
  return code;
}

int command_compare(const GlobalOptions& global, const CompareArguments& arguments,
                    std::ostream& out, std::ostream& err) {
  require_compare_arguments(arguments);
  require_output(arguments);
  std::ostream nowhere(nullptr);
  const RerunOutcome runs = runs_of(arguments, global.quiet ? nowhere : err, err);
  if (runs.code != kSuccess) {
    err << fmt::format("wbench: compare: cut short; finished runs: base {}, candidate {}\n",
                       runs.base.size(), runs.candidate.size());
    if (runs.base.empty() || runs.candidate.empty()) return runs.code;
  }
  return worse_code(runs.code,
                    compare_results(global, arguments, runs.base, runs.candidate, out, err));
}

}  // namespace wide::bench
