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

/// One output, from `at(row, column)` of its channel.
template <class At>
void pool(const PoolingProblem& p, const Positions& down, const Positions& across, const At& at,
          double& y, double& tolerance) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0, magnitude = 0;
  for (const int64_t r : down.inside) {
    for (const int64_t c : across.inside) {
      const double value = at(r, c);
      if (value > largest || std::isnan(value)) largest = value;
      sum += value;
      magnitude += std::fabs(value);
      if (std::isnan(largest)) break;
    }
    if (std::isnan(largest)) break;
  }
  if (p.mode == PoolingMode::max) {
    y = largest;
    tolerance = 0;
    return;
  }
  const auto weight = static_cast<double>(down.weight * across.weight);
  const auto roundings = static_cast<double>(down.inside.size() + across.inside.size() + 9);
  y = sum / weight;
  tolerance = roundings * 0x1p-24 * magnitude / weight + unit_roundoff(p.dtype) * std::fabs(y) +
              min_subnormal(p.dtype);
}

}  // namespace

void pooling_reference(const PoolingProblem& p, std::span<const double> x, int64_t row,
                       std::span<double> y, std::span<double> tolerance) {
  const bool is_last = p.layout == ChannelLayout::channels_last;
  const int64_t columns = is_last ? p.out_width : 1;  // rows of y that a row of outputs is
  const int64_t image = row / columns / p.out_height;
  const Positions down =
      positions_of(p, p.rows, p.height, p.out_height, row / columns % p.out_height);
  for (size_t i = 0; i < y.size(); ++i) {
    const auto along = static_cast<int64_t>(i);
    const Positions across =
        positions_of(p, p.columns, p.width, p.out_width, is_last ? row % columns : along);
    pool(
        p, down, across,
        [&](int64_t r, int64_t c) {
          const int64_t position = (image * p.height + r) * p.width + c;
          return x[static_cast<size_t>(is_last ? position * p.channels + along : position)];
        },
        y[i], tolerance[i]);
  }
}

}  // namespace wide::catalog
