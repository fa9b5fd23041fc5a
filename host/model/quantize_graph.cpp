// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Quantised weights are parameters computed from parameters: when members are loaded.
#include <algorithm>
#include <map>

#include "host/core/check.hpp"
#include "host/core/nearest.hpp"
#include "host/model/rewrite.hpp"

namespace wide {

namespace {

/// The node's operation, where its weights are not quantised yet.
const LinearOp* packed_linear(const Node& node) {
  const auto* op = std::get_if<LinearOp>(&node.operation);
  return op != nullptr && op->weight_format == WeightFormat::packed ? op : nullptr;
}

void require_layers(const Graph& graph, const std::vector<std::string>& layers) {
  std::vector<std::string_view> known;
  for (const Node& node : graph.nodes()) {
    if (packed_linear(node) != nullptr) known.push_back(node.name);
  }
  const std::string name = "graph: " + graph.name();
  WIDE_REQUIRE(!known.empty(), name + " has no linear layer whose weights could be quantised");
  for (const std::string& layer : layers) {
    const bool is_known = std::find(known.begin(), known.end(), layer) != known.end();
    WIDE_REQUIRE(is_known, name + " has no linear layer \"" + layer +
                               "\" whose weights could be quantised" + did_you_mean(layer, known));
  }
}

class Quantizer {
 public:
  Quantizer(const Graph& graph, const WeightQuantization& how) : how_(how), rewrite_(graph) {}

  Graph run() {
    for (const Node& node : rewrite_.graph().nodes()) {
      const LinearOp* op = packed_linear(node);
      const bool is_meant = how_.layers.empty() || std::find(how_.layers.begin(), how_.layers.end(),
                                                             node.name) != how_.layers.end();
      if (op != nullptr && is_meant) {
        append(node, *op);
      } else {
        rewrite_.copy(node);
      }
    }
    return rewrite_.finish();
  }

 private:
  void append(const Node& node, LinearOp op) {
    const Value weight = node.operand("weight");
    op.weight_format = how_.format;
    op.group_size = how_.group_size;
    op.out_features = rewrite_.graph().type(weight).shape[0];
    std::vector<Operand> operands = rewrite_.operands(node);
    for (Operand& operand : operands) {
      if (operand.name == "weight") operand.value = blob_of(node, weight);
    }
    rewrite_.append(node.name, op, std::move(operands), node.outputs);
  }

  /// One blob for all layers that read this weight.
  Value blob_of(const Node& node, Value weight) {
    const auto [found, is_new] = blobs_.try_emplace(weight);
    if (is_new) {
      found->second = rewrite_.builder().append(rewrite_.free_name(node.name + ".quantized_weight"),
                                                QuantizeOp{how_.format, how_.group_size},
                                                {{"weight", rewrite_(weight)}});
    }
    return found->second;
  }

  const WeightQuantization& how_;
  Rewrite rewrite_;
  std::map<Value, Value> blobs_;
};

}  // namespace

Graph with_quantized_weights(const Graph& graph, const WeightQuantization& how) {
  require_layers(graph, how.layers);
  return Quantizer(graph, how).run();
}

}  // namespace wide
