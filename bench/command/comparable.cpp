// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/command/comparable.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "bench/compare/compare.hpp"
#include "bench/document/case_id.hpp"
#include "bench/run/choice.hpp"
#include "host/core/text.hpp"

namespace wide::bench {

namespace {

/// "3 cases such as linear n=4 batch=16 d=256"
std::string cases_text(size_t count, const std::string& example) {
  return count == 0 ? "no case" : counted(count, "case,", "cases such as") + " " + example;
}

using Cell = std::pair<std::string, std::string>;  ///< strategy and regime

std::string listed(const std::set<Cell>& cells) {
  std::vector<std::string> texts;
  for (const auto& [strategy, regime] : cells)
    texts.push_back(fmt::format("{} ({})", strategy, regime));
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

std::string other_device_reason(const RunDevice& device, bool one_of_several,
                                std::span<const RunResult> base) {
  RunResult run;
  run.devices = {device};
  const std::string ours = devices_of(std::span(&run, 1)), theirs = devices_of(base);
  const bool is_among = one_of_several && std::any_of(base.begin(), base.end(), [&](const auto& r) {
                          return devices_of(std::span(&r, 1)) == ours;
                        });
  if (ours == theirs || is_among) return "";
  return fmt::format("base ran on {}, this run is on {}", theirs, ours);
}

std::string incomparable_reason(const RunPlan& plan, std::span<const RunResult> base) {
  std::map<std::string, const catalog::PrimitiveSpec*> planned;  // by case
  std::string first;
  for (const auto& [spec, cases] : plan.work) {
    for (const catalog::Case& point : cases) {
      planned.emplace(case_id(*spec, point), spec);
      if (first.empty()) first = point.op() + " " + point.to_string();
    }
  }
  std::set<std::string> known;
  std::string known_first;
  std::set<Cell> theirs, ours;  // of common cases
  for (const RunResult& run : base) {
    for (const CaseResult& c : run.cases) {
      if (known_first.empty()) known_first = c.point.op() + " " + c.point.to_string();
      known.insert(c.case_id);
      const auto common = planned.find(c.case_id);
      if (common == planned.end()) continue;
      for (const RunnerResult& r : c.strategies) {
        // What failed before it was timed has no regime; that it did is for the comparison to say.
        const bool has_failed = r.status != Status::ok && r.status != Status::skipped;
        if (has_failed && r.measurements.empty()) return "";
        for (const Measurement& m : r.measurements)
          theirs.emplace(r.name, std::string(to_string(m.regime)));
      }
      for (const std::string& strategy : strategies_of(plan, *common->second)) {
        for (const Regime regime : regimes_of(plan))
          ours.emplace(strategy, std::string(to_string(regime)));
      }
    }
  }
  if (ours.empty()) {
    return fmt::format("no case is in both: this run has {}; the base has {}",
                       cases_text(planned.size(), first), cases_text(known.size(), known_first));
  }
  const bool has_common = std::any_of(theirs.begin(), theirs.end(),
                                      [&](const Cell& cell) { return ours.contains(cell); });
  if (has_common) return "";
  return fmt::format("nothing of a case is in both: this run measures {}; the base has {}",
                     listed(ours), theirs.empty() ? "nothing measured" : listed(theirs));
}

}  // namespace wide::bench
