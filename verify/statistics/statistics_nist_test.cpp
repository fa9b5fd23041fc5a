// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Certified values of the Statistical Reference Datasets of NIST. Sets that a formula makes are
// made here; the others are in nist_strd.txt. Digits are judged by the log relative error, as NIST
// does: -log10(|got - certified| / |certified|).
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "bench/statistics/moments.hpp"
#include "bench/statistics/two_samples.hpp"

namespace wide::bench {
namespace {

using Values = std::vector<double>;

/// Certified values have 15 digits.
double digits(double got, double certified) {
  return got == certified ? 15 : -std::log10(std::fabs(got - certified) / std::fabs(certified));
}

void check_univariate(const Values& values, double mean, double deviation, double correlation,
                      double least_digits) {
  const Moments m = moments(values);
  CHECK(digits(m.mean, mean) >= 14);
  CHECK(digits(std::sqrt(m.variance), deviation) >= least_digits);
  CHECK(digits(autocorrelation(values).value_or(0), correlation) >= std::min(least_digits, 12.0));
}

/// `first`, then low and high by turns.
Values alternating(double first, double low, double high, size_t count) {
  Values values{first};
  while (values.size() < count) values.push_back(values.size() % 2 == 1 ? low : high);
  return values;
}

void check_anova(const std::vector<Values>& groups, const Anova& certified, double least_digits) {
  const auto got = analyse_variance(groups);
  REQUIRE(got);
  CHECK(digits(got->between, certified.between) >= least_digits);
  CHECK(digits(got->within, certified.within) >= least_digits);
  CHECK(digits(got->f, certified.f) >= least_digits);
  CHECK(got->dof_between == certified.dof_between);
  CHECK(got->dof_within == certified.dof_within);
}

TEST_CASE("NIST's observed data") {
  std::ifstream file(WIDE_SOURCE_DIR "/verify/statistics/nist_strd.txt");
  std::string line, word, kind, name;
  int sets = 0;
  while (std::getline(file, line)) {
    if (line.starts_with("#")) continue;
    std::istringstream head(line);
    Values certified;
    head >> kind >> name;
    for (double value = 0; head >> value;) certified.push_back(value);
    std::vector<Values> groups(1);
    while (file.peek() != 'u' && file.peek() != 'a' && std::getline(file, line)) {
      std::istringstream data(line);
      while (data >> word) {
        if (word == "/") {
          groups.emplace_back();
        } else {
          groups.back().push_back(std::stod(word));
        }
      }
    }
    INFO(name);
    ++sets;
    if (kind == "univariate") {
      REQUIRE(certified.size() == 3);
      check_univariate(groups[0], certified[0], certified[1], certified[2], 12);
    } else {
      REQUIRE(certified.size() == 5);
      // 107.8681568 as a double leaves AtmWtAg, whose values agree in seven digits, nine.
      check_anova(groups, {certified[0], certified[2], certified[1], certified[3], certified[4], 1},
                  name == "AtmWtAg" ? 8.5 : 11);
    }
  }
  CHECK(sets == 6);
}

TEST_CASE("NIST's univariate sets that try accuracy") {
  check_univariate({10000001, 10000003, 10000002}, 10000002, 1, -0.5, 14);
  check_univariate(alternating(1.2, 1.1, 1.3, 1001), 1.2, 0.1, -0.999, 14);
  check_univariate(alternating(1000000.2, 1000000.1, 1000000.3, 1001), 1000000.2, 0.1, -0.999, 9);
  check_univariate(alternating(10000000.2, 10000000.1, 10000000.3, 1001), 10000000.2, 0.1, -0.999,
                   8);
}

TEST_CASE("NIST's generated analyses of variance, SmLs01 to SmLs09") {
  // Doubles near 10^12 are 10^-4 apart: the last three sets, read as doubles, are other sets.
  const std::pair<double, double> offsets[] = {{1, 12}, {1e6, 8}, {1e12, 1.5}};
  for (const auto& [offset, least_digits] : offsets) {
    for (const size_t replicates : {21u, 201u, 2001u}) {
      INFO("offset " << offset << ", " << replicates << " replicates");
      std::vector<Values> groups;
      for (int treatment = 0; treatment < 9; ++treatment) {
        const int tenths = treatment == 0 ? 4 : treatment % 2 == 1 ? 3 : 5;
        const auto value = [&](int t) { return (offset * 10 + t) / 10; };
        groups.push_back(
            alternating(value(tenths), value(tenths - 1), value(tenths + 1), replicates));
      }
      const auto n = static_cast<double>(replicates);
      // Certified: sums of squares 1.68 and 1.8, F 21; 16.08, 18, 201; 160.08, 180, 2001.
      check_anova(groups, {0.08 * n, 0.09 * (n - 1), 8, 9 * (n - 1), n, 1}, least_digits);
    }
  }
}

}  // namespace
}  // namespace wide::bench
