// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The definition, position by position; shares only the problem struct with what it judges.
#include "host/pooling/pooling_reference.hpp"

#include <cmath>
#include <limits>
#include <vector>

namespace wide::catalog {

namespace {

/// The positions of a window that exist, and how many a mean counts.
struct Positions {
  std::vector<int64_t> inside;
  int64_t weight = 0;
};

Positions positions_of(const PoolingProblem& p, const PoolingWindow& window, int64_t in,
                       int64_t out, int64_t output) {
  Positions found;
  if (p.mode == PoolingMode::adaptive_average) {
    for (int64_t i = 0; i < in; ++i) {
      // floor(output * in / out) <= i < ceil((output + 1) * in / out)
      if ((i + 1) * out > output * in && i * out < (output + 1) * in) found.inside.push_back(i);
    }
    found.weight = static_cast<int64_t>(found.inside.size());
    return found;
  }
  for (int64_t t = 0; t < window.kernel; ++t) {
    const int64_t i = output * window.stride - window.padding + t * window.dilation;
    if (i >= 0 && i < in) found.inside.push_back(i);
    const bool is_padding = i < 0 || (i >= in && i < in + window.padding);
    if ((i >= 0 && i < in) || (is_padding && p.counts_padding)) ++found.weight;
  }
  return found;
}

}  // namespace

void pooling_reference(const PoolingProblem& p, std::span<const double> image, int64_t row,
                       std::span<double> y, std::span<double> tolerance) {
  const Positions down = positions_of(p, p.rows, p.height, p.out_height, row);
  for (size_t j = 0; j < y.size(); ++j) {
    const Positions across =
        positions_of(p, p.columns, p.width, p.out_width, static_cast<int64_t>(j));
    double largest = -std::numeric_limits<double>::infinity(), sum = 0, magnitude = 0;
    for (const int64_t r : down.inside) {
      for (const int64_t c : across.inside) {
        const double value = image[static_cast<size_t>(r * p.width + c)];
        if (value > largest || std::isnan(value)) largest = value;
        sum += value;
        magnitude += std::fabs(value);
        if (std::isnan(largest)) break;
      }
      if (std::isnan(largest)) break;
    }
    if (p.mode == PoolingMode::max) {
      y[j] = largest;
      tolerance[j] = 0;
      continue;
    }
    const auto weight = static_cast<double>(down.weight * across.weight);
    const auto roundings = static_cast<double>(down.inside.size() + across.inside.size() + 9);
    y[j] = sum / weight;
    tolerance[j] = roundings * 0x1p-24 * magnitude / weight +
                   unit_roundoff(p.dtype) * std::fabs(y[j]) + min_subnormal(p.dtype);
  }
}

}  // namespace wide::catalog
