// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Graphs as text: for people, for Graphviz and for programs.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "host/model/batch.hpp"
#include "wide/graph.hpp"

namespace wide {

namespace {

using Json = nlohmann::ordered_json;

/// Whether a node reads parameters, or values computed from parameters.
bool has_parameters(const Graph& graph, const Node& node) {
  return std::any_of(node.operands.begin(), node.operands.end(),
                     [&](const Operand& operand) { return !is_batched(graph, operand.value); });
}

/// "heads=4, causal=true"
std::string attributes_text(const Node& node) {
  std::string text;
  for (const auto& [name, value] : operation_attributes(node.operation)) {
    text += (text.empty() ? "" : ", ") + name + "=" + value;
  }
  return text;
}

/// "conv1, residual=block.add": names of computed operands; x, parts and parameters by name only.
std::string operands_text(const Graph& graph, const Node& node) {
  std::string text;
  for (const Operand& operand : node.operands) {
    if (graph.kind(operand.value) == ValueKind::parameter) continue;
    const bool is_plain = operand.name == "x" || operand.name.starts_with("part");
    text += (text.empty() ? "" : ", ") + (is_plain ? "" : operand.name + "=") +
            graph.name(operand.value);
  }
  return text;
}

std::string call_text(const Graph& graph, const Node& node) {
  const std::string attributes = attributes_text(node);
  return std::string(operation_name(graph, node)) + "(" + operands_text(graph, node) +
         (attributes.empty() ? "" : "; " + attributes) + ")";
}

int64_t parameters_of(const Graph& graph, const Node& node) {
  int64_t count = 0;
  for (const Operand& operand : node.operands) {
    if (graph.kind(operand.value) != ValueKind::parameter) continue;
    count += num_elements(graph.type(operand.value).shape);
  }
  return count;
}

std::string list_text(const Graph& graph) {
  std::string text;
  for (const Value input : graph.inputs()) {
    text += std::string("[input]  ") + graph.name(input) + ": " + to_string(graph.type(input)) +
            (graph.kind(input) == ValueKind::shared_input ? ", shared" : "") + "\n";
  }
  for (const Node& node : graph.nodes()) {
    text += std::string(has_parameters(graph, node) ? "[module] " : "[func]   ") + node.name +
            " = " + call_text(graph, node) + ": " + to_string(graph.type(node.outputs[0])) + "\n";
  }
  for (const Operand& output : graph.outputs()) {
    text += "[output] " + output.name + " = " + graph.name(output.value) + ": " +
            to_string(graph.type(output.value)) + "\n";
  }
  return text;
}

/// Modules are the parts of names between dots.
std::string tree_text(const Graph& graph) {
  std::string text = graph.name() + "\n";
  std::vector<std::string> open;  // the modules that the last node was in
  for (const Node& node : graph.nodes()) {
    std::vector<std::string> path;
    size_t start = 0;
    for (size_t dot = node.name.find('.'); dot != std::string::npos;
         dot = node.name.find('.', start)) {
      path.push_back(node.name.substr(start, dot - start));
      start = dot + 1;
    }
    size_t same = 0;
    while (same < path.size() && same < open.size() && path[same] == open[same]) ++same;
    for (size_t depth = same; depth < path.size(); ++depth) {
      text += std::string(2 * (depth + 1), ' ') + path[depth] + "\n";
    }
    open = path;
    text += std::string(2 * (path.size() + 1), ' ') + node.name.substr(start) + ": " +
            std::string(operation_name(graph, node)) + " -> " +
            to_string(graph.type(node.outputs[0])) + "\n";
  }
  return text;
}

std::string table_text(const Graph& graph) {
  std::vector<std::vector<std::string>> rows{{"node", "operation", "output", "parameters"}};
  for (const Node& node : graph.nodes()) {
    const std::string attributes = attributes_text(node);
    rows.push_back({node.name,
                    std::string(operation_name(graph, node)) +
                        (attributes.empty() ? "" : " (" + attributes + ")"),
                    to_string(graph.type(node.outputs[0])),
                    std::to_string(parameters_of(graph, node))});
  }
  rows.push_back({"", "", "", std::to_string(graph.num_parameters())});
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t c = 0; c + 1 < row.size(); ++c) {
      line += row[c] + std::string(widths[c] - row[c].size() + 2, ' ');
    }
    text += line + std::string(widths.back() - row.back().size(), ' ') + row.back() + "\n";
  }
  return text;
}

