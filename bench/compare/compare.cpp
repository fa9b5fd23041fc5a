// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/compare/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "bench/statistics/moments.hpp"
#include "bench/statistics/multiple.hpp"
#include "bench/statistics/normality.hpp"
#include "bench/statistics/order.hpp"

namespace wide::bench {

namespace {

constexpr double kUsual = 0.05;  // level of the tests that choose a test

/// One side of a cell, over all runs.
struct Seen {
  Side side;
  bool is_invalid = false;
};

struct Pair {
  ComparedCell cell;
  Seen base, candidate;
};

/// Cells by what names them, and the order in which they were met.
class Pairs {
 public:
  void add(std::span<const RunResult> runs, Seen Pair::*which, const Metric& metric) {
    for (const RunResult& run : runs) {
      for (const CaseResult& c : run.cases) {
        for (const RunnerResult& strategy : c.strategies) add_runner(c, strategy, which, metric);
      }
    }
  }

  /// What failed before it was timed has no regime: it has failed in all that are known of it.
  void mark_failures(std::span<const RunResult> runs, Seen Pair::*which) {
    std::set<std::pair<std::string, std::string>> failed;
    for (const RunResult& run : runs) {
      for (const CaseResult& c : run.cases) {
        for (const RunnerResult& r : c.strategies) {
          if (r.status != Status::ok && r.status != Status::skipped)
            failed.emplace(c.case_id, r.name);
        }
      }
    }
    for (Pair& pair : pairs) {
      if (failed.contains({pair.cell.case_id, pair.cell.strategy})) (pair.*which).is_invalid = true;
    }
  }
  std::vector<Pair> pairs;

 private:
  void add_runner(const CaseResult& c, const RunnerResult& r, Seen Pair::*which,
                  const Metric& metric) {
    if (r.status == Status::skipped) return;
    for (const Measurement& m : r.measurements) {
      Seen& seen = find(c, r, m.regime).*which;
      const auto value = metric.value(m);
      const bool is_sound = r.status == Status::ok && !m.below_resolution && value &&
                            std::isfinite(*value) && *value > 0 && m.stats.min_ns > 0;
      if (!is_sound) {
        seen.is_invalid = true;
        continue;
      }
      const auto at = [&](double time_ns) {
        const double ratio = time_ns / m.stats.median_ns;
        return metric.better == Better::lower ? *value * ratio : *value / ratio;
      };
      // What the host does takes no cycles of the device.
      if (m.clocks && m.regime != Regime::cpu && m.clocks->sm_mhz_median > 0)
        seen.side.sm_mhz.push_back(m.clocks->sm_mhz_median);
      seen.side.runs.push_back(*value);
      seen.side.best.push_back(at(m.stats.min_ns));
      seen.side.q3.push_back(at(m.stats.q3_ns));
    }
  }

  Pair& find(const CaseResult& c, const RunnerResult& r, Regime regime) {
    const auto key = std::make_tuple(c.case_id, r.name, regime);
    const auto [place, is_new] = places_.emplace(key, pairs.size());
    if (is_new) {
      Pair pair;
      pair.cell.case_id = c.case_id;
      pair.cell.op = c.point.op();
      pair.cell.point = c.point.to_string();
      pair.cell.strategy = r.name;
      pair.cell.reproduce = c.reproduce;
      pair.cell.regime = regime;
      pairs.push_back(std::move(pair));
    }
    return pairs[place->second];
  }

