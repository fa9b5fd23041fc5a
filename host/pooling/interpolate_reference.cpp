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

void interpolate_reference(const InterpolateProblem& p, std::span<const double> x, int64_t row,
                           std::span<double> y, std::span<double> tolerance) {
  constexpr double kUnit = 0x1p-24;
  const int64_t image = row / p.out_height;
  const double down =
      interpolate_position(p.coordinates, row % p.out_height, p.height, p.out_height, p.row_scale);
  for (size_t j = 0; j < y.size(); ++j) {
    const double across = interpolate_position(p.coordinates, static_cast<int64_t>(j), p.width,
                                               p.out_width, p.column_scale);
    double sum = 0, magnitude = 0;
    double least = std::numeric_limits<double>::infinity(), most = -least;
    for (const double r : {std::floor(down), std::floor(down) + 1}) {
      for (const double c : {std::floor(across), std::floor(across) + 1}) {
        // The nearer, the more; those of no weight may not exist.
        const double weight = (1 - std::fabs(down - r)) * (1 - std::fabs(across - c));
        if (weight <= 0) continue;
        const int64_t position =
            (image * p.height + static_cast<int64_t>(r)) * p.width + static_cast<int64_t>(c);
        const double value = x[static_cast<size_t>(position)];
        sum += weight * value;
        magnitude += weight * std::fabs(value);
        least = std::min(least, value);
        most = std::max(most, value);
      }
    }
    y[j] = sum;
    tolerance[j] = 4 * kUnit * (1 + 4 * kUnit) * magnitude + 2 * kUnit * (most - least) +
                   unit_roundoff(p.dtype) * std::fabs(sum) + 2 * min_subnormal(p.dtype);
  }
}

}  // namespace wide::catalog
