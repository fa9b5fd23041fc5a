// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/compare/pairs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "wide/error.hpp"

namespace wide::bench {

namespace {

bool is_device(const RunDevice& info, const std::string& name) {
  constexpr std::string_view kUuid = "GPU-";
  constexpr size_t kShortestUuid = 8;  // "GPU-" and four digits
  if (name == info.name) return true;
  if (name.starts_with(kUuid) && name.size() >= kShortestUuid) return info.uuid.starts_with(name);
  return name ==
         (info.device.type == DeviceType::cpu ? "cpu" : std::to_string(info.device.ordinal));
}

/// Identifies the process of each run: runs of one process, and copies of one run, have the same
/// text.
std::vector<std::string> processes_of(std::span<const RunResult> runs) {
  std::vector<std::string> processes;
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunResult& run = runs[i];
    if (!run.config.isolate && !run.process.empty()) {
      processes.push_back(run.process);
    } else if (!run.config.isolate && run.config.repeat_count > 1) {
      // Before 1.11 all runs of a command were in one process, which had no name.
      processes.push_back(fmt::format("{} {}", run.hostname, fmt::join(run.argv, " ")));
    } else {
      processes.push_back(run.id.empty() ? fmt::format("run {}", i) : "run " + run.id);
    }
  }
  return processes;
}

double geometric_mean(const std::vector<double>& values) {
  if (values.size() == 1) return values.front();
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

/// Nine digits: other compilers' last ones are no other work.
std::string work_text(const catalog::Cost& cost) {
  return fmt::format("{:.9g} FLOP, {:.9g} B", cost.flops, cost.bytes());
}

/// Runs of one process become one value, in the place of the first.
void merge_processes(Seen& seen) {
  std::vector<std::string> names;
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> of;
  const bool has_clocks = seen.side.sm_mhz.size() == seen.side.runs.size();
  for (size_t i = 0; i < seen.side.runs.size(); ++i) {
    const std::string& process = seen.processes[i];
    if (!of.contains(process)) names.push_back(process);
    of[process].first.push_back(seen.side.runs[i]);
    if (has_clocks) of[process].second.push_back(seen.side.sm_mhz[i]);
  }
  if (names.size() == seen.side.runs.size()) return;
  seen.side.runs.clear();
  seen.side.sm_mhz.clear();
  for (const std::string& name : names) {
    seen.side.runs.push_back(geometric_mean(of[name].first));
    if (has_clocks) seen.side.sm_mhz.push_back(geometric_mean(of[name].second));
  }
}

/// Runs of one side, each with the device pair that it belongs to: all to pair 0 if none were
/// requested, otherwise to none, one or several.
struct PlacedRun {
  const RunResult* run = nullptr;
  std::string process;
  size_t pair = 0;
};
std::vector<PlacedRun> placed(std::span<const RunResult> runs, const std::vector<DevicePair>& pairs,
                              std::string DevicePair::*side) {
  std::vector<PlacedRun> all;
  const std::vector<std::string> processes = processes_of(runs);
  if (pairs.empty()) {
    for (size_t i = 0; i < runs.size(); ++i) all.push_back({&runs[i], processes[i], 0});
  }
  for (size_t i = 0; i < pairs.size(); ++i) {
    const size_t before = all.size();
    std::set<std::string_view> names;
    for (size_t k = 0; k < runs.size(); ++k) {
      for (const RunDevice& info : runs[k].devices) {
        names.insert(info.name);
        if (!info.uuid.empty()) names.insert(info.uuid);
        if (is_device(info, pairs[i].*side)) all.push_back({&runs[k], processes[k], i});
      }
    }
    if (all.size() > before) continue;
    const std::vector<std::string_view> known(names.begin(), names.end());
    throw Error(
        ErrorCode::invalid_argument,
        "--pair-devices: " + catalog::unknown_name_message("device", pairs[i].*side, known));
  }
  return all;
}

std::set<int64_t> cache_sizes(std::span<const PlacedRun> runs) {
  std::set<int64_t> bytes;
  for (const PlacedRun& run : runs) {
    for (const RunDevice& info : run.run->devices) bytes.insert(info.last_level_cache_bytes);
  }
  return bytes;
}

/// Cells by their identifying values, in the order in which they first occur.
class Pairs {
 public:
  /// `names_buffers`: whether rotations with the same number of buffers are the same method. For
  /// L2s of different sizes they are not.
  explicit Pairs(bool names_buffers) : names_buffers_(names_buffers) {}

  void add(std::span<const PlacedRun> runs, Seen PairedCell::*which, const Metric& metric) {
    for (const PlacedRun& run : runs) {
      for (const CaseResult& c : run.run->cases) {
        for (const RunnerResult& strategy : c.strategies)
          add_runner(run, c, strategy, which, metric);
      }
    }
  }

  /// What failed before it was timed has no regime: mark it as failed in all its known regimes.
  void mark_failures(std::span<const PlacedRun> runs, Seen PairedCell::*which) {
    std::set<std::tuple<size_t, std::string, std::string>> failed;
    for (const PlacedRun& run : runs) {
      for (const CaseResult& c : run.run->cases) {
        for (const RunnerResult& r : c.strategies) {
          if (r.status != Status::ok && r.status != Status::skipped)
            failed.emplace(run.pair, c.case_id, r.name);
        }
      }
    }
    for (PairedCell& pair : pairs) {
      const ComparedCell& cell = pair.cell;
      if (failed.contains({cell.device_pair, cell.case_id, cell.strategy}))
        (pair.*which).is_invalid = true;
    }
  }
  std::vector<PairedCell> pairs;

 private:
  void add_runner(const PlacedRun& run, const CaseResult& c, const RunnerResult& r,
                  Seen PairedCell::*which, const Metric& metric) {
    if (r.status == Status::skipped) return;
    for (const Measurement& m : r.measurements) {
      Seen& seen = find(run, c, r, m).*which;
      seen.works.insert(work_text(c.cost));
      const VerifyOutcome& v = r.verify;
      seen.is_unchecked = seen.is_unchecked || (v.before == "not_run" && v.after == "not_run");
      if (m.regime == Regime::cold)
        seen.methods.insert(cold_method(run.run->config, m, names_buffers_));
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
      // The host's work takes no cycles of the device.
      if (m.clocks && m.regime != Regime::cpu && m.clocks->sm_mhz_median > 0)
        seen.side.sm_mhz.push_back(m.clocks->sm_mhz_median);
      if (m.stats.doubts) seen.doubts.insert(m.stats.doubts->begin(), m.stats.doubts->end());
      seen.side.runs.push_back(*value);
      seen.processes.push_back(run.process);
      seen.side.best.push_back(at(m.stats.min_ns));
      seen.side.q3.push_back(at(m.stats.q3_ns));
    }
  }

  PairedCell& find(const PlacedRun& run, const CaseResult& c, const RunnerResult& r,
                   const Measurement& m) {
    const auto key = std::make_tuple(run.pair, c.case_id, r.name, m.regime);
    const auto [place, is_new] = places_.emplace(key, pairs.size());
    if (is_new) {
      PairedCell pair;
      pair.cell.case_id = c.case_id;
      pair.cell.op = c.point.op();
      pair.cell.point = c.point.to_string();
      pair.cell.axes.assign(c.point.entries().begin(), c.point.entries().end());
      pair.cell.device_pair = run.pair;
      pair.device = history_device(*run.run);
      pair.regime = history_regime(run.run->config, m);
      pair.cell.strategy = r.name;
      pair.cell.reproduce = c.reproduce;
      pair.cell.regime = m.regime;
      pairs.push_back(std::move(pair));
    }
    return pairs[place->second];
  }

  bool names_buffers_;
  std::map<std::tuple<size_t, std::string, std::string, Regime>, size_t> places_;
};

}  // namespace

bool PairedCell::is_measured_otherwise() const {
  std::set<std::string> methods = base.methods;
  methods.insert(candidate.methods.begin(), candidate.methods.end());
  return methods.size() > 1;
}

bool PairedCell::is_of_other_work() const {
  std::set<std::string> works = base.works;
  works.insert(candidate.works.begin(), candidate.works.end());
  return works.size() > 1;
}

std::vector<PairedCell> pair_cells(std::span<const RunResult> base,
                                   std::span<const RunResult> candidate,
                                   const CompareOptions& options) {
  const auto before = placed(base, options.device_pairs, &DevicePair::base);
  const auto after = placed(candidate, options.device_pairs, &DevicePair::candidate);
  Pairs all(cache_sizes(before) == cache_sizes(after));
  all.add(before, &PairedCell::base, *options.metric);
  all.add(after, &PairedCell::candidate, *options.metric);
  all.mark_failures(before, &PairedCell::base);
  all.mark_failures(after, &PairedCell::candidate);
  for (PairedCell& pair : all.pairs) {
    merge_processes(pair.base);
    merge_processes(pair.candidate);
  }
  return std::move(all.pairs);
}

std::set<std::string> shared_processes(std::span<const RunResult> base,
                                       std::span<const RunResult> candidate) {
  const auto processes_in = [](std::span<const RunResult> runs) {
    std::set<std::string> names;
    for (const RunResult& run : runs) {
      const bool is_named = !run.config.isolate && !run.process.empty();
      if (is_named || !run.id.empty()) names.insert(is_named ? run.process : "run " + run.id);
    }
    return names;
  };
  const std::set<std::string> before = processes_in(base), after = processes_in(candidate);
  std::set<std::string> shared;
  std::set_intersection(before.begin(), before.end(), after.begin(), after.end(),
                        std::inserter(shared, shared.end()));
  return shared;
}

int64_t count_processes(std::span<const RunResult> runs) {
  const std::vector<std::string> processes = processes_of(runs);
  return std::ssize(std::set<std::string>(processes.begin(), processes.end()));
}

}  // namespace wide::bench
