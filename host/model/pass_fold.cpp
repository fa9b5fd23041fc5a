// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Batchnorm in inference is a factor and a summand per channel: weights and bias can hold them.
#include "host/model/layout.hpp"
#include "host/model/passes.hpp"
#include "host/model/rewrite.hpp"

namespace wide {

namespace {

/// Whether channels of y are the rows of the layer's weight, with nothing in between; a transposed
/// convolution's are its columns.
bool can_take_in(const Graph& graph, const Node& layer) {
  if (const auto* conv = std::get_if<ConvOp>(&layer.operation)) {
    return conv->activation == Activation::none && conv->residual == Residual::none &&
           conv->layout == ChannelLayout::channels_first;
  }
  if (const auto* transposed = std::get_if<ConvTransposeOp>(&layer.operation)) {
    return transposed->activation == Activation::none;
  }
  const auto* linear = std::get_if<LinearOp>(&layer.operation);
  return linear != nullptr && linear->activation == Activation::none &&
         linear->residual == Residual::none && linear->weight_format == WeightFormat::packed &&
         graph.type(layer.outputs[0]).shape.rank() == 2;
}

/// The layer that a batchnorm can be folded into; nullptr where there is none. A per-member
/// batchnorm would make a layer that is computed once for all members one per member.
const Node* layer_of(const Graph& graph, const Readers& readers, const std::vector<bool>& is_shared,
                     const Node& node) {
  if (!std::holds_alternative<BatchnormOp>(node.operation)) return nullptr;
  const Value x = node.operand("x"), y = node.outputs[0];
  const Node* layer = graph.producer(x);
  const bool fits =
      layer != nullptr && can_take_in(graph, *layer) && readers.only(x) == &node &&
      is_shared[static_cast<size_t>(x.index)] == is_shared[static_cast<size_t>(y.index)];
  return fits ? layer : nullptr;
}

void emit(Rewrite& rewrite, const Node& batchnorm, const Node& layer) {
  const Graph& graph = rewrite.graph();
  const auto& op = std::get<BatchnormOp>(batchnorm.operation);
  const auto* transposed = std::get_if<ConvTransposeOp>(&layer.operation);
  const FoldBatchnormOp fold{.epsilon = op.epsilon,
                             .dtype = graph.type(layer.outputs[0]).dtype,
                             .transposed_groups = transposed == nullptr ? 0 : transposed->groups};
  const auto old = [&](const Node& node, const char* name) {
    return Operand{name, rewrite(node.operand(name))};
  };
  GraphBuilder& g = rewrite.builder();
  const Value weight =
      g.append(rewrite.free_name(batchnorm.name + ".folded_weight"), fold,
               {old(layer, "weight"), old(batchnorm, "gamma"), old(batchnorm, "running_variance")});
  const Value bias = g.append(rewrite.free_name(batchnorm.name + ".folded_bias"), fold,
                              {old(layer, "bias"), old(batchnorm, "gamma"), old(batchnorm, "beta"),
                               old(batchnorm, "running_mean"), old(batchnorm, "running_variance")});
  rewrite.append(layer.name, layer.operation, {old(layer, "x"), {"weight", weight}, {"bias", bias}},
                 batchnorm.outputs);
}

}  // namespace

Graph fold_batchnorm(const Graph& graph, const ModelOptions& options, Notes& notes) {
  Rewrite rewrite(graph);
  const Readers readers(graph);
  const std::vector<bool> is_shared =
      shared_values(graph, options.shared_parameters, options.drops_out);
  std::vector<const Node*> taken(static_cast<size_t>(graph.num_values()), nullptr);
  for (const Node& node : graph.nodes()) {
    if (const Node* layer = layer_of(graph, readers, is_shared, node)) {
      taken[static_cast<size_t>(layer->outputs[0].index)] = &node;
    }
  }
  for (const Node& node : graph.nodes()) {
    if (taken[static_cast<size_t>(node.outputs[0].index)] != nullptr) continue;
    if (const Node* layer = layer_of(graph, readers, is_shared, node)) {
      emit(rewrite, node, *layer);
      notes.push_back(node.name + ": folded into " + layer->name);
    } else {
      rewrite.copy(node);
    }
  }
  return rewrite.finish();
}

}  // namespace wide
