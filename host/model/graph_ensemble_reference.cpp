// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Ensembles of members' values, by plain loops.
#include <algorithm>
#include <cmath>

#include "host/model/graph_reference.hpp"

namespace wide::catalog {

Doubles joined_members(EnsembleFunction function, const std::vector<Doubles>& members) {
  Doubles y = members.front();
  const auto k = static_cast<double>(members.size());
  const auto features = static_cast<size_t>(y.shape.back());
  for (size_t i = 0; i < y.values.size(); ++i) {
    double mean = 0, powers = 0, squares = 0, votes = 0;
    for (const Doubles& member : members) {
      const auto row = member.values.begin() + static_cast<std::ptrdiff_t>(i - i % features);
      const auto largest = std::max_element(row, row + static_cast<std::ptrdiff_t>(features));
      mean += member.values[i] / k;
      powers += std::exp(member.values[i]) / k;
      votes += static_cast<size_t>(largest - row) == i % features ? 1 / k : 0;
    }
    for (const Doubles& member : members) squares += std::pow(member.values[i] - mean, 2);
    y.values[i] = function == EnsembleFunction::mean       ? mean
                  : function == EnsembleFunction::variance ? squares / (k - 1)
                  : function == EnsembleFunction::vote     ? votes
                  : function == EnsembleFunction::sum      ? mean * k
                                                           : std::log(powers);
  }
  return y;
}

}  // namespace wide::catalog
