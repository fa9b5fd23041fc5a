// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A second implementation of the generator, as in its paper: products of words split in halves,
// keys by round.
#include "host/pointwise/dropout_reference.hpp"

#include <array>
#include <cmath>
#include <limits>

namespace wide::catalog {

namespace {

using Words = std::array<uint32_t, 4>;

struct Product {
  uint32_t high, low;
};

Product multiply(uint32_t a, uint32_t b) {
  const uint64_t product = uint64_t{a} * b;
  return {static_cast<uint32_t>(product >> 32), static_cast<uint32_t>(product & 0xffffffffu)};
}

uint32_t word_of(int64_t seed, int64_t sequence, int64_t element) {
  const auto half = [](int64_t value, int which) {
    return static_cast<uint32_t>(static_cast<uint64_t>(value) >> (32 * which));
  };
  const int64_t block = element / 4;
  Words counter{half(block, 0), half(block, 1), half(sequence, 0), half(sequence, 1)};
  for (uint32_t round = 0; round < 10; ++round) {
    const uint32_t left_key = half(seed, 0) + round * 0x9E3779B9u;
    const uint32_t right_key = half(seed, 1) + round * 0xBB67AE85u;
    const Product even = multiply(0xD2511F53u, counter[0]), odd = multiply(0xCD9E8D57u, counter[2]);
    counter = {odd.high ^ left_key ^ counter[1], odd.low, even.high ^ right_key ^ counter[3],
               even.low};
  }
  return counter[static_cast<size_t>(element % 4)];
}

}  // namespace

void dropout_reference(const DropoutProblem& problem, const DropoutReferenceMember& member,
                       int64_t row, std::span<const double> x, std::span<double> y,
                       std::span<double> tolerance) {
  constexpr double u = unit_roundoff(Dtype::fp32);
  const double probability = member.probability;
  const bool is_probability = probability >= 0 && probability <= 1;
  int exponent;  // ignored
  const bool scales_exactly = is_probability && std::frexp(1 - probability, &exponent) == 0.5;
  for (size_t d = 0; d < x.size(); ++d) {
    const int64_t element = row * problem.features + static_cast<int64_t>(d);
    const double number =
        static_cast<double>(word_of(member.seed, member.sequence, element)) * 0x1p-32;
    y[d] = number < probability ? 0 : x[d] / (1 - probability);
    if (!is_probability) y[d] = std::numeric_limits<double>::quiet_NaN();
    const double rounding = 3 * u + unit_roundoff(problem.dtype);
    tolerance[d] = y[d] == 0 || !is_probability || scales_exactly
                       ? 0
                       : rounding * std::fabs(y[d]) + min_subnormal(problem.dtype);
  }
}

}  // namespace wide::catalog
