// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/compare/notes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "host/core/text.hpp"

namespace wide::bench {

namespace {

/// The texts that `text_of` returns for the runs, each once.
template <class TextOf>
std::string texts_of(std::span<const RunResult> runs, const TextOf& text_of) {
  std::set<std::string> texts;
  for (const RunResult& run : runs) texts.insert(text_of(run));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string lock_text(const RunResult& run) {
  if (!run.locked_clocks) return "not locked";
  const LockedClocks& locked = *run.locked_clocks;
  return locked.sm_mhz ? fmt::format("locked at {:g} MHz", *locked.sm_mhz)
                       : fmt::format("locked at {}", locked.asked);
}

std::string units_note(const Comparison& c) {
  if (!c.has_other_units()) return "";
  return fmt::format("base ran on {}, candidate on {}, of the same model",
                     fmt::join(c.base_units, ", "), fmt::join(c.candidate_units, ", "));
}

std::string fills_note(std::span<const RunResult> base, std::span<const RunResult> candidate) {
  const auto fill_of = [](const RunResult& run) { return run.config.init.dist; };
  const std::string before = texts_of(base, fill_of), after = texts_of(candidate, fill_of);
  if (before == after) return "";
  return fmt::format(
      "base's operands are {}, candidate's {}: values change power, and times with it", before,
      after);
}

std::string locks_note(std::span<const RunResult> base, std::span<const RunResult> candidate) {
  const std::string before = texts_of(base, lock_text), after = texts_of(candidate, lock_text);
  if (before == after) return "";
  return fmt::format("base's clocks are {}, candidate's {}: times change with them", before, after);
}

/// For the first cell that is INVALID for that reason.
std::string methods_note(const Comparison& c) {
  const auto is_otherwise = [](const ComparedCell& cell) {
    return cell.judgement.reason == kMeasuredOtherwise;
  };
  const auto first = std::find_if(c.cells.begin(), c.cells.end(), is_otherwise);
  if (first == c.cells.end()) return "";
  return fmt::format(
      "cold calls are cold by {} in base, by {} in candidate ({} of {}, the first: {}): by "
      "another method times differ, whatever is measured",
      fmt::join(first->base.methods, " and "), fmt::join(first->candidate.methods, " and "),
      std::count_if(c.cells.begin(), c.cells.end(), is_otherwise), counted(c.cells.size(), "cell"),
      c.label(*first));
}

}  // namespace

std::vector<std::string> notes_of(const Comparison& c, std::span<const RunResult> base,
                                  std::span<const RunResult> candidate) {
  std::vector<std::string> notes = {units_note(c), fills_note(base, candidate),
                                    locks_note(base, candidate), methods_note(c)};
  std::erase(notes, "");
  return notes;
}

std::string unjudged_note(const Comparison& c) {
  const bool is_judged =
      c.count(Verdict::same) + c.count(Verdict::faster) + c.count(Verdict::slower) > 0;
  if (is_judged || c.count(Verdict::ambiguous) == 0) return "";
  const bool has_runs =
      std::min(c.base_processes, c.candidate_processes) >= static_cast<int64_t>(kMinRuns);
  const std::string why =
      has_runs ? "more runs narrow the intervals (run --repeat N, or --rerun --repeat N)"
               : fmt::format(
                     "runs of base {}, of candidate {}, where it takes {} (run --repeat {}, "
                     "or --rerun)",
                     c.base_processes, c.candidate_processes, kMinRuns, kMinRuns);
  return "no cell could be judged: " + why + "; that is exit code 5 with --fail-on inconclusive";
}

}  // namespace wide::bench
