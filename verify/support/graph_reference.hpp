// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a graph computes for one member, in double, by plain loops over its definition: the judge of
// models. Shares no code with the library but the graph itself.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "wide/graph.hpp"

namespace wide::test {

/// A dense tensor of doubles.
struct Doubles {
  std::vector<int64_t> shape;
  std::vector<double> values;
};

Doubles to_doubles(const ConstTensorView& view);

/// The values of the graph's outputs from those of its inputs (a member's own) and parameters.
/// Throws std::logic_error for operations that it does not know.
std::map<std::string, Doubles> evaluate_graph(const Graph& graph,
                                              const std::map<std::string, Doubles>& inputs,
                                              const std::map<std::string, Doubles>& parameters);

}  // namespace wide::test
