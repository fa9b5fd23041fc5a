// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The meaning of --fail-on, and comparisons for people: text and Markdown.
#include "bench/compare/verdicts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "bench/process/exit_code.hpp"
#include "bench/report/report.hpp"
#include "bench/report/table.hpp"
#include "host/core/text.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

constexpr Verdict kVerdicts[] = {Verdict::slower,    Verdict::faster, Verdict::same,
                                 Verdict::ambiguous, Verdict::added,  Verdict::missing,
                                 Verdict::invalid};

bool is_judged(const ComparedCell& cell) {
  return cell.judgement.verdict <= Verdict::ambiguous;
}

/// "SLOWER, mild", "AMBIGUOUS: few_runs": with a reason if the verdict is not about a change.
std::string verdict_text(const ComparedCell& cell) {
  const Judgement& j = cell.judgement;
  std::string text(to_string(j.verdict));
  if (j.verdict == Verdict::slower && j.severity != Severity::none)
    text += fmt::format(", {}", to_string(j.severity));
  if (j.verdict == Verdict::ambiguous || j.verdict == Verdict::invalid)
    text += fmt::format(": {}", j.reason);
  if (cell.is_unreliable()) text += ", unreliable";
  return cell.candidate.is_unchecked ? text + ", unchecked" : text;
}

Tone tone_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::slower:
    case Verdict::invalid:
    case Verdict::missing:
      return Tone::bad;
    case Verdict::faster:
      return Tone::good;
    case Verdict::ambiguous:
      return Tone::dim;
    case Verdict::same:
    case Verdict::added:
      return Tone::plain;
  }
  return Tone::plain;
}

/// "  unreliable: base drift; candidate wide_interval", a line; empty if none are.
std::string doubts_text(const ComparedCell& cell) {
  std::string text;
  const auto add = [&](const char* side, const std::vector<std::string>& doubts) {
    if (doubts.empty()) return;
    text += fmt::format("{}{} {}", text.empty() ? "  unreliable: " : "; ", side,
                        printable(fmt::format("{}", fmt::join(doubts, " "))));
  };
  add("base", cell.base.doubts);
  add("candidate", cell.candidate.doubts);
  return text.empty() ? text : text + "\n";
}

/// So far out nobody knows a distribution, and a p of 0 there is not.
std::string p_text(double p) {
  return p < 1e-6 ? "<1e-06" : fmt::format("{:.2g}", p);
}

/// The cells of a row of text, the same for all human-readable formats.
std::vector<std::string> columns_of(const Comparison& c, const ComparedCell& cell) {
  const auto value = [&](const std::optional<double>& v) {
    return v ? format_metric(*c.options.metric, *v) : std::string();
  };
  return {c.label(cell),
          cell.strategy,
          std::string(to_string(cell.regime)),
          value(cell.base.geometric_mean),
          value(cell.candidate.geometric_mean),
          is_judged(cell) ? change_text(cell.judgement) : "",
          cell.p && is_judged(cell) ? p_text(*cell.p) : "",
          verdict_text(cell)};
}

std::vector<const ComparedCell*> shown_cells(const Comparison& c, const CompareView& view) {
  std::vector<const ComparedCell*> cells;
  for (const ComparedCell& cell : c.cells) {
    if (view.shows_all || cell.judgement.verdict != Verdict::same) cells.push_back(&cell);
  }
  return cells;
}

/// "noise floor 2.3%", and if some cells have one from the history, how many have not.
std::string floor_text(const Comparison& c) {
  const auto others = std::count_if(c.cells.begin(), c.cells.end(), [](const ComparedCell& cell) {
    return !cell.has_history_floor;
  });
  const std::string by_runs = !c.noise_floor_pct ? "unknown below three runs a side"
                              : c.options.noise_floor_pct == 0.0
                                  ? "none"
                                  : fmt::format("{:.3g}%", *c.noise_floor_pct);
  std::string text = "noise floor " + by_runs;
  if (others < std::ssize(c.cells)) {
    text = "noise floor by the history";
    if (others > 0)
      text += fmt::format("; of {} of {}, which it lacks: {}", others,
                          counted(c.cells.size(), "cell"), by_runs);
  } else if (c.options.history && c.noise_floor_pct) {
    text += " by the runs, of no cell by the history";
  }
  if (c.options.min_effect_pct > 0)
    text += fmt::format(", least effect {:.3g}%", c.options.min_effect_pct);
  return text;
}

