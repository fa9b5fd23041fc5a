// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

namespace wide::bench {

/// What a change must exceed if runs of the same thing deviate by `deviation`: two deviations of
/// their logarithms, in percent. With five runs a side, one cell in nine would exceed a single
/// deviation by chance.
inline double noise_floor_pct(double deviation) {
  constexpr double kDeviations = 2;
  return 100 * std::expm1(kDeviations * deviation);
}

}  // namespace wide::bench
