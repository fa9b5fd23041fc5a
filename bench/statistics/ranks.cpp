// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/statistics/ranks.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "bench/statistics/distributions.hpp"
#include "bench/statistics/moments.hpp"

namespace wide::bench {

namespace {

/// sum of `term` over the sizes of groups of equal values.
template <class Term>
double sum_of_ties(std::span<const double> values, const Term& term) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  double sum = 0;
  for (auto first = sorted.begin(); first != sorted.end();) {
    const auto last = std::upper_bound(first, sorted.end(), *first);
    sum += term(static_cast<double>(last - first));
    first = last;
  }
  return sum;
}
double tie_term(std::span<const double> ranks) {
  return sum_of_ties(ranks, [](double t) { return t * t * t - t; });
}

/// Ranks are multiples of a half; sums of doubled ranks index counts.
size_t doubled(double rank) {
  return static_cast<size_t>(std::lround(2 * rank));
}

/// Twice the smaller tail, both of which include `place`.
double two_sided(const std::vector<double>& counts, size_t place) {
  const auto at = counts.begin() + static_cast<std::ptrdiff_t>(place);
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  const double below = std::accumulate(counts.begin(), at + 1, 0.0);
  const double above = std::accumulate(at, counts.end(), 0.0);
  return std::min(1.0, 2 * std::min(below, above) / all);
}

/// How many subsets of `chosen` ranks have each doubled sum.
std::vector<double> subset_sums(std::span<const double> ranks, size_t chosen) {
  size_t largest = 0;
  for (const double rank : ranks) largest += doubled(rank);
  std::vector<std::vector<double>> counts(chosen + 1, std::vector<double>(largest + 1, 0.0));
  counts[0][0] = 1;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const size_t step = doubled(ranks[i]);
    for (size_t k = std::min(i + 1, chosen); k > 0; --k) {
      for (size_t s = step; s <= largest; ++s) counts[k][s] += counts[k - 1][s - step];
    }
  }
  return counts[chosen];
}

/// How many of all assignments of signs to ranks have each doubled sum of positive ones.
std::vector<double> sign_sums(std::span<const double> ranks) {
  std::vector<double> counts{1};
  for (const double rank : ranks) {
    const size_t step = doubled(rank);
    counts.resize(counts.size() + step, 0.0);
    for (size_t s = counts.size(); s-- > step;) counts[s] += counts[s - step];
  }
  return counts;
}

double normal_p(double distance, double variance) {
  const double z = std::max(0.0, std::fabs(distance) - 0.5) / std::sqrt(variance);
  return std::min(1.0, 2 * normal_above(z));
}

}  // namespace

std::vector<double> midranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) { return values[i] < values[j]; });
  std::vector<double> ranks(values.size());
  for (size_t first = 0; first < order.size();) {
    size_t last = first;
    while (last < order.size() && values[order[last]] == values[order[first]]) ++last;
    const double rank = static_cast<double>(first + 1 + last) / 2;
    for (; first < last; ++first) ranks[order[first]] = rank;
  }
  return ranks;
}

std::optional<RankTest> mann_whitney(std::span<const double> a, std::span<const double> b) {
  if (a.empty() || b.empty() || !are_finite(a) || !are_finite(b)) return std::nullopt;
  std::vector<double> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  const std::vector<double> ranks = midranks(all);
  const auto na = static_cast<double>(a.size()), nb = static_cast<double>(b.size()), n = na + nb;
  const double rank_sum = sum(std::span(ranks).first(a.size()));
  RankTest test;
  test.statistic = rank_sum - na * (na + 1) / 2;
  test.rank_biserial = 2 * test.statistic / (na * nb) - 1;
  test.is_exact = all.size() <= kMaxExactValues;
  if (test.is_exact) {
    test.p = two_sided(subset_sums(ranks, a.size()), doubled(rank_sum));
    return test;
  }
  const double variance = na * nb / 12 * (n + 1 - tie_term(ranks) / (n * (n - 1)));
  test.p = variance > 0 ? normal_p(test.statistic - na * nb / 2, variance) : 1;
  return test;
}

std::optional<RankTest> wilcoxon_signed_rank(std::span<const double> differences) {
  if (!are_finite(differences)) return std::nullopt;
  std::vector<double> signed_values, sizes;
  for (const double d : differences) {
    if (d == 0) continue;
    signed_values.push_back(d);
    sizes.push_back(std::fabs(d));
  }
  if (sizes.empty()) return std::nullopt;
  const std::vector<double> ranks = midranks(sizes);
  const auto n = static_cast<double>(ranks.size());
  RankTest test;
  for (size_t i = 0; i < ranks.size(); ++i) test.statistic += signed_values[i] > 0 ? ranks[i] : 0;
  const double total = n * (n + 1) / 2;
  test.rank_biserial = (2 * test.statistic - total) / total;
  test.is_exact = ranks.size() <= kMaxExactValues;
  if (test.is_exact) {
    test.p = two_sided(sign_sums(ranks), doubled(test.statistic));
    return test;
  }
  const double variance = n * (n + 1) * (2 * n + 1) / 24 - tie_term(ranks) / 48;
  test.p = normal_p(test.statistic - total / 2, variance);
  return test;
}

std::optional<RankTest> mann_kendall(std::span<const double> values) {
  if (values.size() < 3 || !are_finite(values)) return std::nullopt;
  RankTest test;
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = i + 1; j < values.size(); ++j)
      test.statistic += values[j] > values[i] ? 1 : values[j] < values[i] ? -1 : 0;
  }
  const auto term = [](double t) { return t * (t - 1) * (2 * t + 5); };
  const auto n = static_cast<double>(values.size());
  const double variance = (term(n) - sum_of_ties(values, term)) / 18;
  if (!(variance > 0)) return std::nullopt;
  // S changes in steps of two: half of it suits a continuity correction of a half.
  test.p = normal_p(test.statistic / 2, variance / 4);
  test.rank_biserial = test.statistic / (n * (n - 1) / 2);
  return test;
}

}  // namespace wide::bench
