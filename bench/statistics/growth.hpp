// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How time grows with a size: time = a + b f(n), for the f of the usual orders.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace wide::bench {

struct Growth {
  std::string model;    ///< "1", "log n", "n", "n log n", "n^2" or "n^3"
  double a = 0, b = 0;  ///< both non-negative; b = 0 for model "1"
  double rms_pct = 0;   ///< of the relative residuals, 100 (fit - time) / time
  friend bool operator==(const Growth&, const Growth&) = default;
};

/// Least squares of relative residuals, since times span decades. Of two orders that fit about
/// equally well, the slower-growing: within a tenth of the best residual, or within 0.1 %. None
/// where there are fewer than three different sizes, or a size or time is not finite and positive.
std::optional<Growth> fit_growth(std::span<const double> sizes, std::span<const double> times);

}  // namespace wide::bench
