// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/compare/notes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "host/core/text.hpp"
#include "wide/error.hpp"

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

/// `sentence` with what `text_of` returns for the runs of either side; empty if that is the same.
template <class TextOf>
std::string difference_note(std::span<const RunResult> base, std::span<const RunResult> candidate,
                            const TextOf& text_of, std::string_view sentence) {
  const std::string before = texts_of(base, text_of), after = texts_of(candidate, text_of);
  return before == after ? "" : fmt::format(fmt::runtime(sentence), before, after);
}

std::string fill_text(const RunResult& run) {
  return run.config.init.dist;
}
std::string host_text(const RunResult& run) {
  return run.hostname.empty() ? "an unknown host" : run.hostname;
}
std::string checks_text(const RunResult& run) {
  return run.config.is_adversarial ? "hostile operands, too" : "ordinary operands";
}

/// Of the build types, compilers and flags only what differs.
std::vector<std::string> build_notes(std::span<const RunResult> base,
                                     std::span<const RunResult> candidate) {
  const std::pair<const char*, std::string RunResult::*> parts[] = {
      {"build type", &RunResult::build_type},
      {"compiler", &RunResult::compiler},
      {"flags", &RunResult::flags},
      {"CUDA toolkit", &RunResult::cuda_toolkit},
      {"CUDA flags", &RunResult::cuda_flags}};
  std::vector<std::string> notes;
  for (const auto& [name, part] : parts) {
    const auto text_of = [part = part](const RunResult& run) {
      return (run.*part).empty() ? std::string("unknown") : run.*part;
    };
    const std::string before = texts_of(base, text_of), after = texts_of(candidate, text_of);
    if (before != after)
      notes.push_back(fmt::format("{} of base: {}; of candidate: {}; times change with them", name,
                                  before, after));
  }
  return notes;
}

/// Ops that the sides have in other versions: their cases are NEW and MISSING.
std::vector<std::string> versions_notes(std::span<const RunResult> base,
                                        std::span<const RunResult> candidate) {
  using Versions = std::map<std::string, std::set<int64_t>>;
  const auto versions_of = [](std::span<const RunResult> runs) {
    Versions versions;
    for (const RunResult& run : runs)
      for (const CaseResult& c : run.cases) versions[c.point.op()].insert(c.op_version);
    return versions;
  };
  const Versions before = versions_of(base), after = versions_of(candidate);
  std::vector<std::string> notes;
  for (const auto& [op, versions] : before) {
    const auto found = after.find(op);
    if (found == after.end() || found->second == versions) continue;
    notes.push_back(fmt::format(
        "{} is of version {} in base, {} in candidate: cases of other versions are other cases", op,
        fmt::join(versions, " and "), fmt::join(found->second, " and ")));
  }
  return notes;
}

std::string incomplete_note(const char* side, std::span<const RunResult> runs) {
  const auto count =
      std::count_if(runs.begin(), runs.end(), [](const RunResult& run) { return !run.complete; });
  if (count == 0) return "";
  return fmt::format("{} of {}'s {} ended before the last case", count, side,
                     counted(runs.size(), "run"));
}

std::string unchecked_note(const Comparison& c) {
  const auto is_unchecked = [](const ComparedCell& cell) { return cell.candidate.is_unchecked; };
  const auto first = std::find_if(c.cells.begin(), c.cells.end(), is_unchecked);
  if (first == c.cells.end()) return "";
  return fmt::format(
      "candidate's outputs are unchecked in {} of {}, the first: {}: what is wrong may well be "
      "fast",
      std::count_if(c.cells.begin(), c.cells.end(), is_unchecked), counted(c.cells.size(), "cell"),
      c.label(*first));
}

/// For the first cell that is INVALID for `reason`: `sentence` with `texts` of either side, how
/// many cells are, and that one.
std::string invalid_note(const Comparison& c, std::string_view reason,
                         std::vector<std::string> ComparedCell::Runs::*texts,
                         std::string_view sentence) {
  const auto is_so = [&](const ComparedCell& cell) { return cell.judgement.reason == reason; };
  const auto first = std::find_if(c.cells.begin(), c.cells.end(), is_so);
  if (first == c.cells.end()) return "";
  const auto of = [&](const ComparedCell::Runs& runs) {
    return fmt::format("{}", fmt::join(runs.*texts, " and "));
  };
  return fmt::format(
      fmt::runtime(sentence), of(first->base), of(first->candidate),
      fmt::format("{} of {}, the first: {}", std::count_if(c.cells.begin(), c.cells.end(), is_so),
                  counted(c.cells.size(), "cell"), c.label(*first)));
}

}  // namespace

std::vector<std::string> notes_of(const Comparison& c, std::span<const RunResult> base,
                                  std::span<const RunResult> candidate) {
  std::vector<std::string> notes = {
      units_note(c),
      difference_note(base, candidate, host_text, "base ran on {}, candidate on {}"),
      difference_note(
          base, candidate, fill_text,
          "base's operands are {}, candidate's {}: values change power, and times with it"),
      difference_note(base, candidate, lock_text,
                      "base's clocks are {}, candidate's {}: times change with them"),
      difference_note(base, candidate, checks_text, "base was checked with {}, candidate with {}"),
      invalid_note(c, kMeasuredOtherwise, &ComparedCell::Runs::methods,
                   "cold calls are cold by {} in base, by {} in candidate ({}): by another method "
                   "times differ, whatever is measured"),
      invalid_note(c, kOtherWork, &ComparedCell::Runs::works,
                   "a call does {} in base, {} in candidate ({}): of other work times differ"),
      unchecked_note(c),
      incomplete_note("base", base),
      incomplete_note("candidate", candidate)};
  for (const auto& more : {build_notes(base, candidate), versions_notes(base, candidate)})
    notes.insert(notes.end(), more.begin(), more.end());
  std::erase(notes, "");
  return notes;
}

std::string shared_runs_note(std::span<const RunResult> base,
                             std::span<const RunResult> candidate) {
  const auto ids_of = [](std::span<const RunResult> runs) {
    std::set<std::string> ids;
    for (const RunResult& run : runs) ids.insert(run.id);
    return ids;
  };
  const std::set<std::string> before = ids_of(base), after = ids_of(candidate);
  if (before == after && !before.empty() && !before.contains("")) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("compare: base and candidate are the same {}, {}, expected others: what "
                    "is compared with itself is never slower",
                    before.size() == 1 ? "run" : "runs", fmt::join(before, ", ")));
  }
  const std::set<std::string> shared = shared_processes(base, candidate);
  if (shared.empty()) return "";
  return fmt::format("{} measured runs of base and of candidate: these differ by less than others",
                     counted(shared.size(), "process", "processes"));
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
