// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// One line of PTX on many operands. The line names its operands by letter and width, %ah %aw %al
// (16, 32, 64 bits), %af %ad (f32, f64), %ap (a predicate: the lowest bit), the same for b and c,
// and writes %h %w %l %f %d or %p. a, b and c lie side by side in global memory at %at.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "verify/support/tolerance.hpp"

namespace wide::test {

struct Operands {
  uint64_t a = 0, b = 0, c = 0;  ///< bits; narrower registers hold the low ones
};

/// What the line wrote, for each of the operands. Throws simt::Unsupported.
std::vector<uint64_t> execute(const std::string& line, const std::vector<Operands>& operands);

/// Every pair of the values at which operations of this type behave specially, and random bits.
std::vector<Operands> integer_operands();
std::vector<Operands> float_operands();
std::vector<Operands> double_operands();

template <class T>
T from_bits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
template <class T>
uint64_t to_bits(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <class T>
std::vector<Operands> operands_for() {
  if constexpr (std::is_same_v<T, float>) return float_operands();
  if constexpr (std::is_same_v<T, double>) return double_operands();
  return integer_operands();
}

template <class T>
bool is_same(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  }
  return to_bits(a) == to_bits(b);  // minus zero is not zero
}

/// The line computes expected(a, b, c), bit for bit (any NaN is any other).
template <class T, class Expected>
void check_line(const std::string& line, const Expected& expected) {
  const std::vector<Operands> operands = operands_for<T>();
  const std::vector<uint64_t> results = execute(line, operands);
  int64_t wrong = 0;
  for (size_t i = 0; i < operands.size() && wrong == 0; ++i) {
    const auto [a, b, c] = operands[i];
    const auto wanted = expected(from_bits<T>(a), from_bits<T>(b), from_bits<T>(c));
    const auto got = from_bits<std::remove_const_t<decltype(wanted)>>(results[i]);
    if (is_same(wanted, got)) continue;
    ++wrong;
    UNSCOPED_INFO(line << " of " << std::hex << a << ", " << b << ", " << c << ": got "
                       << to_bits(got) << ", expected " << to_bits(wanted));
  }
  CHECK(wrong == 0);
}

/// The same within an error; what is not finite is the same.
template <class Expected>
void check_approximation(const std::string& line, Tolerance tolerance, const Expected& expected) {
  const std::vector<Operands> operands = float_operands();
  const std::vector<uint64_t> results = execute(line, operands);
  const bool flushes = line.find(".ftz") != std::string::npos;
  const double smallest = flushes ? kSmallestNormal : kSmallestSubnormal;
  int64_t wrong = 0;
  for (size_t i = 0; i < operands.size() && wrong == 0; ++i) {
    const float a = from_bits<float>(operands[i].a), got = from_bits<float>(results[i]);
    const double wanted = expected(static_cast<double>(a));
    const auto rounded = static_cast<float>(wanted);
    const bool is_finite = std::isfinite(rounded) && std::isfinite(got);
    const bool is_right = is_finite ? is_near(wanted, static_cast<double>(got), tolerance, smallest)
                                    : is_same(rounded, got);
    if (is_right) continue;
    ++wrong;
    UNSCOPED_INFO(line << " of " << a << ": got " << got << ", expected " << wanted);
  }
  CHECK(wrong == 0);
}

}  // namespace wide::test
