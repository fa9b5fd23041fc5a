// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Whole multilayer perceptrons in one launch.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "host/core/strategy_choice.hpp"
#include "host/fused/mlp_problem.hpp"
#include "host/fused/mlp_strategy.hpp"
#include "host/fused/routed_mlp_problem.hpp"
#include "host/fused/routed_mlp_strategy.hpp"
#include "host/model/layout.hpp"
#include "host/model/passes.hpp"
#include "host/model/rewrite.hpp"
#include "host/model/routed.hpp"
#include "wide/error.hpp"

namespace wide {

namespace {

using Layers = std::vector<const Node*>;

const LinearOp* plain_layer(const Node* node) {
  const auto* op = node == nullptr ? nullptr : std::get_if<LinearOp>(&node->operation);
  const bool is_plain =
      op != nullptr && op->residual == Residual::none && op->weight_format == WeightFormat::packed;
  return is_plain ? op : nullptr;
}

class MlpFuser {
 public:
  MlpFuser(const DeviceInfo& device, std::span<const VerifiedStrategy> verified, const Graph& graph,
           const ModelProblem& problem, const ModelOptions& options)
      : device_(device),
        verified_(verified),
        graph_(graph),
        problem_(problem),
        options_(options),
        readers_(graph),
        is_shared_(shared_values(graph, options.shared_parameters, options.drops_out)),
        has_choices_(values_of_choices(problem, graph, is_shared_)) {}

  Graph run(Notes& notes) {
    Rewrite rewrite(graph_);
    for (const Node& node : graph_.nodes()) {
      if (!taken_.contains(&node)) take_from(node);
      if (!taken_.contains(&node)) {
        rewrite.copy(node);
        continue;
      }
      // In the place of the last layer: operands of the layers may be computed between them.
      const auto found = mlps_.find(&node);
      if (found == mlps_.end()) continue;
      const Layers& layers = found->second;
      emit(rewrite, layers);
      for (size_t i = 1; i < layers.size(); ++i) {
        notes.push_back(layers[i]->name + ": fused with " + layers[0]->name + " to one mlp");
      }
    }
    return rewrite.finish();
  }

 private:
  bool shared(Value v) const { return is_shared_[static_cast<size_t>(v.index)]; }

  void take_from(const Node& first) {
    const Layers layers = layers_from(first);
    if (layers.size() < 2 || !is_worth_it(layers)) return;
    taken_.insert(layers.begin(), layers.end());
    mlps_.emplace(layers.back(), layers);
  }

  /// The longest run of layers from `first` that can be an mlp.
  Layers layers_from(const Node& first) const {
    if (plain_layer(&first) == nullptr) return {};
    Layers layers{&first};
    while (layers.size() < kernels::kMaxMlpLayers) {
      const Node& last = *layers.back();
      const Node* next = readers_.only(last.outputs[0]);
      const LinearOp* op = plain_layer(next);
      const bool fits = op != nullptr && next->operand("x") == last.outputs[0] &&
                        next->operand("bias").is_absent() == last.operand("bias").is_absent() &&
                        shared(next->outputs[0]) == shared(first.outputs[0]) &&
                        plain_layer(&last)->activation == plain_layer(&first)->activation;
      if (!fits) return layers;
      layers.push_back(next);
    }
    return layers;
  }

  MlpProblem problem_of(const Layers& layers) const {
    const ValueType& x = graph_.type(layers[0]->operand("x"));
    MlpProblem p;
    p.num_members = shared(layers[0]->outputs[0]) ? 1 : problem_.num_members;
    p.batch = problem_.batch;
    for (int axis = 1; axis + 1 < x.shape.rank(); ++axis) p.batch *= x.shape[axis];
    p.widths = {x.shape.back()};
    for (const Node* layer : layers) {
      p.widths.push_back(graph_.type(layer->outputs[0]).shape.back());
    }
    p.dtype = x.dtype;
    p.allow_tf32 = options_.allows_tf32;
    p.has_bias = !layers[0]->operand("bias").is_absent();
    p.activation = plain_layer(layers[0])->activation;
    p.last_activation = plain_layer(layers.back())->activation;
    return p;
  }

