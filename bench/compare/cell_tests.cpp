// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/compare/cell_tests.hpp"

#include <algorithm>
#include <cmath>

#include "bench/statistics/normality.hpp"
#include "bench/statistics/ranks.hpp"

namespace wide::bench {

namespace {

constexpr double kUsual = 0.05;  // level of the tests that select a test

bool is_normal(std::span<const double> values) {
  const auto test = shapiro_wilk(values);
  return test && test->p >= kUsual;
}

CompareMethod suitable(std::span<const double> before, std::span<const double> after,
                       const std::optional<Test>& levene) {
  if (!is_normal(before) || !is_normal(after)) return CompareMethod::mwu;
  return levene && levene->p >= kUsual ? CompareMethod::student : CompareMethod::welch;
}

}  // namespace

std::string_view to_string(CompareMethod method) {
  constexpr std::string_view kNames[] = {"auto",  "bootstrap", "mwu",
                                         "welch", "student",   "interval"};
  return kNames[static_cast<size_t>(method)];
}

std::optional<CellTests> run_tests(const Side& base, const Side& candidate, CompareMethod method) {
  if (method == CompareMethod::interval) return std::nullopt;
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
  const bool is_free = method == CompareMethod::automatic || method == CompareMethod::bootstrap;
  const CompareMethod wanted = is_free ? suitable(before, after, tests.levene) : method;
  const auto t = wanted == CompareMethod::student ? student_test(after, before)
                 : wanted == CompareMethod::welch ? welch_test(after, before)
                                                  : std::nullopt;
  tests.chosen = to_string(t ? wanted : CompareMethod::mwu);
  tests.statistic = t ? t->statistic : ranks.statistic;
  tests.p = t ? t->p : ranks.p;
  return tests;
}

}  // namespace wide::bench
