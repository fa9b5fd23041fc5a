// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// ONNX's operators around attention as plain loops over doubles, one node after the other: what a
// file means, whatever an importer makes of it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "host/model/graph_reference.hpp"
#include "verify/support/onnx_case.hpp"

namespace wide::test::onnx {

using catalog::Doubles;

/// A node whose second input, where it is one of integers, is written as a constant.
struct Step {
  std::string op;
  std::vector<std::string> in, out;
  /// Reshape's and Expand's shape, Transpose's order, Cast's type, the axis of Split, Concat,
  /// Squeeze and Gather; of Slice its axis, start, end and step, forward; Pad's pads.
  Extents numbers{};
  std::string text{};  ///< Einsum's equation, Pad's mode
};

/// What runs of a graph, in order: nodes of activations that are no mere views. A "transpose" is a
/// copy.
std::vector<std::string> operations(const Graph& graph);

/// The steps as a file's nodes.
std::vector<std::string> nodes_of(const std::vector<Step>& steps);

using Tensors = std::map<std::string, Doubles>;

using Steps = std::vector<Step>;
inline Steps operator+(Steps a, const Steps& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The i-th of values in [-0.7, 0.7] that do not repeat.
double number(size_t i);
/// Of such values, rounded to fp32; others than those of the tensors that are there already.
void add_tensor(Tensors& all, const std::string& name, Extents shape);

/// What the steps make of `known`.
Tensors evaluate_steps(const std::vector<Step>& steps, Tensors known);

}  // namespace wide::test::onnx