/// "5 runs", and the number of processes, which is what counts, if there are fewer.
std::string runs_text(size_t runs, int64_t processes) {
  const std::string text = counted(runs, "run");
  if (static_cast<int64_t>(runs) == processes) return text;
  return text + " in " + counted(processes, "process", "processes");
}

std::string heading(const Comparison& c) {
  return fmt::format("{}, {} is better; base: {} of {}; candidate: {} of {}",
                     c.options.metric->name, to_string(c.options.metric->better),
                     runs_text(c.base_ids.size(), c.base_processes), c.base_device,
                     runs_text(c.candidate_ids.size(), c.candidate_processes), c.candidate_device);
}

}  // namespace

FailOn parse_fail_on(const std::string& names) {
  FailOn fail_on{false, false, false, false, false, false};
  const std::pair<std::string_view, bool FailOn::*> known[] = {
      {"regression", &FailOn::regression}, {"missing", &FailOn::missing},
      {"invalid", &FailOn::invalid},       {"inconclusive", &FailOn::inconclusive},
      {"unreliable", &FailOn::unreliable}, {"device-mismatch", &FailOn::device_mismatch}};
  if (names == "none") return fail_on;
  std::istringstream list(names + ",");
  for (std::string name; std::getline(list, name, ',');) {
    const auto* found = std::find_if(std::begin(known), std::end(known),
                                     [&](const auto& entry) { return entry.first == name; });
    if (name == "none") {
      throw Error(ErrorCode::invalid_argument, "--fail-on: \"" + names +
                                                   "\": none stands alone, expected none or "
                                                   "outcomes");
    }
    if (name == "all") {
      for (const auto& entry : known) fail_on.*entry.second = true;
      continue;
    }
    if (found == std::end(known)) {
      std::vector<std::string_view> all{"none", "all"};
      for (const auto& entry : known) all.push_back(entry.first);
      throw Error(ErrorCode::invalid_argument,
                  "--fail-on: " + catalog::unknown_name_message("outcome", name, all));
    }
    fail_on.*found->second = true;
  }
  return fail_on;
}

bool is_tripped(const ComparedCell& cell, const FailOn& fail_on) {
  if (fail_on.unreliable && cell.is_unreliable()) return true;
  switch (cell.judgement.verdict) {
    case Verdict::slower:
      return fail_on.regression;
    case Verdict::missing:
      return fail_on.missing;
    case Verdict::invalid:
      return fail_on.invalid;
    case Verdict::ambiguous:
      return fail_on.inconclusive;
    case Verdict::same:
    case Verdict::faster:
    case Verdict::added:
      return false;
  }
  return false;
}

int exit_code_of(const Comparison& c, const FailOn& fail_on) {
  bool is_inconclusive = false, has_common = false;
  bool has_failed = fail_on.device_mismatch && c.has_device_mismatch();
  for (const ComparedCell& cell : c.cells) {
    const Verdict v = cell.judgement.verdict;
    has_common = has_common || (v != Verdict::missing && v != Verdict::added);
    FailOn but_for_doubts = fail_on;
    but_for_doubts.unreliable = false;
    const bool is_verdict = is_tripped(cell, but_for_doubts);
    has_failed = has_failed || (is_verdict && v != Verdict::ambiguous);
    is_inconclusive = is_inconclusive || is_tripped(cell, fail_on);
  }
  if (has_failed) return kRegression;
  if (is_inconclusive) return kInconclusive;
  return has_common ? kSuccess : kNothingRan;
}

