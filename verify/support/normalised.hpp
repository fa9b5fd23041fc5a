// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What norms make of one row or group, to show that their bounds refuse what is nearly that.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "verify/support/tensors.hpp"

namespace wide::test {

/// `count` numbers of [low, high) as fp32 holds them.
inline std::vector<double> uniform_fp32(int64_t count, double low, double high, uint64_t seed) {
  std::vector<double> values = uniform(count, low, high, seed);
  for (double& value : values) value = static_cast<double>(static_cast<float>(value));
  return values;
}

/// (x - centre) / sqrt(sum (x - centre)^2 / count + epsilon)
inline std::vector<double> normalised(std::vector<double> x, double centre, double count,
                                      double epsilon) {
  double squares = 0;
  for (const double value : x) squares += (value - centre) * (value - centre);
  for (double& value : x) value = (value - centre) / std::sqrt(squares / count + epsilon);
  return x;
}

}  // namespace wide::test
