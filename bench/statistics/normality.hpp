// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Whether samples may come from a normal distribution. Clocks are quantised and samples tied, so
// these are informative only. None if a value is not finite or nothing varies.
#pragma once

#include <optional>
#include <span>

#include "bench/statistics/two_samples.hpp"

namespace wide::bench {

/// W = (sum a_i x_(i))^2 / sum (x - mean)^2 (Shapiro and Wilk 1965), a and p approximated as by
/// Royston (1995, algorithm AS R94). For 3 to 5000 values.
std::optional<Test> shapiro_wilk(std::span<const double> values);

/// A^2 (Anderson and Darling 1952) with mean and deviation estimated, times 1 + 0.75 / n + 2.25 /
/// n^2; p by D'Agostino and Stephens (1986, table 4.9). For 8 values and more.
std::optional<Test> anderson_darling(std::span<const double> values);

}  // namespace wide::bench
