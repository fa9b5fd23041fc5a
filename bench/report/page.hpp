// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Results as one page that needs nothing but itself: every number in tables, and charts of them. It
// loads nothing and runs no script but the build's own, whatever strings results bring along.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/compare/compare.hpp"
#include "bench/history/history.hpp"
#include "bench/result.hpp"

namespace wide::bench {

struct PageContent {
  std::vector<RunResult> results;
  std::optional<Comparison> comparison;  ///< of these results with earlier ones
  std::vector<HistorySeries> history;    ///< of the cases of these results
};

std::string report_page(const PageContent& content);

}  // namespace wide::bench
