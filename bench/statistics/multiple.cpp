// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/statistics/multiple.hpp"

#include <algorithm>
#include <numeric>

#include "host/core/text.hpp"
#include "wide/error.hpp"

namespace wide::bench {

std::vector<double> adjust_p_values(std::span<const double> p_values) {
  for (const double p : p_values) {
    if (!(p >= 0 && p <= 1)) {
      throw Error(ErrorCode::invalid_argument,
                  "statistics: a p-value is " + text(p) + ", expected 0 to 1");
    }
  }
  std::vector<size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t i, size_t j) { return p_values[i] > p_values[j]; });
  std::vector<double> adjusted(p_values.size());
  double least = 1;
  size_t rank = order.size();
  for (const size_t i : order) {
    least = std::min(least,
                     p_values[i] * static_cast<double>(order.size()) / static_cast<double>(rank--));
    adjusted[i] = least;
  }
  return adjusted;
}

}  // namespace wide::bench