  std::map<std::tuple<std::string, std::string, Regime>, size_t> places_;
};

std::optional<CellTests> run_tests(const Side& base, const Side& candidate) {
  if (std::min(base.runs.size(), candidate.runs.size()) < kMinRuns) return std::nullopt;
  std::vector<double> before, after;
  for (const double value : base.runs) before.push_back(std::log(value));
  for (const double value : candidate.runs) after.push_back(std::log(value));
  CellTests tests;
  const std::vector<std::vector<double>> groups{after, before};
  tests.levene = levene_test(groups);
  tests.cohens_d = cohens_d(after, before);
  tests.hedges_g = hedges_g(after, before);
  const RankTest ranks = *mann_whitney(after, before);
  tests.rank_biserial = ranks.rank_biserial;
  const auto is_normal = [](std::span<const double> values) {
    const auto test = shapiro_wilk(values);
    return test && test->p >= kUsual;
  };
  const bool are_normal = is_normal(before) && is_normal(after);
  const bool is_even = tests.levene && tests.levene->p >= kUsual;
  const auto t = !are_normal ? std::nullopt
                 : is_even   ? student_test(after, before)
                             : welch_test(after, before);
  tests.chosen = !t ? "mwu" : is_even ? "student" : "welch";
  tests.statistic = t ? t->statistic : ranks.statistic;
  tests.p = t ? t->p : ranks.p;
  return tests;
}

void adjust(std::vector<ComparedCell>& cells, bool adjusts_p) {
  std::vector<double> p_values;
  for (const ComparedCell& cell : cells) {
    if (cell.tests) p_values.push_back(cell.tests->p);
  }
  const std::vector<double> adjusted = adjusts_p ? adjust_p_values(p_values) : p_values;
  auto next = adjusted.begin();
  for (ComparedCell& cell : cells) {
    if (cell.tests) cell.tests->p_adjusted = *next++;
  }
}

Judgement judge_pair(const Pair& pair, const GateOptions& options) {
  const auto is_absent = [](const Seen& seen) {
    return !seen.is_invalid && seen.side.runs.empty();
  };
  const auto verdict = [](Verdict v, std::string_view reason) {
    Judgement j;
    j.verdict = v;
    j.reason = reason;
    return j;
  };
  if (is_absent(pair.candidate)) return verdict(Verdict::missing, "not_in_candidate");
  if (pair.candidate.is_invalid) return verdict(Verdict::invalid, "candidate_invalid");
  if (is_absent(pair.base)) return verdict(Verdict::added, "not_in_base");
  if (pair.base.is_invalid) return verdict(Verdict::invalid, "base_invalid");
  return judge(pair.base.side, pair.candidate.side, options);
}

std::vector<std::string> ids_of(std::span<const RunResult> runs) {
  std::vector<std::string> ids;
  for (const RunResult& run : runs) ids.push_back(run.id);
  return ids;
}

}  // namespace

int64_t Comparison::count(Verdict verdict) const {
  return std::count_if(cells.begin(), cells.end(),
                       [&](const ComparedCell& cell) { return cell.judgement.verdict == verdict; });
}

std::string devices_of(std::span<const RunResult> runs) {
  std::set<std::string> names;
  for (const RunResult& run : runs) {
    for (const DeviceInfo& d : run.devices) {
      const bool is_cuda = d.device.type == DeviceType::cuda;
      names.insert(is_cuda ? fmt::format("{}, sm_{}, {} SMs", d.name, d.compute_capability,
                                         d.num_multiprocessors)
                           : fmt::format("{}, {} threads", d.name, d.num_multiprocessors));
    }
  }
  return fmt::format("{}", fmt::join(names, "; "));
}

Comparison compare(std::span<const RunResult> base, std::span<const RunResult> candidate,
                   const CompareOptions& options) {
  Pairs all;
  all.add(base, &Pair::base, *options.metric);
  all.add(candidate, &Pair::candidate, *options.metric);
  all.mark_failures(base, &Pair::base);
  all.mark_failures(candidate, &Pair::candidate);
  std::vector<Side> before, after;
  for (const Pair& pair : all.pairs) {
    before.push_back(pair.base.side);
    after.push_back(pair.candidate.side);
  }
  Comparison comparison{options,
                        options.noise_floor_pct.value_or(noise_floor_pct(before, after)),
                        ids_of(base),
                        ids_of(candidate),
                        devices_of(base),
                        devices_of(candidate),
                        {},
                        std::nullopt};
  const GateOptions gate{options.metric->better, options.threshold_pct, comparison.noise_floor_pct};
  std::vector<double> changes;
  for (Pair& pair : all.pairs) {
    ComparedCell cell = std::move(pair.cell);
    const Side &ours = pair.base.side, &theirs = pair.candidate.side;
    cell.base_runs = static_cast<int64_t>(ours.runs.size());
    cell.candidate_runs = static_cast<int64_t>(theirs.runs.size());
    if (!ours.runs.empty()) cell.base = median(ours.runs);
    if (!theirs.runs.empty()) cell.candidate = median(theirs.runs);
    cell.judgement = judge_pair(pair, gate);
    if (cell.judgement.verdict <= Verdict::ambiguous) {
      changes.push_back(std::log1p(cell.judgement.change_pct / 100));
      cell.tests = run_tests(ours, theirs);
    }
    comparison.cells.push_back(std::move(cell));
  }
  adjust(comparison.cells, options.adjusts_p);
  if (!changes.empty()) comparison.geomean_change_pct = 100 * std::expm1(moments(changes).mean);
  return comparison;
}

}  // namespace wide::bench
