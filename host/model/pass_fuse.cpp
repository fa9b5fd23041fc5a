// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Work that a layer's epilogue can do is done there, while the sums are still in registers.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "host/model/layout.hpp"
#include "host/model/passes.hpp"
#include "host/model/rewrite.hpp"

namespace wide {

namespace {

/// A layer with the nodes that are fused into it.
struct Fusion {
  const Node* layer = nullptr;
  std::vector<const Node*> taken;  ///< in their order; the fused node takes the place of the last
  Activation activation = Activation::none;
  Residual residual = Residual::none;
  Value residual_value{}, bias{};
};

/// relu, both gelus and silu; none for other functions.
Activation activation_of(const Node& node) {
  const auto* op = std::get_if<PointwiseOp>(&node.operation);
  if (op == nullptr) return Activation::none;
  switch (op->function) {
    case PointwiseFunction::relu:
      return Activation::relu;
    case PointwiseFunction::gelu:
      return Activation::gelu;
    case PointwiseFunction::gelu_tanh:
      return Activation::gelu_tanh;
    case PointwiseFunction::silu:
      return Activation::silu;
    default:
      return Activation::none;
  }
}

class Fuser {
 public:
  Fuser(const Graph& graph, const ModelOptions& options)
      : graph_(graph),
        readers_(graph),
        is_shared_(shared_values(graph, options.shared_parameters, options.drops_out)) {
    for (const Node& node : graph.nodes()) add(node);
  }

  Graph run(Notes& notes) {
    Rewrite rewrite(graph_);
    for (const Node& node : graph_.nodes()) {
      const auto found = owner_.find(&node);
      if (found == owner_.end()) {
        rewrite.copy(node);
        continue;
      }
      const Fusion& fusion = fusions_[found->second];
      if (fusion.taken.back() != &node) continue;
      emit(rewrite, fusion);
      for (const Node* taken : fusion.taken) {
        notes.push_back(taken->name + ": fused into " + fusion.layer->name);
      }
    }
    return rewrite.finish();
  }

 private:
  bool shared(Value v) const { return is_shared_[static_cast<size_t>(v.index)]; }

  /// The other operand of an addition that `fusion` can do; absent for other nodes.
  Value summand(const Node& add, Value value) const {
    const auto* op = std::get_if<BinaryOp>(&add.operation);
    const bool is_sum =
        op != nullptr && op->function == BinaryFunction::add && op->activation == Activation::none;
    if (!is_sum) return {};
    return add.operand("x") == value ? add.operand("other") : add.operand("x");
  }

  /// An epilogue adds it to the sum: the layer's other steps come later.
  bool take_bias(Fusion& f, const Node& node, Value value) const {
    const bool is_first = f.taken.empty() && f.activation == Activation::none &&
                          f.residual != Residual::after_activation;
    const bool can = std::holds_alternative<LinearOp>(f.layer->operation) && is_first &&
                     f.layer->operand("bias").is_absent() &&
                     shared(node.outputs[0]) == shared(value);
    const Value other = summand(node, value);
    if (!can || other.is_absent() || graph_.kind(other) != ValueKind::parameter) return false;
    if (graph_.type(other).shape != Shape{graph_.type(value).shape.back()}) return false;
    f.bias = other;
    return true;
  }

  bool take_residual(Fusion& f, const Node& node, Value value) const {
    const Value other = summand(node, value);
    const bool can = !std::holds_alternative<ConvTransposeOp>(f.layer->operation) &&
                     f.residual == Residual::none && !other.is_absent() && other != value &&
                     graph_.type(other) == graph_.type(value) && shared(other) == shared(value);
    if (!can) return false;
    f.residual =
        f.activation == Activation::none ? Residual::before_activation : Residual::after_activation;
    f.residual_value = other;
    return true;
  }

  /// A residual after the activation is the last step of an epilogue.
  static bool take_activation(Fusion& f, const Node& node) {
    const Activation activation = activation_of(node);
    const bool can = activation != Activation::none && f.activation == Activation::none &&
                     f.residual != Residual::after_activation;
    if (!can) return false;
    f.activation = activation;
    return true;
  }

  void add(const Node& layer) {
    Fusion f;
    f.layer = &layer;
    if (const auto* linear = std::get_if<LinearOp>(&layer.operation)) {
      f.activation = linear->activation;
      f.residual = linear->residual;
    } else if (const auto* matmul = std::get_if<MatmulOp>(&layer.operation)) {
      f.activation = matmul->activation;
      f.residual = matmul->residual;
    } else if (const auto* conv = std::get_if<ConvOp>(&layer.operation)) {
      f.activation = conv->activation;
      f.residual = conv->residual;
    } else if (const auto* transposed = std::get_if<ConvTransposeOp>(&layer.operation)) {
      f.activation = transposed->activation;
    } else {
      return;
    }
    Value value = layer.outputs[0];
    while (const Node* reader = readers_.only(value)) {
      const bool is_free = owner_.find(reader) == owner_.end();
      const bool is_taken =
          is_free && (take_activation(f, *reader) || take_bias(f, *reader, value) ||
                      take_residual(f, *reader, value));
      if (!is_taken) break;
      f.taken.push_back(reader);
      value = reader->outputs[0];
    }
    if (f.taken.empty()) return;
    owner_[&layer] = fusions_.size();
    for (const Node* node : f.taken) owner_[node] = fusions_.size();
    fusions_.push_back(std::move(f));
  }

