// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `history`: what was measured before, and how it has changed. Needs no device.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <regex>
#include <set>

#include "bench/cli.hpp"
#include "bench/commands.hpp"
#include "bench/history/names.hpp"
#include "bench/history/run_json.hpp"
#include "bench/report/report.hpp"
#include "bench/report/table.hpp"
#include "bench/report/terminal.hpp"
#include "bench/result_json.hpp"
#include "bench/select.hpp"
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

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

void print_json(const Json& document, std::ostream& out) {
  out << document.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
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
               {joined(r.tags)}});
  }
  if (as_json) {
    print_json(all, out);
  } else if (runs.empty()) {
    out << "no runs\n";
  } else {
    out << table.render(output_width(), false) << "\n"
        << runs.size() << (runs.size() == 1 ? " run\n" : " runs\n");
  }
  return kSuccess;
}

int add(HistoryStore& store, const std::vector<std::string>& files, std::ostream& out) {
  if (files.empty()) throw Error(ErrorCode::invalid_argument, "history add: no file");
  for (const std::string& file : files) {
    const std::string text = load_document(file);
    RunResult result;
    try {
      result = parse_result(text);
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
    throw Error(ErrorCode::invalid_argument, "history tag: expected a run and its tag");
  const std::string& name = arguments[1];
  require_tag(name);
  const std::string id = find_run(store, arguments[0]);
  store.tag(id, name);
  out << "@" << name << " is " << id << "\n";
  return kSuccess;
}

int remove(HistoryStore& store, const std::vector<std::string>& names, std::ostream& out) {
  if (names.empty()) throw Error(ErrorCode::invalid_argument, "history rm: no run");
  std::set<std::string> ids;
  for (const std::string& name : names) ids.insert(find_run(store, name));
  store.remove({ids.begin(), ids.end()});
  for (const std::string& id : ids) out << "removed " << id << "\n";
  return kSuccess;
}

/// All but the newest runs and those that have a tag.
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
  out << "removed " << ids.size() << " of " << runs.size() << " runs\n";
  return kSuccess;
}

std::vector<HistorySeries> selected_series(const HistoryStore& store,
                                           const HistoryOptions& options) {
  std::set<std::string> ops;
  if (!options.op.empty() && options.op != "all") {
    for (const auto* spec : select_ops(options.op)) ops.emplace(spec->name);
  }
  std::regex filter;
  try {
    filter = std::regex(options.filter);
  } catch (const std::regex_error& error) {
    throw Error(ErrorCode::invalid_argument,
                "--filter " + options.filter + " is no regular expression: " + error.what());
  }
  std::vector<HistorySeries> all = series_of(store.points());
  std::erase_if(all, [&](const HistorySeries& s) {
    const bool is_other_op = !ops.empty() && !ops.contains(s.last.op);
    const bool is_other_runner = !options.strategy.empty() && s.last.runner != options.strategy;
    return is_other_op || is_other_runner ||
           !std::regex_search(s.last.op + " " + s.last.axes, filter);
  });
  return all;
}

/// Medians from the smallest to the largest as eight steps; all alike where they are equal.
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
  return {{"op", s.last.op},
          {"axes", s.last.axes},
          {"case_id", s.last.case_id},
          {"runner", s.last.runner},
          {"regime", s.last.regime},
          {"device", s.last.device},
          {"noise_floor_pct", noise ? Json(noise->floor_pct) : Json()},
          {"runs", s.runs},
          {"medians_ns", s.medians_ns}};
}

/// `trend` shows where medians went, `noise` how far they lie apart.
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
    print_json(document, out);
  } else if (!all.empty()) {
    out << table.render(output_width(), false) << "\n";
  }
  if (!all.empty()) return kSuccess;
  if (!options.as_json) out << "no runs\n";
  return kNothingRan;
}

}  // namespace

int command_history(const GlobalOptions& global, const HistoryOptions& options, std::ostream& out) {
  const bool writes = options.what == "add";
  const std::unique_ptr<HistoryStore> store =
      open_history(store_or_default(options.store), !writes);
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
  return show_series(*store, options, out);
}

}  // namespace wide::bench
