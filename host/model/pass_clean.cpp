// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Nodes removed without a replacement: dropout in inference, and unread ones.
#include <algorithm>

#include "host/core/strategy_choice.hpp"
#include "host/model/passes.hpp"
#include "host/model/rewrite.hpp"

namespace wide {

Graph remove_dropout(const Graph& graph, Notes& notes) {
  Rewrite rewrite(graph);
  for (const Node& node : graph.nodes()) {
    if (std::holds_alternative<DropoutOp>(node.operation)) {
      bool is_output = false;
      for (const Operand& output : graph.outputs()) is_output |= output.value == node.outputs[0];
      // What has become of x: it may be the result of a removed dropout.
      const Value x = rewrite(node.operand("x"));
      // An output must be computed by a node, so that an input's own name does not become one.
      if (!is_output || rewrite.builder().graph().kind(x) == ValueKind::computed) {
        rewrite.replace(node.outputs[0], x);
        notes.push_back(node.name + ": dropout does nothing in inference");
        continue;
      }
    }
    rewrite.copy(node);
  }
  return rewrite.finish();
}

Graph remove_dead_nodes(const Graph& graph, Notes& notes) {
  std::vector<bool> is_read(static_cast<size_t>(graph.num_values()), false);
  const auto read = [&](Value v) { is_read[static_cast<size_t>(v.index)] = true; };
  const auto lives = [&](const Node& node) {
    for (const Value y : node.outputs) {
      if (is_read[static_cast<size_t>(y.index)]) return true;
    }
    return false;
  };
  for (const Operand& output : graph.outputs()) read(output.value);
  const std::span<const Node> nodes = graph.nodes();
  for (size_t i = nodes.size(); i-- > 0;) {
    if (!lives(nodes[i])) continue;
    for (const Operand& operand : nodes[i].operands) read(operand.value);
  }
  Rewrite rewrite(graph, [&](Value v) { return is_read[static_cast<size_t>(v.index)]; });
  for (const Node& node : nodes) {
    if (lives(node)) {
      rewrite.copy(node);
    } else {
      notes.push_back(node.name + ": nobody reads it");
    }
  }
  return rewrite.finish();
}

std::span<const std::string_view> strategy_groups() {
  static constexpr std::string_view kGroups[] = {
      "all",       "linear",    "ragged_linear", "conv",    "attention", "flash_attention",
      "recurrent", "embedding", "layernorm",     "rmsnorm", "chain",     "batchnorm",
      "groupnorm", "pointwise", "binary",        "mlp",     "pooling",   "softmax",
      "dropout",   "ensemble",  "interpolate",   "top_k",   "routing",   "routed_linear",
      "routed_mlp"};
  return kGroups;
}

std::string strategy_of(const ModelOptions& options, std::string_view node,
                        std::string_view primitive) {
  const auto groups = strategy_groups();
  const bool is_group = std::find(groups.begin(), groups.end(), node) != groups.end();
  for (const std::string_view key : {is_group ? primitive : node, primitive, groups.front()}) {
    const auto named = options.strategies.find(key);
    if (named != options.strategies.end()) return named->second;
  }
  return std::string(kAuto);
}

Graph run_passes(const Graph& graph, const ModelOptions& options, Notes& notes) {
  Graph current = remove_dead_nodes(graph, notes);
  if (!options.drops_out) current = remove_dropout(current, notes);
  if (options.folds_batchnorm) current = fold_batchnorm(current, options, notes);
  if (options.fuses_epilogues) current = fuse_epilogues(current, options, notes);
  current = replace_conv_transposes(current, notes);
  Notes unsaid;  // of parameters whose node was fused into another
  return remove_dead_nodes(current, unsaid);
}

}  // namespace wide