  static void emit(Rewrite& rewrite, const Fusion& f) {
    std::vector<Operand> operands = rewrite.operands(*f.layer);
    if (!f.bias.is_absent()) operands.push_back({"bias", rewrite(f.bias)});
    if (!f.residual_value.is_absent()) {
      operands.push_back({"residual", rewrite(f.residual_value)});
    }
    Operation operation = f.layer->operation;
    std::visit(
        [&](auto& op) {
          if constexpr (requires { op.residual; }) {
            op.residual = f.residual;
          }
          if constexpr (requires { op.activation; }) op.activation = f.activation;
        },
        operation);
    rewrite.append(f.layer->name, operation, std::move(operands), f.taken.back()->outputs);
  }

  const Graph& graph_;
  const Readers readers_;
  std::vector<bool> is_shared_;
  std::vector<Fusion> fusions_;
  std::map<const Node*, size_t> owner_;
};

/// An addition before a norm, which then reads both and writes the sum where others read it.
struct NormFusion {
  const Node* add;
  const Node* norm;
  const Node* place;  ///< the node after which the fused one stands
};

bool is_plain_norm(const Node& node, Value x) {
  const bool is_norm = std::holds_alternative<LayernormOp>(node.operation) ||
                       std::holds_alternative<RmsnormOp>(node.operation);
  return is_norm && node.operand("x") == x && node.operand("residual").is_absent() &&
         node.outputs.size() == 1;
}

/// The last of the nodes that compute what a norm reads: gamma and beta may come after x.
const Node* last_writer(const Graph& graph, const Node& norm) {
  const Node* last = nullptr;
  for (const Operand& operand : norm.operands) {
    const Node* writer = graph.producer(operand.value);
    if (last == nullptr || (writer != nullptr && writer > last)) last = writer;
  }
  return last;
}

bool reads(const Node& node, Value value) {
  return std::any_of(node.operands.begin(), node.operands.end(),
                     [&](const Operand& operand) { return operand.value == value; });
}

/// The first norm of a sum, where it can come before all other readers of the sum.
std::optional<NormFusion> fusion_of(const Graph& graph, const Node& add,
                                    const std::vector<bool>& is_shared) {
  const auto* op = std::get_if<BinaryOp>(&add.operation);
  const bool is_sum =
      op != nullptr && op->function == BinaryFunction::add && op->activation == Activation::none;
  if (!is_sum) return {};
  const Value x = add.operand("x"), other = add.operand("other"), y = add.outputs[0];
  const auto shared = [&](Value v) { return is_shared[static_cast<size_t>(v.index)]; };
  if (graph.type(x) != graph.type(other) || x == other || shared(x) != shared(other)) return {};
  const Node* first_reader = nullptr;
  for (const Node& node : graph.nodes()) {
    if (first_reader == nullptr && reads(node, y)) first_reader = &node;
    if (!is_plain_norm(node, y)) continue;
    // A sum that is one for all members would be written for each.
    if (shared(node.outputs[0]) != shared(y)) return {};
    const Node* place = last_writer(graph, node);
    if (first_reader <= place) return {};
    return NormFusion{&add, &node, place};
  }
  return {};
}

void emit_norm(Rewrite& rewrite, const NormFusion& fusion, bool writes_sum) {
  std::vector<Operand> operands{{"x", rewrite(fusion.add->operand("x"))},
                                {"residual", rewrite(fusion.add->operand("other"))}};
  for (const Operand& operand : fusion.norm->operands) {
    if (operand.name != "x") operands.push_back({operand.name, rewrite(operand.value)});
  }
  Operation operation = fusion.norm->operation;
  if (auto* layernorm = std::get_if<LayernormOp>(&operation)) {
    layernorm->writes_sum = writes_sum;
  } else {
    std::get<RmsnormOp>(operation).writes_sum = writes_sum;
  }
  std::vector<Value> outputs{fusion.norm->outputs[0]};
  if (writes_sum) outputs.push_back(fusion.add->outputs[0]);
  rewrite.append(fusion.norm->name, operation, std::move(operands), outputs);
}

Graph fuse_norms(const Graph& graph, const ModelOptions& options, Notes& notes) {
  const std::vector<bool> is_shared =
      shared_values(graph, options.shared_parameters, options.drops_out);
  const Readers readers(graph);
  std::set<const Node*> taken;
  std::multimap<const Node*, NormFusion> fusions;  // by their places
  for (const Node& node : graph.nodes()) {
    const std::optional<NormFusion> fusion = fusion_of(graph, node, is_shared);
    if (!fusion) continue;
    taken.insert({fusion->add, fusion->norm});
    fusions.emplace(fusion->place, *fusion);
    notes.push_back(node.name + ": fused into " + fusion->norm->name);
  }
  Rewrite rewrite(graph);
  for (const Node& node : graph.nodes()) {
    if (!taken.contains(&node)) rewrite.copy(node);
    const auto [begin, end] = fusions.equal_range(&node);
    for (auto found = begin; found != end; ++found) {
      const NormFusion& fusion = found->second;
      emit_norm(rewrite, fusion, readers.count(fusion.add->outputs[0]) > 1);
    }
  }
  return rewrite.finish();
}

}  // namespace

Graph fuse_epilogues(const Graph& graph, const ModelOptions& options, Notes& notes) {
  return fuse_norms(Fuser(graph, options).run(notes), options, notes);
}

}  // namespace wide
