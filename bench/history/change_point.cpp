// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/history/change_point.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/statistics/multiple.hpp"
#include "bench/statistics/order.hpp"
#include "bench/statistics/ranks.hpp"

namespace wide::bench {

namespace {

/// The sum of the values' distances from their median.
double spread(std::span<const double> values) {
  const double centre = median(values);
  double sum = 0;
  for (const double value : values) sum += std::abs(value - centre);
  return sum;
}

}  // namespace

std::optional<ChangePoint> find_change(std::span<const double> medians) {
  if (medians.size() < 2 * kRunsAside) return std::nullopt;
  // Changes are ratios; in logarithms, a step up counts as much as one down.
  std::vector<double> logs;
  for (const double value : medians) logs.push_back(std::log(value));
  const std::span<const double> all = logs;
  ChangePoint best;
  double least = std::numeric_limits<double>::infinity();
  for (size_t at = kRunsAside; at + kRunsAside <= all.size(); ++at) {
    const double left = spread(all.first(at)) + spread(all.subspan(at));
    if (!(left < least)) continue;
    least = left;
    best.first_after = at;
  }
  if (best.first_after == 0) return std::nullopt;  // medians that are not finite
  const auto before = all.first(best.first_after), after = all.subspan(best.first_after);
  best.before_ns = std::exp(median(before));
  best.after_ns = std::exp(median(after));
  const auto splits = static_cast<double>(all.size() - 2 * kRunsAside + 1);
  if (const auto test = mann_whitney(before, after)) best.p = std::min(1.0, splits * test->p);
  return best;
}

std::vector<SeriesChange> find_changes(const std::vector<HistorySeries>& all, double alpha,
                                       double least_pct) {
  std::vector<SeriesChange> found;
  std::vector<double> p_values;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::optional<ChangePoint> change = find_change(all[i].medians_ns);
    if (!change) continue;
    found.push_back({i, *change, 1});
    p_values.push_back(change->p);
  }
  const std::vector<double> adjusted = adjust_p_values(p_values);
  for (size_t i = 0; i < found.size(); ++i) found[i].p_adjusted = adjusted[i];
  std::erase_if(found, [&](const SeriesChange& c) {
    return !(c.p_adjusted <= alpha) || std::abs(c.change.change_pct()) < least_pct;
  });
  std::stable_sort(found.begin(), found.end(), [](const SeriesChange& a, const SeriesChange& b) {
    return std::abs(a.change.change_pct()) > std::abs(b.change.change_pct());
  });
  return found;
}

}  // namespace wide::bench
