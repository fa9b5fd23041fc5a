// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Ensembles after the outputs of a finished graph: a file's, or a named one.
#include <algorithm>

#include "host/core/check.hpp"
#include "host/core/nearest.hpp"
#include "host/model/rewrite.hpp"
#include "wide/layers.hpp"

namespace wide {

namespace {

bool is_ensemble(const Graph& graph, const Operand& output) {
  const Node* producer = graph.producer(output.value);
  return producer != nullptr && std::holds_alternative<EnsembleOp>(producer->operation);
}

void require_outputs(const Graph& graph, const OutputEnsembles& what) {
  std::vector<std::string_view> known;
  for (const Operand& output : graph.outputs()) {
    if (!is_ensemble(graph, output)) known.push_back(output.name);
  }
  const std::string name = "graph: " + graph.name();
  WIDE_REQUIRE(!what.ensembles.empty(), name + ": there is no ensemble, expected at least one");
  WIDE_REQUIRE(!known.empty(), name + " has no output that is each member's");
  for (const std::string& output : what.outputs) {
    const bool is_known = std::find(known.begin(), known.end(), output) != known.end();
    WIDE_REQUIRE(is_known, name + " has no output \"" + output + "\" that is each member's" +
                               did_you_mean(output, known));
  }
}

}  // namespace

Graph with_ensembles(const Graph& graph, const OutputEnsembles& what) {
  require_outputs(graph, what);
  Rewrite rewrite(graph);
  for (const Node& node : graph.nodes()) rewrite.copy(node);
  GraphBuilder& g = rewrite.builder();
  for (const Operand& output : graph.outputs()) {
    const Value value = rewrite(output.value);
    const bool is_meant = what.outputs.empty() ? !is_ensemble(graph, output)
                                               : std::find(what.outputs.begin(), what.outputs.end(),
                                                           output.name) != what.outputs.end();
    if (!is_meant || what.keeps_members) g.output(output.name, value);
    if (!is_meant) continue;
    for (const EnsembleFunction kind : what.ensembles) {
      const std::string name = output.name + "." + std::string(ensemble_function_name(kind));
      g.output(name, layers::ensemble(g, name, value, kind));
    }
  }
  return std::move(g).build();
}

}  // namespace wide
