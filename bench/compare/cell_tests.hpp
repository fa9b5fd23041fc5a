// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Tests and effect sizes of one cell's runs. They are informative only and decide nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "bench/compare/gate.hpp"
#include "bench/statistics/two_samples.hpp"

namespace wide::bench {

/// Which test is reported of a cell: for `automatic` and `bootstrap` the one that suits its runs,
/// for `interval` none. The gate's interval is Welch's; for `bootstrap`, the bootstrap's.
enum class CompareMethod : uint8_t { automatic, bootstrap, mwu, welch, student, interval };
std::string_view to_string(CompareMethod method);

/// Computed on the logarithms of the runs; none below kMinRuns.
struct CellTests {
  std::optional<Test> levene;
  std::string_view chosen;  ///< "student", "welch" or "mwu"
  double statistic = 0, p = 1, p_adjusted = 1;
  std::optional<double> cohens_d, hedges_g;
  double rank_biserial = 0;
};

/// The test that suits: Mann-Whitney where either side is not normal (Shapiro-Wilk below 5 %),
/// else Welch where variances differ (Brown-Forsythe below 5 %), else Student. A t test is
/// undefined where nothing varies: Mann-Whitney stands in for it.
std::optional<CellTests> run_tests(const Side& base, const Side& candidate, CompareMethod method);

}  // namespace wide::bench
