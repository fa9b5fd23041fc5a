// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Checks of numbers on the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <string>

namespace wide::bench {

/// A number of the range, a whole one where "an integer .." is expected, said in a sentence:
/// CLI11's own spells out the largest double, and says of 3.5 rounds that it could not convert
/// them.
inline CLI::Validator number_check(double least, bool is_open, double most,
                                   const std::string& expected) {
  const bool is_whole = expected.starts_with("an integer");
  return CLI::Validator(
      [=](std::string& text) {
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool is_number = error == std::errc() && end == text.data() + text.size() &&
                               (!is_whole || value == std::floor(value));
        const bool is_in = (is_open ? value > least : value >= least) && value <= most;
        return is_number && is_in ? "" : "\"" + text + "\", expected " + expected;
      },
      "");
}

inline const CLI::Validator kPositive = number_check(0, true, 1e9, "a number above 0");
inline const CLI::Validator kNotNegative = number_check(0, false, 1e9, "a number, 0 or above");
inline const CLI::Validator kCount = number_check(1, false, 1e9, "an integer from 1 to 10^9");
/// JSON keeps integers up to here exact everywhere.
inline const CLI::Validator kSeed = number_check(0, false, 0x1p53, "an integer from 0 to 2^53");

}  // namespace wide::bench
