// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Checks of numbers on the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wide::bench {

/// Parses all of the text as a number; integers exactly, without the rounding of a double.
template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number ? std::optional(value) : std::nullopt;
}

/// Checks that a number is in the range, and integral if "an integer .." is expected, with a
/// readable message: CLI11's own spells out the largest double, and says of 3.5 rounds that it
/// could not convert them.
inline CLI::Validator number_check(double least, bool is_open, double most,
                                   const std::string& expected) {
  const bool is_integer = expected.starts_with("an integer");
  const auto is_in = [=]<class Number>(std::optional<Number> value) {
    const auto low = static_cast<Number>(least), high = static_cast<Number>(most);
    return value && (is_open ? *value > low : *value >= low) && *value <= high;
  };
  return CLI::Validator(
      [=](std::string& text) {
        const bool is_good =
            is_integer ? is_in(number_of<int64_t>(text)) : is_in(number_of<double>(text));
        return is_good ? "" : "\"" + text + "\", expected " + expected;
      },
      "");
}

inline const CLI::Validator kPositive = number_check(0, true, 1e9, "a number above 0");
inline const CLI::Validator kNotNegative = number_check(0, false, 1e9, "a number, 0 or above");
inline const CLI::Validator kCount = number_check(1, false, 1e9, "an integer from 1 to 10^9");
/// The largest integer that JSON represents exactly everywhere.
inline const CLI::Validator kSeed = number_check(0, false, 0x1p53, "an integer from 0 to 2^53");

}  // namespace wide::bench
