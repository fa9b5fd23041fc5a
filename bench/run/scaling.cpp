// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/run/scaling.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "bench/statistics/growth.hpp"

namespace wide::bench {

namespace {

constexpr std::pair<const char*, const char*> kModels[] = {
    {"1", "a"},         {"log n", "a+b*log2(n)"}, {"n", "a+b*n"}, {"n log n", "a+b*n*log2(n)"},
    {"n^2", "a+b*n^2"}, {"n^3", "a+b*n^3"}};

std::string model_name(const std::string& growth) {
  for (const auto& [name, formula] : kModels) {
    if (growth == name) return formula;
  }
  return growth;
}

/// Medians of one strategy with equal axes except n.
struct Line {
  std::string strategy;
  catalog::Case others;  ///< without n
  std::vector<double> sizes, times_ns;
};

catalog::Case without_n(const catalog::Case& point) {
  std::vector<catalog::Case::Entry> entries;
  for (const auto& entry : point.entries()) {
    if (entry.name != "n") entries.push_back(entry);
  }
  return catalog::Case(point.op(), std::move(entries));
}

/// A default is the same value whether it was named or not.
std::string key_of(const catalog::Case& others, const std::string& strategy) {
  std::string key = strategy;
  for (const auto& entry : others.entries())
    key += " " + entry.name + "=" + catalog::to_string(entry.value);
  return key;
}

}  // namespace

std::vector<ScalingFit> scaling_fits(std::span<const CaseResult> cases, const std::string& op,
                                     Regime regime) {
  std::vector<Line> lines;  // in order of appearance
  std::map<std::string, size_t> places;
  for (const CaseResult& c : cases) {
    if (c.point.op() != op) continue;
    const catalog::Case others = without_n(c.point);
    for (const RunnerResult& r : c.strategies) {
      if (r.status != Status::ok) continue;
      for (const Measurement& m : r.measurements) {
        if (m.regime != regime || m.below_resolution || m.stats.n == 0) continue;
        const auto [place, is_new] = places.emplace(key_of(others, r.name), lines.size());
        if (is_new) lines.push_back({r.name, others, {}, {}});
        lines[place->second].sizes.push_back(static_cast<double>(c.point.integer("n")));
        lines[place->second].times_ns.push_back(m.stats.median_ns);
      }
    }
  }
  std::vector<ScalingFit> fits;
  for (const Line& line : lines) {
    const std::optional<Growth> growth = fit_growth(line.sizes, line.times_ns);
    if (!growth) continue;
    fits.push_back({line.strategy, line.others.to_string(), model_name(growth->model),
                    std::ssize(line.sizes), growth->a, growth->b, growth->rms_pct});
  }
  return fits;
}

}  // namespace wide::bench