std::string format_metric(const Metric& metric, double value) {
  const std::string_view hint = metric.hint;
  if (hint == "duration") return format_time(value);
  if (hint == "flop_rate") return format_rate(value, "FLOP/s");
  if (hint == "byte_rate") return format_rate(value, "B/s");
  if (hint == "item_rate") return format_rate(value, "items/s");
  if (hint == "percent") return fmt::format("{:.1f} %", value);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("metric {}: its hint is {}, expected duration, flop_rate, byte_rate, "
                          "item_rate or percent",
                          metric.name, hint));
}

std::string change_text(const Judgement& j) {
  std::string text = fmt::format("{:+.1f}%", j.change_pct);
  if (j.ci_lo_pct && j.ci_hi_pct)
    text += fmt::format(" [{:+.1f}, {:+.1f}]", *j.ci_lo_pct, *j.ci_hi_pct);
  return text;
}

std::string summary_line(const Comparison& c) {
  std::string text = counted(c.cells.size(), "cell");
  const char* separator = ": ";
  for (const Verdict verdict : kVerdicts) {
    const int64_t count = c.count(verdict);
    if (count == 0) continue;
    text += fmt::format("{}{} {}", separator, count, to_string(verdict));
    separator = ", ";
  }
  if (const int64_t count = c.count_unreliable(); count > 0)
    text += fmt::format("; {} unreliable", count);
  if (c.geomean_change_pct) text += fmt::format("; geomean change {:+.2f}%", *c.geomean_change_pct);
  return text + fmt::format("; threshold {:.3g}%, {}", c.options.threshold_pct, floor_text(c));
}

std::string compare_text(const Comparison& c, const CompareView& view) {
  // What a change is of tells more than what all rows share.
  const std::vector<const ComparedCell*> cells = shown_cells(c, view);
  const bool has_regimes = std::any_of(cells.begin(), cells.end(), [&](const ComparedCell* cell) {
    return cell->regime != cells.front()->regime;
  });
  Table table({{"case", false, Column::kNeverDropped, 40},
               {"strategy", false, Column::kNeverDropped, 0},
               {"regime", false, has_regimes ? 3 : 0, 0},
               {"base", true, Column::kNeverDropped, 0},
               {"candidate", true, 6, 0},
               {"change", false, Column::kNeverDropped, 0},
               {"p", true, 1, 0},
               {"verdict", false, Column::kNeverDropped, 0}});
  std::string commands;
  for (const ComparedCell* cell : cells) {
    std::vector<Cell> row;
    for (std::string& text : columns_of(c, *cell)) row.push_back({printable(text)});
    row.back().tone = tone_of(cell->judgement.verdict);
    table.add(std::move(row));
    if (view.explains)
      commands += printable(cell->reproduce) + " --strategy " + printable(cell->strategy) + "\n" +
                  doubts_text(*cell);
  }
  std::string text = wrap(printable(heading(c)) + "\n", view.width);
  if (!table.is_empty()) text += table.render(view.width, view.has_color) + "\n";
  return text + wrap(summary_line(c) + "\n" + commands, view.width);
}

std::string compare_markdown(const Comparison& c, const CompareView& view) {
  std::string text = escaped_markdown(heading(c)) + "\n\n";
  for (const std::string& note : c.notes) text += "- " + escaped_markdown(note) + "\n";
  if (!c.notes.empty()) text += "\n";
  text +=
      "| case | strategy | regime | base | candidate | change | p | verdict |\n"
      "|---|---|---|---:|---:|---:|---:|---|\n";
  for (const ComparedCell* cell : shown_cells(c, view)) {
    for (const std::string& column : columns_of(c, *cell))
      text += "| " + escaped_markdown(column) + " ";
    text += "|\n";
  }
  return text + "\n" + summary_line(c) + "\n";
}

}  // namespace wide::bench
