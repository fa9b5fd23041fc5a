// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operations of a graph, counted from its definition.
#include <algorithm>
#include <array>

#include "host/model/graph_reference.hpp"
#include "host/window_positions.hpp"

namespace wide::catalog {

namespace {

/// Elements of one row of the batch.
double elements(const Graph& graph, Value value) {
  double n = 1;
  for (const int64_t extent : graph.type(value).shape) {
    if (extent != kBatch) n *= static_cast<double>(extent);
  }
  return n;
}

/// Depth, height and width, of either convolution; outputs and kernels are yet to be set.
template <class Conv>
std::array<Windows, 3> windows_of(const Conv& op) {
  return {Windows{0, 0, op.depth.stride, op.depth.padding, op.depth.dilation},
          Windows{0, 0, op.stride.height, op.padding.height, op.dilation.height},
          Windows{0, 0, op.stride.width, op.padding.width, op.dilation.width}};
}

struct NodeFlops {
  const Graph& graph;
  const Node& node;
  bool skips_keys;  ///< that lengths may hide
  double out() const { return elements(graph, node.outputs[0]); }
  double extent(const char* operand, int axis) const {
    return static_cast<double>(graph.type(node.operand(operand)).shape[axis]);
  }
  /// Scores and sums over values, each a product of heads*D for all pairs of positions that meet.
  double core(double tq, double tk, double features, bool is_causal, int64_t window = 0) const {
    if (skips_keys && !node.operand("key_lengths").is_absent()) return 0;
    double keys = tk * (is_causal ? 0.5 : 1);  // that a query sees, on average
    if (window > 0) keys = std::min(keys, static_cast<double>(window) * (is_causal ? 1 : 2));
    return 4 * tq * keys * features;
  }
  double operator()(const LinearOp&) const {
    return 2 * out() * static_cast<double>(graph.type(node.operand("x")).shape.back());
  }
  double operator()(const MatmulOp&) const {
    return 2 * out() * static_cast<double>(graph.type(node.operand("left")).shape.back());
  }
  double operator()(const QuantizeOp&) const { return 0; }  // before anything runs
  /// Products with padding do not count.
  double operator()(const ConvOp& op) const {
    const Shape &x = graph.type(node.operand("x")).shape,
                &weight = graph.type(node.operand("weight")).shape,
                &y = graph.type(node.outputs[0]).shape;
    const auto first_position = [](ChannelLayout layout) {
      return layout == ChannelLayout::channels_last ? 1 : 2;
    };
    const int own = first_position(op.layout),
              of_x = first_position(op.x_layout.value_or(op.layout));
    const std::array<Windows, 3> axes = windows_of(op);
    const int num_axes = x.rank() - 2;
    double positions = 1, kernel = 1, taps = 1;
    for (int i = 0; i < num_axes; ++i) {
      Windows windows = axes[static_cast<size_t>(3 - num_axes + i)];
      windows.outputs = y[own + i], windows.kernel = weight[own + i];
      positions *= static_cast<double>(windows.outputs);
      kernel *= static_cast<double>(windows.kernel);
      taps *= static_cast<double>(taps_inside(x[of_x + i], windows));
    }
    const double channels = static_cast<double>(num_elements(weight) / weight[0]) / kernel;
    return 2 * (out() / positions) * channels * taps;
  }
  /// Nor do products whose sums would lie in the padding.
  double operator()(const ConvTransposeOp& op) const {
    const Shape &x = graph.type(node.operand("x")).shape,
                &weight = graph.type(node.operand("weight")).shape,
                &y = graph.type(node.outputs[0]).shape;
    const std::array<Windows, 3> axes = windows_of(op);
    double flops = 2 * static_cast<double>(x[1]) * static_cast<double>(weight[1]);
    for (int axis = 2; axis < x.rank(); ++axis) {
      Windows windows = axes[static_cast<size_t>(5 - x.rank() + axis - 2)];
      windows.outputs = x[axis], windows.kernel = weight[axis];
      flops *= static_cast<double>(taps_inside(y[axis], windows));
    }
    return flops;
  }
  double operator()(const ConvPhasesOp&) const { return 0; }
  double operator()(const DepthToSpaceOp&) const { return 0; }
  double operator()(const UpsampleOp&) const { return 0; }
  double operator()(const AttentionOp& op) const {
    const double t = extent("x", 1), d = extent("x", 2);
    if (node.operand("key").is_absent()) return 8 * t * d * d + core(t, t, d, op.is_causal);
    const double tk = extent("key", 1);
    const double inputs = extent("key", 2) + extent("value", 2);
    return 4 * t * d * d + 2 * tk * d * inputs + core(t, tk, d, op.is_causal);
  }
  double operator()(const FlashAttentionOp& op) const {
    return core(extent("q", 1), extent("k", 1), extent("q", 2), op.is_causal, op.window);
  }
  double operator()(const RecurrentOp&) const {
    const Shape& weight = graph.type(node.operand("hidden_weight")).shape;
    return 2 * extent("x", 1) * static_cast<double>(weight[0]) *
           (extent("x", 2) + static_cast<double>(weight[1]));
  }
  double operator()(const PoolingOp&) const { return elements(graph, node.operand("x")); }
  double operator()(const InterpolateOp&) const {  // two products and a sum along each axis
    return (graph.type(node.outputs[0]).shape.rank() == 3 ? 3 : 9) * out();
  }
  double operator()(const ReshapeOp&) const { return 0; }
  double operator()(const SliceOp&) const { return 0; }
  template <class Op>
  double operator()(const Op&) const {
    return out();
  }
};

}  // namespace

namespace {

double flops_of(const Graph& graph, bool skips_keys) {
  double total = 0;
  for (const Node& node : graph.nodes()) {
    total += std::visit(NodeFlops{graph, node, skips_keys}, node.operation);
  }
  return total;
}

}  // namespace

double graph_flops(const Graph& graph) {
  return flops_of(graph, false);
}
double least_graph_flops(const Graph& graph) {
  return flops_of(graph, true);
}

double embedding_table_bytes(const Graph& graph) {
  double bytes = 0;
  for (const Value parameter : graph.parameters()) {
    bool is_gathered = false, is_read = false;
    for (const Node& node : graph.nodes()) {
      for (const auto& [name, value] : node.operands) {
        if (value != parameter) continue;
        const bool is_table =
            std::holds_alternative<EmbeddingOp>(node.operation) && name == "table";
        (is_table ? is_gathered : is_read) = true;
      }
    }
    const ValueType& type = graph.type(parameter);
    if (is_gathered && !is_read)
      bytes += static_cast<double>(num_elements(type.shape) * dtype_bytes(type.dtype));
  }
  return bytes;
}

}  // namespace wide::catalog
