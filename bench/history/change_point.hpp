// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Finds where a series of runs' medians has stepped up or down, so that `git bisect` knows where to
// search. Pure, so that it is tested on synthetic histories.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "bench/history/history.hpp"

namespace wide::bench {

struct ChangePoint {
  size_t first_after = 0;              ///< the first run of the new level
  double before_ns = 0, after_ns = 0;  ///< medians of the runs before it, and from it on
  double p = 1;
  double change_pct() const { return 100 * (after_ns / before_ns - 1); }
};

/// The least number of runs on each side of a change.
inline constexpr size_t kRunsAside = 3;

/// The one split of the series that leaves its two sides closest to their medians. Its p is that of
/// Mann and Whitney's test between the sides times the number of splits it was chosen from
/// (Bonferroni), at most 1. None below 2 kRunsAside runs.
std::optional<ChangePoint> find_change(std::span<const double> medians);

struct SeriesChange {
  size_t series = 0;
  ChangePoint change;
  double p_adjusted = 1;  ///< over all series (Benjamini and Hochberg)
};

/// Changes of at least `least_pct` whose adjusted p is at most `alpha`, the largest first.
std::vector<SeriesChange> find_changes(const std::vector<HistorySeries>& all, double alpha = 0.05,
                                       double least_pct = 1);

}  // namespace wide::bench
