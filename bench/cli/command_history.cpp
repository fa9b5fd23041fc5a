// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `history`: earlier measurements, and how they have changed. Needs no device.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <regex>
#include <set>
#include <sstream>

#include "bench/cases/filter.hpp"
#include "bench/cases/value_spec.hpp"
#include "bench/cli/cli.hpp"
#include "bench/cli/commands.hpp"
#include "bench/command/options.hpp"
#include "bench/document/json_number.hpp"
#include "bench/document/result_check.hpp"
#include "bench/document/result_json.hpp"
#include "bench/history/change_point.hpp"
#include "bench/history/names.hpp"
#include "bench/history/run_json.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/report/report.hpp"
#include "bench/report/table.hpp"
#include "bench/report/terminal.hpp"
#include "bench/run/select.hpp"
#include "host/core/strategy_choice.hpp"
#include "host/core/text.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownHash = 10;

std::string commit_text(const HistoryRun& run) {
  return run.git_sha.substr(0, kShownHash) + (run.git_dirty ? "+" : "");
}

std::string state_text(const HistoryRun& run) {
  if (!run.complete) return "partial";
  return run.exit_code == 0 ? "ok" : fmt::format("exit code {}", run.exit_code);
}

int list(const HistoryStore& store, bool as_json, std::ostream& out) {
  const std::vector<HistoryRun> runs = store.runs();
  Json all = Json::array();
  Table table({{"id", false, 9},
               {"commit", false, 5},
               {"device", false, 3, 24},
               {"op", false, 8, 30},
               {"cases", true, 6},
               {"state", false, 7},
               {"tags", false, 8, 24}});
  for (const HistoryRun& r : runs) {
    all.push_back(to_json(r));
    all.back()["tags"] = r.tags;
    table.add({{r.id},
               {commit_text(r)},
               {r.device},
               {r.ops},
               {std::to_string(r.num_cases)},
               {state_text(r)},
               {fmt::format("{}", fmt::join(r.tags, ","))}});
  }
  if (as_json) {
    out << dumped(all);
  } else if (runs.empty()) {
    out << "no runs\n";
  } else {
    out << table.render(output_width(), false) << "\n" << counted(runs.size(), "run") << "\n";
  }
  return kSuccess;
}

int add(HistoryStore& store, const std::vector<std::string>& files, std::ostream& out) {
  if (files.empty())
    throw Error(ErrorCode::invalid_argument, "history add: no file, expected results to add");
  for (const std::string& file : files) {
    const std::string text = load_document(file);
    RunResult result;
    try {
      result = parse_result(text);
      require_consistent(result);
    } catch (const Error& error) {
      throw Error(error.code(), file + ": " + error.what());
    }
    const bool is_new = store.add(record_of(result, text));
    out << (is_new ? "added " : "is there: ") << result.id << "\n";
  }
  return kSuccess;
}

int tag(HistoryStore& store, const std::vector<std::string>& arguments, std::ostream& out) {
  if (arguments.size() != 2)
    throw Error(ErrorCode::invalid_argument,
                "history tag: " + counted(arguments.size(), "argument") +
                    ", expected 2: a run and its tag");
  const std::string& name = arguments[1];
  require_tag(name);
  const std::string id = find_run(store, arguments[0]);
  store.tag(id, name);
  out << "@" << name << " is " << id << "\n";
  return kSuccess;
}

int remove(HistoryStore& store, const std::vector<std::string>& names, std::ostream& out) {
  if (names.empty())
    throw Error(ErrorCode::invalid_argument, "history rm: no run, expected one or more");
  std::set<std::string> ids;
  for (const std::string& name : names) ids.insert(find_run(store, name));
  store.remove({ids.begin(), ids.end()});
  for (const std::string& id : ids) out << "removed " << id << "\n";
  return kSuccess;
}

