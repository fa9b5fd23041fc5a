// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/compare/compare.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "bench/compare/notes.hpp"
#include "bench/compare/pairs.hpp"
#include "bench/statistics/moments.hpp"
#include "bench/statistics/multiple.hpp"
#include "bench/statistics/order.hpp"
#include "host/core/text.hpp"

namespace wide::bench {

namespace {

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

bool has_few_runs(const PairedCell& pair) {
  return std::min(pair.base.side.runs.size(), pair.candidate.side.runs.size()) < kMinRuns;
}

/// `trusts_floor`: the noise floor is the user's word, of runs that are unreliable, too.
Judgement judge_pair(const PairedCell& pair, const GateOptions& options, bool trusts_floor) {
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
  if (pair.is_measured_otherwise()) return verdict(Verdict::invalid, kMeasuredOtherwise);
  if (pair.is_of_other_work()) return verdict(Verdict::invalid, kOtherWork);
  const Judgement judged = judge(pair.base.side, pair.candidate.side, options);
  const bool has_changed = judged.verdict == Verdict::slower || judged.verdict == Verdict::faster;
  const bool has_doubts = !pair.base.doubts.empty() || !pair.candidate.doubts.empty();
  if (!has_changed || !has_doubts || trusts_floor || !has_few_runs(pair)) return judged;
  // Few runs are judged by their samples' ranges, which are what is doubted.
  Judgement doubted = judged;
  doubted.verdict = Verdict::ambiguous;
  doubted.severity = Severity::none;
  doubted.reason = kDoubtedRanges;
  return doubted;
}

/// Noise floors of cells that have three runs or more in the history. Below kMinRuns a side, where
/// no interval and no p guard a verdict, a change must exceed all that runs differed by.
class HistoryFloors {
 public:
  explicit HistoryFloors(std::span<const HistorySeries> history) {
    for (const HistorySeries& s : history) {
      const auto noise = noise_band(s);
      const HistoryPoint& p = s.last;
      if (noise) floors_[{p.case_id, p.runner, p.regime, p.device}] = *noise;
    }
  }
  std::optional<double> of(const PairedCell& pair) const {
    const ComparedCell& cell = pair.cell;
    const auto found = floors_.find({cell.case_id, cell.strategy, pair.regime, pair.device});
    if (found == floors_.end()) return std::nullopt;
    const NoiseBand& noise = found->second;
    return has_few_runs(pair) ? noise.few_runs_floor_pct : noise.floor_pct;
  }

