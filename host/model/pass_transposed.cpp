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

/// Of fewer than three axes the missing ones are in front, and unused.
template <class T>
struct Three {
  T depth, height, width;
};
Three<const TransposedAxis*> named_axes(const std::vector<TransposedAxis>& axes) {
  const size_t n = axes.size();
  return {n < 3 ? nullptr : &axes[0], n < 2 ? nullptr : &axes[n - 2], &axes[n - 1]};
}

ConvOp convolution_of(const ConvTransposeOp& op, const std::vector<TransposedAxis>& axes) {
  const auto [depth, height, width] = named_axes(axes);
  ConvOp conv{.groups = op.groups, .activation = op.activation};
  conv.padding = {height == nullptr ? 0 : height->conv_padding(), width->conv_padding()};
  if (depth != nullptr) conv.depth.padding = depth->conv_padding();
  return conv;
}

DepthToSpaceOp interleave_of(const std::vector<TransposedAxis>& axes) {
  const auto [depth, height, width] = named_axes(axes);
  DepthToSpaceOp op{
      .block = {1, width->stride}, .first = {0, width->first()}, .size = {0, width->out()}};
  if (height != nullptr) {
    op.block.height = height->stride;
    op.first.height = height->first();
    op.size.height = height->out();
  }
  if (depth != nullptr) {
    op.depth_block = depth->stride;
    op.depth_first = depth->first();
    op.depth_size = depth->out();
  }
  return op;
}

/// Whether there is one phase, and the convolution has y's positions.
bool is_convolution(const std::vector<TransposedAxis>& axes) {
  return std::all_of(axes.begin(), axes.end(), [](const TransposedAxis& axis) {
    return axis.stride == 1 && axis.first() == 0 && axis.conv_outputs() == axis.out();
  });
}

ConvPhasesOp phases_of(const ConvTransposeOp& op, size_t num_axes) {
  ConvPhasesOp phases{.groups = op.groups, .stride = op.stride, .dilation = op.dilation};
  if (num_axes < 2) phases.stride.height = phases.dilation.height = 1;
  if (num_axes == 3) {
    phases.depth_stride = op.depth.stride;
    phases.depth_dilation = op.depth.dilation;
  }
  return phases;
}

void replace(Rewrite& rewrite, const Node& node, const ConvTransposeOp& op, Notes& notes) {
  const Graph& graph = rewrite.graph();
  const Value weight = node.operand("weight"), bias = node.operand("bias");
  const std::vector<TransposedAxis> axes =
      transposed_axes(op, graph.type(node.operand("x")).shape, graph.type(weight).shape);
  const ConvPhasesOp phases = phases_of(op, axes.size());
  GraphBuilder& g = rewrite.builder();
  const auto in_phases = [&](const char* operand, const char* suffix, Value value) {
    return g.append(rewrite.free_name(node.name + suffix), phases, {{operand, rewrite(value)}});
  };
  std::vector<Operand> operands{{"x", rewrite(node.operand("x"))},
                                {"weight", in_phases("weight", ".phases_weight", weight)}};
  if (!bias.is_absent()) operands.push_back({"bias", in_phases("bias", ".phases_bias", bias)});
  int64_t count = 1;
  for (const TransposedAxis& axis : axes) count *= axis.stride;
  const ConvOp conv = convolution_of(op, axes);
  if (is_convolution(axes)) {
    rewrite.append(node.name, conv, std::move(operands), node.outputs);
  } else {  // the layer's name is the convolution's, whose strategy may be named
    const Value y = g.append(node.name, conv, std::move(operands));
    rewrite.append(rewrite.free_name(node.name + ".interleaved"), interleave_of(axes), {{"x", y}},
                   node.outputs);
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
