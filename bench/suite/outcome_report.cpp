// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A suite's outcome for people and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/document/json_number.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/report/table.hpp"
#include "bench/report/tables.hpp"
#include "bench/suite/outcome.hpp"
#include "host/core/text.hpp"
#include "wide/version.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

std::string_view word_of(const EntryOutcome& e) {
  if (!e.has_run) return "not_run";
  switch (e.exit_code) {
    case kSuccess:
      return "ok";
    case kUsage:
      return "refused";
    case kEnvironment:
      return "no_device";
    case kWrong:
      return "wrong";
    case kRegression:
      return "missed";
    case kInconclusive:
      return "undecided";
    case kNothingRan:
      return "nothing_ran";
    case kInterrupted:
    case kTimedOut:
      return "interrupted";
    default:
      return "failed";
  }
}

int64_t count(const EntryOutcome& e, Status status) {
  const auto found = e.cases.find(status);
  return found == e.cases.end() ? 0 : found->second;
}

int64_t num_cases(const EntryOutcome& e) {
  int64_t sum = 0;
  for (const auto& [status, number] : e.cases) sum += number;
  return sum;
}

int64_t num_reached(const EntryOutcome& e, Reach reach) {
  return std::count_if(e.thresholds.begin(), e.thresholds.end(),
                       [&](const ThresholdOutcome& t) { return t.reach == reach; });
}

/// The regime and baseline that come first: those of a loop.
std::string first_speedup(const Speedups& speedups) {
  if (speedups.empty()) return "";
  const auto& [key, s] = *speedups.begin();
  return fmt::format("{}x vs {} ({})", significant(s.geomean()), to_string(key.second),
                     to_string(key.first));
}

Speedups all_speedups(const SuiteOutcome& outcome) {
  Speedups all;
  for (const EntryOutcome& e : outcome.entries) {
    for (const auto& [key, s] : e.speedups) all[key].add(s);
  }
  return all;
}

std::string cell_of(int64_t number) {
  return number == 0 ? "" : std::to_string(number);
}

Json speedups_json(const Speedups& speedups) {
  Json array = Json::array();
  for (const auto& [key, s] : speedups) {
    array.push_back({{"regime", to_string(key.first)},
                     {"baseline", to_string(key.second)},
                     {"cases", s.cases},
                     {"geomean_ratio", s.geomean()},
                     {"min_ratio", s.least},
                     {"max_ratio", s.largest}});
  }
  return array;
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json entry_json(const EntryOutcome& e) {
  Json thresholds = Json::array(), cases = Json::object();
  for (size_t i = 0; i < e.thresholds.size(); ++i) {
    const ThresholdOutcome& t = e.thresholds[i];
    thresholds.push_back({{"threshold", to_string(e.entry.thresholds[i])},
                          {"status", to_string(t.reach)},
                          {"met", t.met},
                          {"missed", t.missed},
                          {"undecided", t.undecided},
                          {"worst", text_or_null(t.worst)}});
  }
  for (const auto& [status, number] : e.cases) cases[std::string(to_string(status))] = number;
  return {{"name", e.entry.name},
          {"op", e.entry.options.selection.ops},
          {"status", word_of(e)},
          {"exit_code", e.has_run ? Json(e.exit_code) : Json(nullptr)},
          {"message", text_or_null(e.message)},
          {"duration_s", e.duration_s},
          {"run_id", text_or_null(e.run_id)},
          {"result_file", text_or_null(e.file)},
          {"cases", cases},
          {"impossible", e.impossible},
          {"speedups", speedups_json(e.speedups)},
          {"thresholds", thresholds}};
}

std::string summary_of(const SuiteOutcome& outcome) {
  std::map<std::string_view, int64_t> words;
  int64_t cases = 0, met = 0, missed = 0, undecided = 0;
  for (const EntryOutcome& e : outcome.entries) {
    ++words[word_of(e)];
    cases += num_cases(e);
    met += num_reached(e, Reach::met);
    missed += num_reached(e, Reach::missed);
    undecided += num_reached(e, Reach::undecided);
  }
  std::string text = fmt::format("suite {}: {}:", outcome.name,
                                 counted(outcome.entries.size(), "entry", "entries"));
  for (const auto& [word, number] : words) text += fmt::format(" {} {},", number, word);
  text += " " + counted(cases, "case");
  if (met + missed + undecided > 0)
    text += fmt::format("; thresholds: {} met, {} missed, {} undecided", met, missed, undecided);
  for (const auto& [key, s] : all_speedups(outcome)) {
    text += fmt::format("; {} vs {}: geomean {}x of {}", to_string(key.first),
                        to_string(key.second), significant(s.geomean()), counted(s.cases, "case"));
  }
  return text + fmt::format("; {:.1f} s; exit code {}\n", outcome.duration_s, outcome.exit_code());
}

}  // namespace

