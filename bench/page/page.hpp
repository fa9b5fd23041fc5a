// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Results as one self-contained page: every number in tables, and charts of them. It
// loads nothing and runs no script but the build's own, whatever strings results contain.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/compare/compare.hpp"
#include "bench/document/result.hpp"
#include "bench/history/history.hpp"

namespace wide::bench {

/// Names of the charts that a page can show.
std::span<const std::string_view> plot_names();

struct PageContent {
  std::vector<RunResult> results;
  std::optional<Comparison> comparison;  ///< of these results with earlier ones
  std::vector<HistorySeries> history;    ///< of the cases in these results
  std::optional<std::set<std::string>> plots = std::nullopt;  ///< of plot_names(); none: all
};

std::string report_page(const PageContent& content);

}  // namespace wide::bench
