// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From nodes to calls of primitives' plans. What each operation needs is in lower_*.cpp; here is
// what they share: where operands lie, where parameters are to be put, and the steps so far.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "host/attention/attention_problem.hpp"
#include "host/attention/flash_attention_problem.hpp"
#include "host/conv/conv_problem.hpp"
#include "host/core/tuned_choice.hpp"
#include "host/embedding/embedding_problem.hpp"
#include "host/fused/mlp_problem.hpp"
#include "host/linear/linear_problem.hpp"
#include "host/model/place.hpp"
#include "host/norm/batchnorm_run.hpp"
#include "host/norm/groupnorm_run.hpp"
#include "host/norm/row_norm.hpp"
#include "host/pointwise/binary_run.hpp"
#include "host/pointwise/dropout_run.hpp"
#include "host/pointwise/ensemble_run.hpp"
#include "host/pointwise/pointwise_problem.hpp"
#include "host/pointwise/softmax_run.hpp"
#include "host/pooling/interpolate_problem.hpp"
#include "host/pooling/pooling_problem.hpp"
#include "host/recurrent/recurrent_problem.hpp"
#include "wide/model.hpp"

namespace wide {

/// A parameter, or a value computed from parameters, as the model stores it: for all members one
/// after another, or once for all.
struct ParameterSlot {
  Value value;
  Dims order;  ///< of the axes of the value's shape; rank 0: as they are
  Place place;
  int64_t stored_members = 1;  ///< 1: once for all
  int64_t member_bytes = 0;
  int32_t storage = -1;
};

using RunStep = std::function<void(const Bases&, const Execution&)>;

/// A step by one of its strategies.
struct PlannedStep {
  ModelStep info;
  std::string policy;  ///< empty where the strategy has none
  RunStep run;
};

/// What a step does, whatever its strategy: to find its fastest, it is planned by each.
struct StepPlanner {
  std::function<TuningKey()> key;  ///< what its plan looks up in a tuning cache; empty for copies
  std::function<PlannedStep(const PlanOptions&)> plan;
};

struct LoweredStep {
  ModelStep info;
  RunStep run;
  std::vector<int32_t> storages;  ///< that it reads or writes
  StepPlanner planner{};
};

/// Dropout's own parameters, which belong to members but not to the graph.
struct DropoutSlots {
  Value of;                    ///< output of the dropout
  int32_t probabilities = -1;  ///< storage; none where it has an operand
  float probability = 0;
};

class Lowering {
 public:
  /// `stored_members`: how many the memory of the weights is for; a plan may run the first of them
  /// alone.
  Lowering(const Context& context, const Graph& graph, const ModelProblem& problem,
           const ModelOptions& options, int64_t stored_members);

  const Context& context() const { return context_; }
  const Graph& graph() const { return graph_; }
  const ModelOptions& options() const { return options_; }
  Device device() const { return context_.device(); }

  /// Options for a plan of this primitive: a node's, or under the primitive's name that of a step
  /// which is no node's.
  PlanOptions plan_options(std::string_view node, std::string_view primitive) const;

  const ModelProblem& problem() const { return problem_; }
  int64_t num_members() const { return problem_.num_members; }
  bool is_shared(Value value) const { return is_shared_[static_cast<size_t>(value.index)]; }
  /// Members that a node is computed with: 1 where its result is one for all, and where rows lie
  /// as one member's.
  int64_t members_of(const Node& node) const;

  /// For ragged models: from now on places and parameters are those of one member, or of all
  /// members (-1), whose rows then count as one member's.
  void select(int64_t member) { member_ = member; }
  bool is_ragged() const { return !first_rows_.empty(); }
  /// Ragged and routed: values lie like those of a single member that has all members' rows.
  bool lies_as_one() const { return is_ragged() || problem_.is_routed; }
  int64_t first_row(int64_t member) const { return first_rows_[static_cast<size_t>(member)]; }
  int64_t num_rows(int64_t member) const { return first_row(member + 1) - first_row(member); }

  /// Of a routed model: whether a value has a row for each choice, [batch*K, ..], as what members
  /// compute has, or what is computed of that; all others have the batch's rows.
  bool has_choices(Value value) const { return has_choices_[static_cast<size_t>(value.index)]; }
  /// Of a mixture: whether the layer that writes y applies the gates, as only outputs read it.
  bool takes_gates(Value y) const { return takes_gates_[static_cast<size_t>(y.index)]; }
  /// A value as a node with a row for each choice reads it, of which there are K of each row of the
  /// batch: where it has the batch's rows, a copy, made once. Throws unsupported where nothing may
  /// be moved.
  Place repeated(const Node& node, Value value);
  /// Lowers a node whose operands are all repeated() where its result has a row for each choice.
  void with_repeated_operands(const Node& node, const std::function<void()>& lower);

