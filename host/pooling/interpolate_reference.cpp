// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The definition, output by output; shares only the problem struct with what it judges.
#include "host/pooling/interpolate_reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace wide::catalog {

double interpolate_position(CoordinateMode mode, int64_t output, int64_t in, int64_t out,
                            float scale) {
  const auto i = static_cast<double>(output), last = static_cast<double>(in - 1),
             outputs = static_cast<double>(out);
  // i / s: a quotient of what is exact
  const auto divided = [&](double by) {
    return scale == 0.0f ? by * static_cast<double>(in) / outputs : by / static_cast<double>(scale);
  };
  double position = 0;
  switch (mode) {
    case CoordinateMode::half_pixel:
      position = divided(i + 0.5) - 0.5;
      break;
    case CoordinateMode::pytorch_half_pixel:
      position = out == 1 ? 0 : divided(i + 0.5) - 0.5;
      break;
    case CoordinateMode::align_corners:
      position = out == 1 ? 0 : i * last / (outputs - 1);
      break;
    case CoordinateMode::asymmetric:
      position = divided(i);
      break;
  }
  return std::clamp(position, 0.0, last);
}

namespace {

/// Neighbours of an output: four positions, of which some may have no weight.
struct Neighbours {
  double down, across;  ///< where the output lies

  /// f(row, column, weight) of each that has one: the nearer, the more; others may not exist.
  template <class F>
  void for_each(const F& f) const {
    for (const double r : {std::floor(down), std::floor(down) + 1}) {
      for (const double c : {std::floor(across), std::floor(across) + 1}) {
        const double weight = (1 - std::fabs(down - r)) * (1 - std::fabs(across - c));
        if (weight > 0) f(static_cast<int64_t>(r), static_cast<int64_t>(c), weight);
      }
    }
  }
};

}  // namespace

void interpolate_reference(const InterpolateProblem& p, std::span<const double> x, int64_t row,
                           std::span<double> y, std::span<double> tolerance) {
  constexpr double kUnit = 0x1p-24;
  const bool is_last = p.layout == ChannelLayout::channels_last;
  const int64_t columns = is_last ? p.out_width : 1;  // rows of y that a row of outputs is
  const int64_t image = row / columns / p.out_height;
  const double down = interpolate_position(p.coordinates, row / columns % p.out_height, p.height,
                                           p.out_height, p.row_scale);
  for (size_t i = 0; i < y.size(); ++i) {
    const auto along = static_cast<int64_t>(i);
    const double across = interpolate_position(p.coordinates, is_last ? row % columns : along,
                                               p.width, p.out_width, p.column_scale);
    double sum = 0, magnitude = 0;
    double least = std::numeric_limits<double>::infinity(), most = -least;
    Neighbours{down, across}.for_each([&](int64_t r, int64_t c, double weight) {
      const int64_t position = (image * p.height + r) * p.width + c;
      const double value =
          x[static_cast<size_t>(is_last ? position * p.channels + along : position)];
      sum += weight * value;
      magnitude += weight * std::fabs(value);
      least = std::min(least, value);
      most = std::max(most, value);
    });
    y[i] = sum;
    tolerance[i] = 4 * kUnit * (1 + 4 * kUnit) * magnitude + 2 * kUnit * (most - least) +
                   unit_roundoff(p.dtype) * std::fabs(sum) + 2 * min_subnormal(p.dtype);
  }
}

}  // namespace wide::catalog