 private:
  std::map<std::tuple<std::string, std::string, std::string, std::string>, NoiseBand> floors_;
};

std::vector<double> logarithms_of(std::span<const double> runs) {
  std::vector<double> logarithms;
  for (const double value : runs) logarithms.push_back(std::log(value));
  return logarithms;
}

/// Student's interval, computed on the logarithms of the runs, in units of the metric.
std::optional<Interval> interval_of_runs(std::span<const double> runs) {
  if (runs.size() < kMinRuns) return std::nullopt;
  const auto interval = t_interval(logarithms_of(runs));
  if (!interval) return std::nullopt;
  return Interval{std::exp(interval->lo), std::exp(interval->hi)};
}

ComparedCell::Runs runs_of(const Seen& seen) {
  const Side& side = seen.side;
  ComparedCell::Runs runs;
  runs.doubts.assign(seen.doubts.begin(), seen.doubts.end());
  runs.methods.assign(seen.methods.begin(), seen.methods.end());
  runs.works.assign(seen.works.begin(), seen.works.end());
  runs.is_unchecked = seen.is_unchecked;
  runs.count = static_cast<int64_t>(side.runs.size());
  if (runs.count > 0) {
    runs.median = median(side.runs);
    runs.geometric_mean = std::exp(moments(logarithms_of(side.runs)).mean);
  }
  runs.ci = interval_of_runs(side.runs);
  return runs;
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

int64_t Comparison::count_unreliable() const {
  return std::count_if(cells.begin(), cells.end(),
                       [](const ComparedCell& cell) { return cell.is_unreliable(); });
}

std::vector<std::string> units_of(std::span<const RunResult> runs) {
  std::set<std::string> units;
  for (const RunResult& run : runs) {
    for (const RunDevice& d : run.devices) {
      if (!d.uuid.empty()) units.insert(d.uuid);
    }
  }
  return {units.begin(), units.end()};
}

std::string devices_of(std::span<const RunResult> runs) {
  std::set<std::string> names;
  for (const RunResult& run : runs) {
    for (const RunDevice& d : run.devices) {
      const bool is_cuda = d.device.type == DeviceType::cuda;
      names.insert(is_cuda ? fmt::format("{}, sm_{}, {} SMs", d.name, d.compute_capability,
                                         d.num_multiprocessors)
                           : d.name + ", " + counted(d.num_multiprocessors, "thread"));
    }
  }
  return fmt::format("{}", fmt::join(names, "; "));
}

bool Comparison::has_device_mismatch() const {
  return options.device_pairs.empty() && base_device != candidate_device;
}

bool Comparison::has_other_units() const {
  return base_device == candidate_device && !base_units.empty() && !candidate_units.empty() &&
         base_units != candidate_units;
}

std::string Comparison::label(const ComparedCell& cell) const {
  const std::string text = cell.op + " " + cell.point;
  if (options.device_pairs.empty()) return text;
  const DevicePair& pair = options.device_pairs[cell.device_pair];
  return text + " (" + pair.base + ":" + pair.candidate + ")";
}

Comparison compare(std::span<const RunResult> base, std::span<const RunResult> candidate,
                   const CompareOptions& options) {
  std::vector<PairedCell> pairs = pair_cells(base, candidate, options);
  std::vector<Side> ours, theirs;
  for (const PairedCell& pair : pairs) {
    // Cells that are not comparable must not affect the noise of those that are.
    const bool counts = !pair.is_measured_otherwise() && !pair.is_of_other_work();
    ours.push_back(counts ? pair.base.side : Side());
    theirs.push_back(counts ? pair.candidate.side : Side());
  }
  Comparison comparison{
      options,
      options.noise_floor_pct ? options.noise_floor_pct : noise_floor_pct(ours, theirs),
      ids_of(base),
      ids_of(candidate),
      devices_of(base),
      devices_of(candidate),
      count_processes(base),
      count_processes(candidate),
      units_of(base),
      units_of(candidate),
      {},
      {},
      std::nullopt};
  GateOptions gate{options.metric->better,
                   options.threshold_pct,
                   {},
                   options.min_effect_pct,
                   options.method == CompareMethod::bootstrap ? IntervalMethod::bootstrap
                                                              : IntervalMethod::welch,
                   {},
                   options.alpha};
  const std::vector<std::optional<double>> p = change_p_values(ours, theirs, options.adjusts_p);
  const HistoryFloors floors(options.history.value_or(std::vector<HistorySeries>()));
  std::vector<double> changes;
  for (size_t i = 0; i < pairs.size(); ++i) {
    PairedCell& pair = pairs[i];
    const auto floor = floors.of(pair);
    ComparedCell& cell = pair.cell;
    cell.has_history_floor = floor.has_value();
    cell.noise_floor_pct = gate.noise_floor_pct = floor ? floor : comparison.noise_floor_pct;
    cell.p = gate.p = p[i];
    cell.base = runs_of(pair.base);
    cell.candidate = runs_of(pair.candidate);
    cell.judgement = judge_pair(pair, gate, options.noise_floor_pct.has_value());
    if (cell.judgement.verdict <= Verdict::ambiguous) {
      changes.push_back(std::log1p(cell.judgement.change_pct / 100));
      cell.tests = run_tests(pair.base.side, pair.candidate.side, options.method);
    }
    comparison.cells.push_back(std::move(cell));
  }
  adjust(comparison.cells, options.adjusts_p);
  if (!changes.empty()) comparison.geomean_change_pct = 100 * std::expm1(moments(changes).mean);
  comparison.notes = notes_of(comparison, base, candidate);
  return comparison;
}

}  // namespace wide::bench