/// Removes all but the newest runs and those that have a tag.
int collect_garbage(HistoryStore& store, int64_t keep, std::ostream& out) {
  if (keep < 0)
    throw Error(ErrorCode::invalid_argument, "history gc: --keep N says how many runs stay");
  const std::vector<HistoryRun> runs = store.runs();
  const auto old = std::max<int64_t>(0, static_cast<int64_t>(runs.size()) - keep);
  std::vector<std::string> ids;
  for (const HistoryRun& run : std::span(runs).first(static_cast<size_t>(old))) {
    if (run.tags.empty()) ids.push_back(run.id);
  }
  store.remove(ids);
  out << "removed " << ids.size() << " of " << counted(runs.size(), "run") << "\n";
  return kSuccess;
}

/// Parses NAME=VALUE,VALUE for each axis.
std::map<std::string, std::set<std::string>> axis_filters(const std::vector<std::string>& texts) {
  std::map<std::string, std::set<std::string>> filters;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      throw Error(ErrorCode::invalid_argument,
                  "--axis: \"" + text + "\", expected NAME=VALUE or NAME=VALUE,VALUE");
    }
    for (const std::string& value : parse_list("axis", text.substr(equals + 1)))
      filters[text.substr(0, equals)].insert(value);
  }
  return filters;
}

/// The axes of "n=4 batch=16".
std::map<std::string, std::string> axes_of(const std::string& text) {
  std::map<std::string, std::string> values;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals != std::string::npos) values[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return values;
}

/// Whether "n=4 batch=16" has each of the axes with one of its values.
bool has_axes(const std::string& axes, const std::map<std::string, std::set<std::string>>& wanted) {
  const std::map<std::string, std::string> values = axes_of(axes);
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& axis) {
    const auto found = values.find(axis.first);
    return found != values.end() && axis.second.contains(found->second);
  });
}

/// Of --op; empty: all. The history may have ops that the catalogue no longer has.
std::set<std::string> selected_ops(const std::string& list, const std::vector<HistorySeries>& all) {
  std::set<std::string> ops;
  for (const std::string& name : parse_list("op", list.empty() ? std::string(kAll) : list)) {
    if (name == kAll) return {};
    const bool is_stored = std::any_of(all.begin(), all.end(), [&](const HistorySeries& series) {
      return series.last.op == name;
    });
    if (is_stored) {
      ops.insert(name);
    } else {
      for (const auto* spec : select_ops(name)) ops.emplace(spec->name);
    }
  }
  return ops;
}

/// Names that may be asked for: those of the catalogue's ops, and those that the series have, which
/// the catalogue may have lost.
struct KnownNames {
  std::set<std::string> axes, runners;

  KnownNames(const std::set<std::string>& ops, const std::vector<HistorySeries>& all) {
    const auto is_selected = [&](std::string_view op) {
      return ops.empty() || ops.contains(std::string(op));
    };
    for (const catalog::PrimitiveSpec* spec : select_ops("all,model:all")) {
      if (!is_selected(spec->name)) continue;
      for (const catalog::AxisInfo& axis : spec->axes) axes.emplace(axis.name);
      for (const catalog::StrategyInfo& info : spec->strategies) runners.emplace(info.name);
    }
    for (const std::string_view choice : {wide::kAuto, wide::kAutoUnverified})
      runners.emplace(choice);
    for (const Baseline baseline : kOwnBaselines)
      runners.insert("(" + std::string(to_string(baseline)) + ")");
    for (const HistorySeries& series : all) {
      if (!is_selected(series.last.op)) continue;
      runners.insert(series.last.runner);
      for (const auto& [axis, value] : axes_of(series.last.axes)) axes.insert(axis);
    }
  }
};

void require_known(const char* what, const std::string& name, const std::set<std::string>& known) {
  if (known.contains(name)) return;
  const std::vector<std::string_view> views(known.begin(), known.end());
  throw Error(ErrorCode::invalid_argument,
              fmt::format("--{}: {}", what, catalog::unknown_name_message(what, name, views)));
}