std::string suite_text(const SuiteOutcome& outcome, int width, bool has_color) {
  Table table({{"entry", false, Column::kNeverDropped, 24},
               {"cases", true, 3},
               {"ok", true, 4},
               {"failed", true, Column::kNeverDropped},
               {"wrong", true, Column::kNeverDropped},
               {"skipped", true, 2},
               {"thresholds", true, 6},
               {"speedup", true, 5},
               {"time", true, 1},
               {"outcome", false, Column::kNeverDropped, 40}});
  std::string notes;
  for (const EntryOutcome& e : outcome.entries) {
    const int64_t failed =
        count(e, Status::failed) + count(e, Status::oom) + count(e, Status::timeout);
    const int64_t wrong = count(e, Status::verify_failed) + count(e, Status::implausible);
    const std::string thresholds =
        e.thresholds.empty()
            ? ""
            : fmt::format("{}/{}", num_reached(e, Reach::met), e.thresholds.size());
    table.add({{e.entry.name},
               {cell_of(num_cases(e))},
               {cell_of(count(e, Status::ok))},
               {cell_of(failed), Tone::bad},
               {cell_of(wrong), Tone::bad},
               {cell_of(count(e, Status::skipped))},
               {thresholds},
               {first_speedup(e.speedups)},
               {fmt::format("{:.1f} s", e.duration_s)},
               {std::string(word_of(e)), e.exit_code == kSuccess ? Tone::plain : Tone::bad}});
    if (!e.message.empty()) notes += fmt::format("{}: {}\n", e.entry.name, printable(e.message));
    for (size_t i = 0; i < e.thresholds.size(); ++i) {
      const ThresholdOutcome& t = e.thresholds[i];
      if (t.reach == Reach::met) continue;
      notes += fmt::format("{} {}: {}: {}\n", t.reach == Reach::missed ? "MISSED" : "undecided",
                           e.entry.name, to_string(e.entry.thresholds[i]), t.worst);
    }
  }
  return table.render(width, has_color) + "\n" + wrap(notes + summary_of(outcome), width);
}

std::string suite_json(const SuiteOutcome& outcome) {
  Json entries = Json::array(), cases = Json::object(), reached = Json::object();
  std::map<Status, int64_t> statuses;
  std::map<Reach, int64_t> reaches{{Reach::met, 0}, {Reach::missed, 0}, {Reach::undecided, 0}};
  int64_t ok = 0;
  for (const EntryOutcome& e : outcome.entries) {
    entries.push_back(entry_json(e));
    ok += e.has_run && e.exit_code == kSuccess ? 1 : 0;
    for (const auto& [status, number] : e.cases) statuses[status] += number;
    for (const ThresholdOutcome& t : e.thresholds) ++reaches[t.reach];
  }
  for (const auto& [status, number] : statuses) cases[std::string(to_string(status))] = number;
  for (const auto& [reach, number] : reaches) reached[std::string(to_string(reach))] = number;
  const Json document = {{"schema", {{"name", "wbench.suite_result"}, {"version", "1.0.0"}}},
                         {"tool", {{"version", version()}}},
                         {"suite", {{"name", outcome.name}, {"source", outcome.source}}},
                         {"started", outcome.started},
                         {"duration_s", outcome.duration_s},
                         {"complete", outcome.complete},
                         {"exit_code", outcome.exit_code()},
                         {"entries", entries},
                         {"totals",
                          {{"entries", outcome.entries.size()},
                           {"entries_ok", ok},
                           {"cases", cases},
                           {"thresholds", reached},
                           {"speedups", speedups_json(all_speedups(outcome))}}}};
  return dumped(document);
}

}  // namespace wide::bench