std::string quoted(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') text += '\\';
    text += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return text + "\"";
}

std::string dot_text(const Graph& graph) {
  const auto id = [](Value v) { return "v" + std::to_string(v.index); };
  std::string text = "digraph " + quoted(graph.name()) + " {\n  node [shape=box];\n";
  for (const Value input : graph.inputs()) {
    text += "  " + id(input) + " [shape=ellipse, label=" +
            quoted(graph.name(input) + "\n" + to_string(graph.type(input))) + "];\n";
  }
  for (const Node& node : graph.nodes()) {
    text += "  " + id(node.outputs[0]) + " [label=" +
            quoted(node.name + "\n" + std::string(operation_name(graph, node)) + "\n" +
                   to_string(graph.type(node.outputs[0]))) +
            "];\n";
    for (const Operand& operand : node.operands) {
      if (graph.kind(operand.value) == ValueKind::parameter) continue;
      const Node* from = graph.producer(operand.value);
      const Value source = from == nullptr ? operand.value : from->outputs[0];
      text += "  " + id(source) + " -> " + id(node.outputs[0]) +
              (operand.name == "x" ? "" : " [label=" + quoted(operand.name) + "]") + ";\n";
    }
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const Operand& output = graph.outputs()[i];
    const std::string name = "out" + std::to_string(i);
    text += "  " + name + " [shape=ellipse, label=" + quoted(output.name) + "];\n";
    text += "  " + id(graph.producer(output.value)->outputs[0]) + " -> " + name + ";\n";
  }
  return text + "}\n";
}

Json type_json(const ValueType& type) {
  Json shape = Json::array();
  for (const int64_t extent : type.shape) {
    if (extent == kBatch)
      shape.push_back("B");
    else
      shape.push_back(extent);
  }
  return {{"dtype", dtype_name(type.dtype)}, {"shape", std::move(shape)}};
}

Json value_json(const Graph& graph, Value value) {
  Json json{{"name", graph.name(value)}};
  json.update(type_json(graph.type(value)));
  return json;
}

std::string json_text(const Graph& graph) {
  Json inputs = Json::array(), parameters = Json::array(), nodes = Json::array();
  Json outputs = Json::array();
  for (const Value input : graph.inputs()) {
    inputs.push_back(value_json(graph, input));
    inputs.back()["shared"] = graph.kind(input) == ValueKind::shared_input;
  }
  for (const Value parameter : graph.parameters()) {
    parameters.push_back(value_json(graph, parameter));
  }
  for (const Node& node : graph.nodes()) {
    Json operands = Json::object(), attributes = Json::object(), results = Json::array();
    for (const Operand& operand : node.operands) {
      operands[operand.name] = graph.name(operand.value);
    }
    for (const auto& [name, value] : operation_attributes(node.operation)) {
      attributes[name] = value;
    }
    for (const Value y : node.outputs) results.push_back(value_json(graph, y));
    nodes.push_back({{"name", node.name},
                     {"operation", operation_name(graph, node)},
                     {"attributes", std::move(attributes)},
                     {"operands", std::move(operands)},
                     {"outputs", std::move(results)}});
  }
  for (const Operand& output : graph.outputs()) {
    outputs.push_back({{"name", output.name}, {"value", graph.name(output.value)}});
  }
  const Json json{{"name", graph.name()},
                  {"inputs", std::move(inputs)},
                  {"parameters", std::move(parameters)},
                  {"nodes", std::move(nodes)},
                  {"outputs", std::move(outputs)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string to_string(const Graph& graph, GraphStyle style) {
  switch (style) {
    case GraphStyle::list:
      return list_text(graph);
    case GraphStyle::tree:
      return tree_text(graph);
    case GraphStyle::table:
      return table_text(graph);
    case GraphStyle::dot:
      return dot_text(graph);
    case GraphStyle::json:
      return json_text(graph);
  }
  return "";
}

}  // namespace wide