std::vector<HistorySeries> selected_series(const HistoryStore& store,
                                           const HistoryOptions& options) {
  std::vector<HistorySeries> all = series_of(store.points());
  const std::set<std::string> ops = selected_ops(options.op, all);
  const std::regex filter = parse_filter(options.filter);
  const auto wanted = axis_filters(options.axes);
  const KnownNames known(ops, all);
  for (const auto& [axis, values] : wanted) require_known("axis", axis, known.axes);
  const bool has_strategy = !options.strategy.empty() && options.strategy != kAll;
  // A policy, as of simt:m16n64, may be one that nothing is stored of.
  if (has_strategy && !known.runners.contains(options.strategy))
    require_known("strategy", options.strategy.substr(0, options.strategy.find(':')),
                  known.runners);
  std::erase_if(all, [&](const HistorySeries& s) {
    const bool is_other_op = !ops.empty() && !ops.contains(s.last.op);
    const bool is_other_runner = has_strategy && s.last.runner != options.strategy;
    return is_other_op || is_other_runner || !has_axes(s.last.axes, wanted) ||
           !std::regex_search(s.last.op + " " + s.last.axes, filter);
  });
  return all;
}

/// Medians from the smallest to the largest as eight steps; all the same if they are equal.
std::string sparkline(std::span<const double> values) {
  static constexpr const char* kSteps[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr size_t kMost = 16;
  const auto shown = values.last(std::min(values.size(), kMost));
  const auto [least, most] = std::minmax_element(shown.begin(), shown.end());
  std::string text;
  for (const double value : shown) {
    const double share = *most > *least ? (value - *least) / (*most - *least) : 0;
    text += kSteps[static_cast<size_t>(std::min(7.0, share * 8))];
  }
  return text;
}

Json series_json(const HistorySeries& s) {
  const auto noise = noise_band(s);
  return {
      {"op", s.last.op},
      {"axes", s.last.axes},
      {"case_id", s.last.case_id},
      {"runner", s.last.runner},
      {"regime", s.last.regime},
      {"device", s.last.device},
      {"noise_floor_pct", noise ? Json(noise->floor_pct) : Json()},
      {"noise_floor_of", noise ? Json(noise->is_of_one_code ? "one_code" : "all_runs") : Json()},
      {"runs", s.runs},
      {"medians_ns", s.medians_ns}};
}

/// `trend` shows how medians developed, `noise` how far they scatter.
int show_series(const HistoryStore& store, const HistoryOptions& options, std::ostream& out) {
  const bool is_trend = options.what == "trend";
  const std::vector<HistorySeries> all = selected_series(store, options);
  Json document = Json::array();
  Table table({{"op", false, 8},
               {"case", false, 9, 40},
               {"strategy", false, 9},
               {"regime", false, 4},
               {"device", false, 2, 20},
               {"runs", true, 5},
               {"first", true, 3},
               {"last", true, 7},
               {"change", true, 7},
               {"noise", true, 7},
               {"trend", false, 1}});
  for (const HistorySeries& s : all) {
    document.push_back(series_json(s));
    const double change = 100 * (s.medians_ns.back() / s.medians_ns.front() - 1);
    const auto noise = noise_band(s);
    table.add({{s.last.op},
               {s.last.axes},
               {s.last.runner},
               {s.last.regime},
               {s.last.device},
               {std::to_string(s.runs.size())},
               {is_trend ? format_time(s.medians_ns.front()) : ""},
               {format_time(s.medians_ns.back())},
               {is_trend ? fmt::format("{:+.1f}%", change) : ""},
               {noise ? fmt::format("{:.1f}%", noise->floor_pct) : ""},
               {is_trend ? sparkline(s.medians_ns) : ""}});
  }
  if (options.as_json) {
    out << dumped(document);
  } else if (!all.empty()) {
    out << table.render(output_width(), false) << "\n";
  }
  if (!all.empty()) return kSuccess;
  if (!options.as_json) out << "no runs\n";
  return kNothingRan;
}

/// By id.
std::map<std::string, HistoryRun> runs_by_id(const HistoryStore& store) {
  std::map<std::string, HistoryRun> runs;
  for (const HistoryRun& run : store.runs()) runs[run.id] = run;
  return runs;
}

/// The command that finds the commit between two runs; or why there is none to find.
std::string bisect_command(const HistoryRun& before, const HistoryRun& after, bool is_slower) {
  if (before.git_sha.empty() || after.git_sha.empty())
    return "no git bisect: the runs do not say their commits";
  if (before.git_sha == after.git_sha)
    return "no git bisect: both runs are of one commit, so it is the machine, or what was not "
           "committed";
  const std::string command = "git bisect start " +
                              std::string(is_slower ? "" : "--term-new=faster --term-old=slower ") +
                              after.git_sha + " " + before.git_sha;
  const bool is_dirty = before.git_dirty || after.git_dirty;
  return command + (is_dirty ? "  (a run is of a commit that was changed)" : "");
}

std::string run_text(const HistoryRun& run) {
  return run.id + " (" + (run.git_sha.empty() ? "no commit" : commit_text(run)) + ")";
}

/// Shows where series stepped, and the commands that find the commits.
int bisect_hint(const HistoryStore& store, const HistoryOptions& options, std::ostream& out) {
  const std::vector<HistorySeries> all = selected_series(store, options);
  if (all.empty()) {
    out << (options.as_json ? "[]\n" : "no runs\n");
    return kNothingRan;
  }
  const auto runs = runs_by_id(store);
  const std::vector<SeriesChange> changes = find_changes(all);
  Json document = Json::array();
  std::vector<std::pair<std::string, std::vector<std::string>>> hints;  // command, its cells
  for (const SeriesChange& c : changes) {
    const HistorySeries& s = all[c.series];
    const HistoryRun& before = runs.at(s.runs[c.change.first_after - 1]);
    const HistoryRun& after = runs.at(s.runs[c.change.first_after]);
    const double pct = c.change.change_pct();
    const std::string command = bisect_command(before, after, pct > 0);
    auto hint = std::find_if(hints.begin(), hints.end(),
                             [&](const auto& known) { return known.first == command; });
    if (hint == hints.end()) hint = hints.insert(hints.end(), {command, {}});
    hint->second.push_back(fmt::format(
        "{} {}, {} {}, {}: between {} and {}: {:+.1f}% ({} to {}, p {:.2g})", s.last.op,
        s.last.axes, s.last.runner, s.last.regime, s.last.device, run_text(before), run_text(after),
        pct, format_time(c.change.before_ns), format_time(c.change.after_ns), c.p_adjusted));
    Json cell = series_json(s);
    cell["before"] = {{"run", before.id}, {"git_sha", before.git_sha}};
    cell["after"] = {{"run", after.id}, {"git_sha", after.git_sha}};
    cell["change_pct"] = pct;
    cell["p_adjusted"] = c.p_adjusted;
    cell["bisect"] = command;
    document.push_back(std::move(cell));
  }
  if (options.as_json) {
    out << dumped(document);
    return kSuccess;
  }
  for (const auto& [command, cells] : hints) {
    for (const std::string& cell : cells) out << cell << "\n";
    out << "  " << command << "\n";
  }
  if (changes.empty()) {
    const auto longest = std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return a.runs.size() < b.runs.size();
    });
    out << fmt::format("no change is certain: {} series, the longest of {}; {} are needed\n",
                       all.size(), counted(longest->runs.size(), "run"), 2 * kRunsAside);
  }
  return kSuccess;
}

}  // namespace

int command_history(const GlobalOptions& global, const HistoryOptions& options, std::ostream& out,
                    std::ostream& err) {
  const bool writes = options.what == "add";
  const std::unique_ptr<HistoryStore> store =
      open_history(store_or_default(options.store), !writes);
  // Before a writer cuts an unfinished line off; what is added is no leftover afterwards.
  if (!writes && !global.quiet) {
    for (const std::string& leftover : store->leftovers())
      err << "wbench: history: " << leftover << "\n";
  }
  if (options.what == "list") return list(*store, options.as_json, out);
  if (options.what == "show") {
    OutputOptions output;
    output.store = options.store;
    std::vector<std::string> names = options.arguments;
    if (names.empty()) names = {"@last"};
    for (std::string& name : names) name = "@" + find_run(*store, name);
    return command_show(global, names, output, out);
  }
  if (options.what == "add") return add(*store, options.arguments, out);
  if (options.what == "tag") return tag(*store, options.arguments, out);
  if (options.what == "rm") return remove(*store, options.arguments, out);
  if (options.what == "gc") return collect_garbage(*store, options.keep, out);
  if (options.what == "bisect-hint") return bisect_hint(*store, options, out);
  return show_series(*store, options, out);
}

}  // namespace wide::bench
