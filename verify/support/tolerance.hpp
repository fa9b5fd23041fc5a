// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How far an approximation of a float may be off.
#pragma once

#include <algorithm>
#include <cmath>

namespace wide::test {

/// The larger of the two counts. Absolute is for functions whose manual states no other bound near
/// their zeros: everywhere else 0 would pass for any small result.
struct Tolerance {
  double relative = 0;  ///< of the wanted value
  double absolute = 0;
};

constexpr double kSmallestSubnormal = 0x1p-149, kSmallestNormal = 0x1p-126;

/// NaN is near NaN, an infinity near itself. `smallest` is what a result may lose beside: of
/// subnormals the last bit, all of them where the instruction flushes (.ftz).
inline bool is_near(double wanted, double got, Tolerance tolerance,
                    double smallest = kSmallestSubnormal) {
  if (std::isnan(wanted) || std::isnan(got)) return std::isnan(wanted) && std::isnan(got);
  if (std::isinf(wanted) || std::isinf(got)) return wanted == got;
  const double allowed = std::max(tolerance.relative * std::fabs(wanted), tolerance.absolute);
  return std::fabs(got - wanted) <= allowed + smallest;
}

}  // namespace wide::test
