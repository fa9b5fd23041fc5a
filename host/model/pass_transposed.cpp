// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Transposed convolutions become convolutions, so that all of their strategies run them.
#include "host/core/text.hpp"
#include "host/model/conv_transpose.hpp"
#include "host/model/passes.hpp"
#include "host/model/rewrite.hpp"

namespace wide {

namespace {

ConvOp convolution_of(const ConvTransposeOp& op, const TransposedAxes& axes) {
  const auto& [depth, height, width] = axes;
  ConvOp conv{.groups = op.groups, .activation = op.activation};
  conv.padding = {height.conv_padding(), width.conv_padding()};
  conv.depth.padding = depth.conv_padding();
  return conv;
}

DepthToSpaceOp interleave_of(const ConvTransposeOp& op, const TransposedAxes& axes) {
  const auto& [depth, height, width] = axes;
  return {.block = {height.stride, width.stride},
          .first = {height.first(), width.first()},
          .size = {height.out(), width.out()},
          .depth_block = depth.stride,
          .depth_first = depth.first(),
          .depth_size = depth.out(),
          .groups = op.groups};
}

ConvPhasesOp phases_of(const ConvTransposeOp& op, const TransposedAxes& axes) {
  const auto& [depth, height, width] = axes;
  return {.groups = op.groups,
          .stride = {height.stride, width.stride},
          .dilation = {height.dilation, width.dilation},
          .depth_stride = depth.stride,
          .depth_dilation = depth.dilation};
}

/// Whether there is one phase, and the convolution has y's positions.
bool is_convolution(const TransposedAxes& axes) {
  return std::all_of(axes.begin(), axes.end(), [](const TransposedAxis& axis) {
    return axis.stride == 1 && axis.first() == 0 && axis.conv_outputs() == axis.out();
  });
}

void replace(Rewrite& rewrite, const Node& node, const ConvTransposeOp& op, Notes& notes) {
  const Graph& graph = rewrite.graph();
  const Value weight = node.operand("weight"), bias = node.operand("bias");
  const TransposedAxes axes =
      transposed_axes(op, graph.type(node.operand("x")).shape, graph.type(weight).shape);
  const ConvPhasesOp phases = phases_of(op, axes);
  GraphBuilder& g = rewrite.builder();
  const auto in_phases = [&](const char* operand, const char* suffix, Value value) {
    return g.append(rewrite.free_name(node.name + suffix), phases, {{operand, rewrite(value)}});
  };
  std::vector<Operand> operands{{"x", rewrite(node.operand("x"))},
                                {"weight", in_phases("weight", ".phases_weight", weight)}};
  if (!bias.is_absent()) operands.push_back({"bias", in_phases("bias", ".phases_bias", bias)});
  const int64_t count = axes[0].stride * axes[1].stride * axes[2].stride;
  const ConvOp conv = convolution_of(op, axes);
  if (is_convolution(axes)) {
    rewrite.append(node.name, conv, std::move(operands), node.outputs);
  } else {  // the layer's name is the convolution's, whose strategy may be named
    const Value y = g.append(node.name, conv, std::move(operands));
    rewrite.append(rewrite.free_name(node.name + ".interleaved"), interleave_of(op, axes),
                   {{"x", y}}, node.outputs);
  }
  notes.push_back(node.name + ": transposed, run as a convolution" +
                  (count == 1 ? "" : " to " + text(count) + " times the channels, interleaved"));
}

}  // namespace

Graph replace_conv_transposes(const Graph& graph, Notes& notes) {
  Rewrite rewrite(graph);
  for (const Node& node : graph.nodes()) {
    if (const auto* op = std::get_if<ConvTransposeOp>(&node.operation)) {
      replace(rewrite, node, *op, notes);
    } else {
      rewrite.copy(node);
    }
  }
  return rewrite.finish();
}

}  // namespace wide
