// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Statistics against SciPy's and R's values, which scripts/statistics_vectors.py wrote down. Both
// sides make the same data from a seed, so that the file holds expectations only.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <sstream>
#include <string>

#include "bench/statistics/intervals.hpp"
#include "bench/statistics/moments.hpp"
#include "bench/statistics/normality.hpp"
#include "bench/statistics/ranks.hpp"
#include "bench/statistics/two_samples.hpp"

namespace wide::bench {
namespace {

/// splitmix64 (Steele, Lea, Flood 2014), in [0, 1).
struct Uniform {
  uint64_t state = 0;
  double operator()() {
    state += 0x9E3779B97F4A7C15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }
};

double normal(Uniform& uniform) {
  double total = 0;
  for (int i = 0; i < 12; ++i) total += uniform();
  return total - 6;
}

double make_one(const std::string& kind, Uniform& uniform) {
  if (kind == "normal") return normal(uniform);
  if (kind == "time") return 1000 + 30 * normal(uniform);
  if (kind == "late") return 1020 + 45 * normal(uniform);
  if (kind == "constant") return 7.25;
  const double u = uniform();
  if (kind == "uniform") return u;
  if (kind == "skewed") return u * u * u;
  if (kind == "heavy") return u / (1.001 - u);
  if (kind == "ties") return std::floor(u * 6);
  FAIL("no kind of data is called " << kind);
  return 0;
}

using Values = std::vector<double>;

Values make(std::istream& line) {
  std::string kind;
  size_t n = 0;
  Uniform uniform;
  line >> kind >> n >> uniform.state;
  Values values(n);
  for (double& value : values) value = make_one(kind, uniform);
  return values;
}

/// The numbers that follow on the line; NaN for "-".
Values read_numbers(std::istream& line) {
  Values numbers;
  for (std::string word; line >> word;)
    numbers.push_back(word == "-" ? std::numeric_limits<double>::quiet_NaN() : std::stod(word));
  return numbers;
}

/// Lines of one kind, each with what it starts with for INFO.
void for_each_line(const std::string& kind, const std::function<void(std::istream&)>& check) {
  std::ifstream file(WIDE_SOURCE_DIR "/verify/statistics/statistics_vectors.txt");
  int64_t count = 0;
  for (std::string text; std::getline(file, text);) {
    if (!text.starts_with(kind + " ")) continue;
    INFO(text.substr(0, 60));
    std::istringstream line(text.substr(kind.size()));
    check(line);
    ++count;
  }
  CHECK(count >= 100);
}

/// |got - expected| against the expected value's size, or 1 where that is smaller. Nothing is
/// expected where `expected` is NaN.
bool agree(double got, double expected, double tolerance) {
  return std::fabs(got - expected) <= tolerance * std::max(1.0, std::fabs(expected));
}

void check_test(const std::optional<Test>& got, double statistic, double p, double tolerance) {
  INFO("expected " << statistic << ", p " << p);
  if (std::isnan(statistic)) {
    // Equal but for the last bit: SciPy warns, a formula gives something enormous.
    CHECK((!got || std::fabs(got->statistic) > 1e15));
    return;
  }
  REQUIRE(got);
  INFO("got " << got->statistic << ", p " << got->p);
  CHECK(agree(got->statistic, statistic, tolerance));
  if (!std::isnan(p)) CHECK(agree(got->p, p, tolerance));
}

TEST_CASE("one sample, against SciPy and R") {
  for_each_line("one", [](std::istream& line) {
    const Values x = make(line), expected = read_numbers(line);
    REQUIRE(expected.size() == 8);
    const Moments m = moments(x);
    CHECK(agree(m.mean, expected[0], 1e-14));
    CHECK(agree(std::sqrt(m.variance), expected[1], 1e-12));
    const auto interval = t_interval(x);
    REQUIRE(interval);
    CHECK(agree(interval->lo, expected[2], 1e-10));
    CHECK(agree(interval->hi, expected[3], 1e-10));
    check_test(shapiro_wilk(x), expected[4], expected[5], 1e-6);
    check_test(anderson_darling(x), expected[6], expected[7], 1e-6);
  });
}

TEST_CASE("two samples, against SciPy") {
  for_each_line("two", [](std::istream& line) {
    const Values a = make(line), b = make(line), expected = read_numbers(line);
    REQUIRE(expected.size() == 15);
    const std::vector<Values> groups{a, b};
    check_test(student_test(a, b), expected[0], expected[1], 1e-10);
    check_test(welch_test(a, b), expected[2], expected[3], 1e-10);
    if (const auto welch = welch_test(a, b)) CHECK(agree(welch->dof, expected[4], 1e-10));
    const auto d = cohens_d(a, b), g = hedges_g(a, b);
    CHECK(d.has_value() == !std::isnan(expected[5]));
    if (d) CHECK((agree(*d, expected[5], 1e-10) && agree(g.value(), expected[6], 1e-10)));
    check_test(levene_test(groups, Centre::mean), expected[7], expected[8], 1e-10);
    check_test(levene_test(groups, Centre::median), expected[9], expected[10], 1e-10);
  });
}

TEST_CASE("ranks, against SciPy and all assignments") {
  int64_t exact = 0, tied = 0;
  for_each_line("two", [&](std::istream& line) {
    const Values a = make(line), b = make(line), expected = read_numbers(line);
    const auto u = mann_whitney(a, b);
    REQUIRE(u);
    CHECK(u->statistic == expected[11]);
    if (!std::isnan(expected[12])) {
      CHECK(agree(u->p, expected[12], u->is_exact ? 1e-14 : 1e-12));
      exact += u->is_exact ? 1 : 0;
      tied += u->is_exact && u->statistic != std::floor(u->statistic) ? 1 : 0;
    }
    if (a.size() != b.size()) return;
    Values differences;
    for (size_t i = 0; i < a.size(); ++i) differences.push_back(a[i] - b[i]);
    const auto w = wilcoxon_signed_rank(differences);
    CHECK(w.has_value() == !std::isnan(expected[13]));
    if (!w) return;
    CHECK(w->statistic == expected[13]);
    if (!std::isnan(expected[14])) CHECK(agree(w->p, expected[14], w->is_exact ? 1e-14 : 1e-12));
  });
  CHECK(exact >= 60);
  CHECK(tied >= 2);
}

}  // namespace
}  // namespace wide::bench