  Place place(Value value) const;
  /// An operand as a node of N members reads it: shared ones have a member stride of 0.
  Place operand(const Node& node, std::string_view name) const;
  /// For primitives that take no member stride of 0: a shared operand is copied, once per member,
  /// into the layout of the node's result. Throws unsupported where nothing may be moved.
  Place own_operand(const Node& node, std::string_view name);

  /// Of a node that runs once over rows that have members' own parameters; else absent.
  PlacedView norm_ids(const Node& node) const;

  /// Absent operands give absent views.
  PlacedView rows(const Node& node, std::string_view name) const;  ///< [R, N, D]
  PlacedView rows(const Node& node, Value value) const;
  /// [B, T, N, D], where B and T are rows of one stride: else throws MoveNeeded.
  PlacedView positions(const Node& node, std::string_view name) const;
  PlacedView positions(Value value) const;
  PlacedView joined(const Node& node, std::string_view name);  ///< [B, N*C, ..]; own_operand
  PlacedView joined(const Node& node, Value value) const;
  /// A parameter as [N, ..], with its axes reordered where `order` is not of rank 0.
  PlacedView parameter(const Node& node, std::string_view name, const Dims& order = {});
  /// The same with the members' first axes joined: [N*Cout, ..].
  PlacedView joined_parameter(const Node& node, std::string_view name, const Dims& order = {});
  /// Memory for values that are not the graph's parameters, in the weights: [N, elements]. A
  /// `storage` of -1 is set to the new one.
  PlacedView own_parameter(Dtype dtype, int64_t elements, int32_t& storage);
  struct DropoutViews {
    PlacedView seeds, probabilities;  ///< [N, 2], [N, 1]
  };
  DropoutViews dropout_parameters(const Node& node, const DropoutOp& op);

  /// The addresses that plans are described with: never read.
  Bases example() const;

  /// A step by a primitive's plan. `arguments` are the plan's, at given Bases, by whose at() they
  /// get every view: what the step reads or writes is known from that. `family` is the primitive by
  /// the name that strategies and caches have.
  template <class Problem, class Plan, class Arguments>
  void add(const Node& node, std::string_view primitive, std::string_view family,
           const Problem& problem, Plan (*make)(const Context&, const Problem&, const PlanOptions&),
           const Arguments& arguments) {
    StepPlanner planner;
    planner.key = [problem] { return tuning_key(problem); };
    planner.plan =
        [context = context_, problem, make, arguments,
         info = unplanned(node.name, primitive, members_of(node))](const PlanOptions& options) {
          return planned_step(info, make(context, problem, options), arguments);
        };
    PlannedStep planned = planner.plan(plan_options(node.name, family));
    add_step({std::move(planned.info), std::move(planned.run), {}, std::move(planner)}, arguments);
  }
  /// A step of all members by a plan that is not made again, as it owns more than the step does or
  /// has no node of its own.
  template <class Plan, class Arguments>
  void add_planned(const std::string& node, std::string_view primitive, const Plan& plan,
                   const Arguments& arguments) {
    PlannedStep planned = planned_step(unplanned(node, primitive, num_members()), plan, arguments);
    add_step({std::move(planned.info), std::move(planned.run), {}}, arguments);
  }
  /// In addition to a node's own step: copies of outputs, parts of a concat.
  void add_copy(const std::string& node, const PlacedView& from, const PlacedView& to,
                int64_t num_members);

  /// What a run needs beside the graph's values: another input, memory between steps.
  PlacedView add_input(const std::string& name, Dtype dtype, const Shape& shape);
  PlacedView add_activation(Dtype dtype, const Shape& shape);

  /// Returns its number.
  int32_t add_storage(const Storage& storage);

  std::vector<Storage> storages;
  std::vector<ParameterSlot> slots;
  std::vector<DropoutSlots> dropouts;
  std::vector<LoweredStep> steps;
  std::vector<ModelOperand> inputs, outputs;
  const std::vector<Place>& places() const { return places_; }  ///< of all values
  std::vector<std::string> notes;                               ///< for ModelPlan::notes()
  int64_t weights_bytes = 0, table_bytes = 0;
  int32_t mask_storage = -1;  ///< uint8, one a member, 1 for members that take part in ensembles
  PlacedView ids_of_routing, first_rows_of_routing, order_of_routing;  ///< of a routed model
  PlacedView gates_of_routing;  ///< fp32 [R]; absent: there are none
  int32_t seed_storage = -1;    ///< of `dropouts`, one after another: int64 [dropouts, N, 2]

