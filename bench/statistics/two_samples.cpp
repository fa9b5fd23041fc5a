// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/statistics/two_samples.hpp"

#include <cmath>

#include "bench/statistics/distributions.hpp"
#include "bench/statistics/moments.hpp"
#include "bench/statistics/order.hpp"

namespace wide::bench {

namespace {

/// A difference of means in standard errors.
std::optional<Test> t_test(const MeanDifference& d) {
  const double t = d.value / d.error;
  if (!(d.error > 0) || !std::isfinite(t)) return std::nullopt;
  return Test{t, student_two_sided(t, d.dof), d.dof};
}

double pooled_variance(const Moments& a, const Moments& b) {
  const auto weight_a = static_cast<double>(a.n - 1), weight_b = static_cast<double>(b.n - 1);
  return (weight_a * a.variance + weight_b * b.variance) / (weight_a + weight_b);
}

bool are_fit(std::span<const double> a, std::span<const double> b) {
  return a.size() >= 2 && b.size() >= 2 && are_finite(a) && are_finite(b);
}

}  // namespace

MeanDifference welch_difference(std::span<const double> a, std::span<const double> b) {
  const Moments ma = moments(a), mb = moments(b);
  const auto na = static_cast<double>(ma.n), nb = static_cast<double>(mb.n);
  const double ea = ma.variance / na, eb = mb.variance / nb, error = ea + eb;
  if (!(error > 0)) return {ma.mean - mb.mean, 0, 0};
  // Shares of the error, not its squares, which may underflow.
  const double share_a = ea / error, share_b = eb / error;
  const double dof = 1 / (share_a * share_a / (na - 1) + share_b * share_b / (nb - 1));
  return {ma.mean - mb.mean, std::sqrt(error), dof};
}

std::optional<Test> student_test(std::span<const double> a, std::span<const double> b) {
  if (!are_fit(a, b)) return std::nullopt;
  const Moments ma = moments(a), mb = moments(b);
  const auto na = static_cast<double>(ma.n), nb = static_cast<double>(mb.n);
  const double error = std::sqrt(pooled_variance(ma, mb) * (1 / na + 1 / nb));
  return t_test({ma.mean - mb.mean, error, na + nb - 2});
}

std::optional<Test> welch_test(std::span<const double> a, std::span<const double> b) {
  return are_fit(a, b) ? t_test(welch_difference(a, b)) : std::nullopt;
}

std::optional<Anova> analyse_variance(Groups groups) {
  std::vector<double> all, between, within;
  for (const std::vector<double>& group : groups) {
    if (group.empty() || !are_finite(group)) return std::nullopt;
    all.insert(all.end(), group.begin(), group.end());
  }
  const double centre = moments(all).mean;
  for (const std::vector<double>& group : groups) {
    const Moments m = moments(group);
    const auto n = static_cast<double>(m.n);
    between.push_back(n * (m.mean - centre) * (m.mean - centre));
    within.push_back((n - 1) * m.variance);
  }
  const auto k = static_cast<double>(groups.size()), n = static_cast<double>(all.size());
  Anova anova{sum(between), sum(within), k - 1, n - k, 0, 1};
  anova.f = (anova.between / anova.dof_between) / (anova.within / anova.dof_within);
  if (groups.size() < 2 || all.size() <= groups.size() || !std::isfinite(anova.f))
    return std::nullopt;
  anova.p = fisher_above(anova.f, anova.dof_between, anova.dof_within);
  return anova;
}

std::optional<Test> levene_test(Groups groups, Centre centre) {
  std::vector<std::vector<double>> deviations;
  for (const std::vector<double>& group : groups) {
    const double middle = centre == Centre::mean ? moments(group).mean : median(group);
    deviations.emplace_back();
    for (const double value : group) deviations.back().push_back(std::fabs(value - middle));
  }
  const auto anova = analyse_variance(deviations);
  return anova ? std::optional(Test{anova->f, anova->p, 0}) : std::nullopt;
}

std::optional<double> cohens_d(std::span<const double> a, std::span<const double> b) {
  if (!are_fit(a, b)) return std::nullopt;
  const Moments ma = moments(a), mb = moments(b);
  const double d = (ma.mean - mb.mean) / std::sqrt(pooled_variance(ma, mb));
  return std::isfinite(d) ? std::optional(d) : std::nullopt;
}

std::optional<double> hedges_g(std::span<const double> a, std::span<const double> b) {
  const auto d = cohens_d(a, b);
  if (!d) return std::nullopt;
  const double half = static_cast<double>(a.size() + b.size() - 2) / 2;
  return *d * std::exp(std::lgamma(half) - std::lgamma(half - 0.5)) / std::sqrt(half);
}

std::string_view effect_band(double d) {
  const double size = std::fabs(d);
  return size < 0.2 ? "negligible" : size < 0.5 ? "small" : size < 0.8 ? "medium" : "large";
}

}  // namespace wide::bench
