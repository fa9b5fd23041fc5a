// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Tests by ranks, for samples of any distribution. For few values p is exact: it counts all ways
// to assign the given ranks, including ties. None if a value is not finite or
// nothing is left to rank.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "bench/statistics/two_samples.hpp"

namespace wide::bench {

struct RankTest {
  double statistic = 0, p = 1;  ///< p is two-sided: twice the smaller tail, at most 1
  bool is_exact = false;
  double rank_biserial = 0;  ///< from -1 to 1 (Kerby 2014)
  friend bool operator==(const RankTest&, const RankTest&) = default;
};

/// Ranks from 1; equal values share the mean of theirs.
std::vector<double> midranks(std::span<const double> values);

/// U = pairs with a above b, ties half (Mann and Whitney 1947). Up to kMaxExactValues values in
/// all p is exact, above that normal with corrections for ties and continuity. rank_biserial = 2 U
/// / (n_a n_b) - 1: positive where a is larger.
std::optional<RankTest> mann_whitney(std::span<const double> a, std::span<const double> b);

/// W = sum of the ranks of |a_i - b_i| where a_i is larger; equal pairs carry no information and
/// are left out (Wilcoxon 1945). Up to kMaxExactValues pairs p is exact, above that normal with
/// corrections for ties and continuity. rank_biserial = (W+ - W-) / (W+ + W-).
std::optional<RankTest> wilcoxon_signed_rank(std::span<const double> differences);

/// S = pairs that rise minus pairs that fall, in order of time (Mann 1945, Kendall 1955): whether
/// values have a trend. p is normal, with corrections for ties and continuity. rank_biserial = S
/// over all pairs: Kendall's tau. None if nothing varies, and for fewer than three values.
std::optional<RankTest> mann_kendall(std::span<const double> values);

inline constexpr size_t kMaxExactValues = 50;

}  // namespace wide::bench