 private:
  friend class Placer;
  static ModelStep unplanned(const std::string& node, std::string_view primitive,
                             int64_t num_members) {
    return {.node = node,
            .primitive = std::string(primitive),
            .strategy = {},
            .explain = {},
            .num_members = num_members};
  }
  template <class Plan, class Arguments>
  static PlannedStep planned_step(ModelStep info, const Plan& plan, const Arguments& arguments) {
    info.strategy = plan.strategy();
    info.explain = plan.explain();
    info.is_tuned = explains_tuned(info.explain);
    info.scratch_bytes = plan.workspace_bytes();
    info.vendor_calls = plan.vendor_calls();
    return {std::move(info), std::string(plan.policy()),
            [plan, arguments](const Bases& at, const Execution& e) { plan.run(arguments(at), e); }};
  }
  template <class Arguments>
  void add_step(LoweredStep step, const Arguments& arguments) {
    Bases at = example();
    at.used = &step.storages;
    (void)arguments(at);
    steps.push_back(std::move(step));
  }
  Place stored(const Node& node, Value value, const Dims& order);
  Place selected(Place parameter) const;
  int32_t add_weights(int64_t bytes);

  const Context& context_;
  const Graph& graph_;
  const ModelProblem& problem_;
  const ModelOptions& options_;
  int64_t stored_members_;
  std::vector<bool> is_shared_;
  std::vector<bool> has_choices_, takes_gates_;
  std::map<int32_t, Place> repeated_;  ///< by the value's index
  std::vector<int64_t> first_rows_;    ///< none, or of a ragged model as first_rows() says
  int64_t member_ = -1;
  std::vector<Place> places_;
};

/// Gives every value a place: inputs, outputs, activations, views, and results in place of operands
/// that are no longer needed. Copies of outputs that cannot be written in place are returned, to be
/// added after all steps; of a mixture, outputs that are yet to be combined.
struct OutputCopy {
  std::string name;
  Place from, to;
  bool lacks_gates = false;  ///< rows are yet to be multiplied, and those of no member to be zeros
};
std::vector<OutputCopy> place_values(Lowering& lowering, const ModelProblem& problem);

/// Gives a problem of linear or routed_linear what quantised weights do not show of themselves.
template <class Problem>
void set_weight_format(const Lowering& l, const Node& node, const LinearOp& op, Problem& like) {
  if (op.weight_format == WeightFormat::packed) return;
  like.weight_format = op.weight_format;
  like.group_size = op.group_size;
  like.in_features = l.graph().type(node.operand("x")).shape.back();
  like.out_features = op.out_features;
}

void lower(Lowering& l, const Node& node, const LinearOp& op);
void lower(Lowering& l, const Node& node, const MatmulOp& op);
void lower(Lowering& l, const Node& node, const ConvOp& op);
void lower(Lowering& l, const Node& node, const ConvTransposeOp& op);
void lower(Lowering& l, const Node& node, const DepthToSpaceOp& op);
void lower(Lowering& l, const Node& node, const UpsampleOp& op);
void lower(Lowering& l, const Node& node, const AttentionOp& op);
void lower(Lowering& l, const Node& node, const FlashAttentionOp& op);
void lower(Lowering& l, const Node& node, const RecurrentOp& op);
void lower(Lowering& l, const Node& node, const EmbeddingOp& op);
void lower(Lowering& l, const Node& node, const LayernormOp& op);
void lower(Lowering& l, const Node& node, const RmsnormOp& op);
void lower(Lowering& l, const Node& node, const ChainOp& op);
void lower(Lowering& l, const Node& node, const BatchnormOp& op);
void lower(Lowering& l, const Node& node, const GroupnormOp& op);
void lower(Lowering& l, const Node& node, const InstancenormOp& op);
void lower(Lowering& l, const Node& node, const PointwiseOp& op);
void lower(Lowering& l, const Node& node, const BinaryOp& op);
void lower(Lowering& l, const Node& node, const PoolingOp& op);
void lower(Lowering& l, const Node& node, const InterpolateOp& op);
void lower(Lowering& l, const Node& node, const SoftmaxOp& op);
void lower(Lowering& l, const Node& node, const DropoutOp& op);
void lower(Lowering& l, const Node& node, const ConcatOp& op);
void lower(Lowering& l, const Node& node, const SliceOp& op);
void lower(Lowering& l, const Node& node, const ReshapeOp& op);
void lower(Lowering& l, const Node& node, const TransposeOp& op);
void lower(Lowering& l, const Node& node, const FoldBatchnormOp& op);
void lower(Lowering& l, const Node& node, const ConvPhasesOp& op);
void lower(Lowering& l, const Node& node, const MlpOp& op);
void lower(Lowering& l, const Node& node, const PackMlpOp& op);
void lower(Lowering& l, const Node& node, const QuantizeOp& op);
void lower(Lowering& l, const Node& node, const EnsembleOp& op);

}  // namespace wide
