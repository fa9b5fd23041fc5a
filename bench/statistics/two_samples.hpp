// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Tests and effect sizes of samples that are about normal. None (std::nullopt) where the formula
// is undefined: too few values, one that is not finite, or nothing that varies.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace wide::bench {

struct Test {
  double statistic = 0, p = 1;  ///< p is two-sided
  double dof = 0;               ///< of Student's t; 0 for other statistics
  friend bool operator==(const Test&, const Test&) = default;
};

/// mean(a) - mean(b), its standard error and their degrees of freedom.
struct MeanDifference {
  double value = 0, error = 0, dof = 0;
};
/// Satterthwaite (1946): v = (A + B)^2 / (A^2 / (n_a - 1) + B^2 / (n_b - 1)), A = s_a^2 / n_a.
MeanDifference welch_difference(std::span<const double> a, std::span<const double> b);

/// t = (mean(a) - mean(b)) / (s sqrt(1 / n_a + 1 / n_b)), s^2 pooled; for equal variances (Student
/// 1908).
std::optional<Test> student_test(std::span<const double> a, std::span<const double> b);
/// t = (mean(a) - mean(b)) / sqrt(s_a^2 / n_a + s_b^2 / n_b); for any variances (Welch 1947).
std::optional<Test> welch_test(std::span<const double> a, std::span<const double> b);

/// One-way analysis of variance (Fisher 1925): F = between.mean_square / within.mean_square.
struct Anova {
  double between = 0, within = 0;  ///< sums of squares
  double dof_between = 0, dof_within = 0;
  double f = 0, p = 1;
};
using Groups = std::span<const std::vector<double>>;
std::optional<Anova> analyse_variance(Groups groups);

enum class Centre : uint8_t { mean, median };
/// Whether variances differ: analysis of variance of |x - centre of its group|. Levene (1960) with
/// the mean, Brown and Forsythe (1974), robust against skew, with the median.
std::optional<Test> levene_test(Groups groups, Centre centre = Centre::median);

/// d = (mean(a) - mean(b)) / s, s^2 pooled (Cohen 1988).
std::optional<double> cohens_d(std::span<const double> a, std::span<const double> b);
/// d J, J = Gamma(v / 2) / (sqrt(v / 2) Gamma((v - 1) / 2)), v = n_a + n_b - 2: removes the bias of
/// small samples (Hedges 1981).
std::optional<double> hedges_g(std::span<const double> a, std::span<const double> b);
/// Cohen's words for |d|: "negligible" below 0.2, "small" below 0.5, "medium" below 0.8, "large".
std::string_view effect_band(double d);

}  // namespace wide::bench