  /// The same layers on rows that are routed.
  RoutedMlpProblem routed_problem_of(const Layers& layers) const {
    const MlpProblem mlp = problem_of(layers);
    RoutedMlpProblem p;
    p.num_members = mlp.num_members;
    p.num_rows = mlp.batch * problem_.choices;
    p.choices =
        has_choices_[static_cast<size_t>(layers[0]->operand("x").index)] ? 1 : problem_.choices;
    p.widths = mlp.widths;
    p.dtype = mlp.dtype;
    p.allow_tf32 = mlp.allow_tf32;
    p.gathers = p.scatters = true;
    p.has_bias = mlp.has_bias;
    p.activation = mlp.activation;
    p.last_activation = mlp.last_activation;
    return p;
  }

  bool is_routed(const Layers& layers) const {
    return problem_.is_routed && !shared(layers[0]->outputs[0]);
  }

  /// Whether the primitive would run all layers in one launch.
  bool would_fuse(const Layers& layers, const std::string& strategy) const {
    if (is_routed(layers)) {
      return choose_routed_mlp_strategy(complete_routed_mlp_problem(routed_problem_of(layers)),
                                        device_, verified_, strategy)
                 .strategy == RoutedMlpStrategy::fused;
    }
    return choose_mlp_strategy(complete_mlp_problem(problem_of(layers)), device_, strategy,
                               verified_)
               .strategy == MlpStrategy::fused;
  }

  /// The automatic choice that the options name for all primitives.
  std::string automatic() const {
    std::string all = strategy_of(options_, "all", "all");
    return is_automatic(all) ? all : std::string(kAuto);
  }

  bool is_worth_it(const Layers& layers) const {
    const bool is_of_routed = is_routed(layers);
    const auto named = options_.strategies.find(is_of_routed ? "routed_mlp" : "mlp");
    const bool is_named = named != options_.strategies.end();
    // Linear layers with a named strategy must run by it.
    const bool names_layers = std::any_of(layers.begin(), layers.end(), [&](const Node* layer) {
      return !is_automatic(
          strategy_of(options_, layer->name, is_of_routed ? "routed_linear" : "linear"));
    });
    if (names_layers && !is_named) return false;
    // In ragged models a layer is one call, but an mlp one per member.
    if (!problem_.batches.empty() && !is_named) return false;
    try {
      const bool fuses = would_fuse(layers, is_named ? named->second : automatic());
      return is_named || fuses;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported) throw;
      return false;  // too wide, too deep: layer by layer
    }
  }

  void emit(Rewrite& rewrite, const Layers& layers) const {
    const MlpProblem p = problem_of(layers);
    std::vector<Operand> parts;
    for (size_t i = 0; i < layers.size(); ++i) {
      const std::string number = std::to_string(i);
      parts.push_back({"weight" + number, rewrite(layers[i]->operand("weight"))});
      if (p.has_bias) parts.push_back({"bias" + number, rewrite(layers[i]->operand("bias"))});
    }
    const std::string& name = layers[0]->name;
    const Value weights = rewrite.builder().append(rewrite.free_name(name + ".packed_weights"),
                                                   PackMlpOp{p.widths, p.has_bias}, parts);
    rewrite.append(name, MlpOp{p.widths, p.has_bias, p.activation, p.last_activation},
                   {{"x", rewrite(layers[0]->operand("x"))}, {"weights", weights}},
                   layers.back()->outputs);
  }

  const DeviceInfo& device_;
  const std::span<const VerifiedStrategy> verified_;
  const Graph& graph_;
  const ModelProblem& problem_;
  const ModelOptions& options_;
  const Readers readers_;
  std::vector<bool> is_shared_, has_choices_;
  std::unordered_set<const Node*> taken_;
  std::unordered_map<const Node*, Layers> mlps_;  ///< by their last layers
};

}  // namespace

Graph fuse_mlps(const DeviceInfo& device, std::span<const VerifiedStrategy> verified,
                const Graph& graph, const ModelProblem& problem, const ModelOptions& options,
                Notes& notes) {
  return MlpFuser(device, verified, graph, problem, options).run(notes);
}

}  // namespace wide
