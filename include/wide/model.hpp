// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// model: N members of one graph as one model.
//
//   ModelPlan plan = make_model_plan(context, graph, {.num_members = 8, .batch = 32});
//   Model model(context, plan, members);            // loads the members' parameters
//   model.run({x}, {y}, {stream, workspace});
//
// A Model owns the parameters and nothing else: activations lie in the caller's workspace.
// Members may have batches of their own: {.num_members = 3, .batches = {8, 0, 32}}.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wide/model_plan.hpp"

namespace wide {

struct MemberLoads;

/// A member's parameters, owned, on the CPU, by their names in the graph as it was given.
using OwnedParameters = std::map<std::string, Tensor, std::less<>>;

/// Views of one member's parameters, or of several members', in order; valid as long as those
/// exist.
MemberParameters views_of(const OwnedParameters& parameters);
MemberParameters views_of(const OwnedParameters&& parameters) = delete;
std::vector<MemberParameters> views_of(std::span<const OwnedParameters> members);
std::vector<MemberParameters> views_of(const std::vector<OwnedParameters>&& members) = delete;

/// A plan with its parameters in place. Copies, and the results of with_batch(), are handles of the
/// same members. Running is const and may be done from several threads, each with its own
/// Execution. Calls that change members or read them back, on CUDA: make them on the stream of the
/// runs, or while nothing runs; such calls of several threads take turns. On the CPU they may come
/// at any time from any thread: a change waits for the runs in progress, and later runs wait for
/// it, so that a run has the members from either before or after a change. Pointers never change:
/// captured graphs stay valid. A change that is refused, or runs out of memory on the host, has
/// changed nothing. The parameters' memory is freed when the last copy and the last replay are
/// destroyed: on CUDA the caller makes sure that no queued work still uses it, as for a
/// Tensor. A model that was moved from may only be assigned to or destroyed.
class Model {
 public:
  /// Allocates memory().weights_bytes and loads the members. `members` has a set of parameters for
  /// each member; tensors lie on the CPU or on the model's device. Those on the device are read on
  /// a stream of the constructor's own, so whatever writes them must be complete. fp32, fp16 and
  /// bf16 become the graph's dtype, rounded to nearest. Waits for its copies. Throws
  /// invalid_argument with member and parameter where one is missing, of another shape, or unknown;
  /// the counter of PyTorch's BatchNorm, NAME.num_batches_tracked beside a NAME.running_mean, is
  /// ignored.
  Model(const Context& context, const ModelPlan& plan, std::span<const MemberParameters> members);

  const ModelPlan& plan() const { return plan_; }

  /// Enqueues every step. Never allocates or synchronizes; may be captured in a CUDA graph. Outputs
  /// overlap neither inputs nor one another, and nothing overlaps the workspace.
  /// Errors: invalid_argument (operands contradict the plan, workspace, handles), unsupported
  /// (handles without a library that a step calls): nothing was enqueued. Also the primitives'.
  void run(const ModelArguments& arguments, const Execution& execution) const;
  /// The same, of operands spelled out: model.run({x}, {y}, {stream, workspace}).
  void run(std::initializer_list<ConstTensorView> inputs, std::initializer_list<TensorView> outputs,
           const Execution& execution) const {
    run({{inputs.begin(), inputs.size()}, {outputs.begin(), outputs.size()}}, execution);
  }
  /// A single step, for measuring: those before it must have run on the same Execution, with no
  /// change of members in between.
  void run_step(int64_t step, const ModelArguments& arguments, const Execution& execution) const;

  /// Replaces all parameters of a member, on `stream`, after whatever writes them there. Does not
  /// wait where all are on the device, dense, of the graph's dtype and stored as they are given:
  /// then it may be captured, and their memory must last until the stream is past this. What is
  /// converted, reordered, folded, packed, quantised or shared by members passes through the host.
  /// What would wait for a stream that is being captured is refused by name, here and below, and
  /// leaves the capture valid.
  void replace(int64_t member, const MemberParameters& parameters, Stream stream);
  /// Sets one parameter of a member, by its name in the graph as given. The others keep their
  /// values; what is computed from several of them is recomputed. Dtypes, places and refusals are
  /// those of replace(), including that of another value for a parameter that all members share.
  /// Waits where that does.
  void set(int64_t member, std::string_view parameter, const ConstTensorView& view, Stream stream);
  /// Makes member `to` a copy of member `from`, on the device; does not wait.
  void clone(int64_t from, int64_t to, Stream stream);
  /// A member's parameters as they were given, rounded to the graph's dtype where that differs,
  /// those that a batchnorm was folded into included. Waits for `stream`.
  OwnedParameters get(int64_t member, Stream stream) const;
  /// One of them, into the caller's memory on the CPU or the model's device: densely packed, of the
  /// graph's dtype, or fp32, fp16 or bf16 where that is one of these. Waits for `stream`.
  void get(int64_t member, std::string_view parameter, const TensorView& destination,
           Stream stream) const;

  /// Moves the unmasked members to the front, in order, on the device, and masks those after them.
  /// Returns the previous index of each member now in front. Does not wait. In a ragged model rows
  /// belong to the index: the member moved to index i has the rows of member i; so do
  /// dropout's seeds, in any model.
  std::vector<int64_t> compact(Stream stream);

  /// The same members, for another batch: parameters are shared, so that a change of a member
  /// changes both models. Operands lie as the new plan says, which need not be as this model's:
  /// with one row a value may need no copy. Throws unsupported where that batch would store
  /// parameters differently.
  Model with_batch(int64_t batch) const;
  /// Likewise, with a number of rows for each member, ModelProblem::batches; parameters are stored
  /// differently where layers were fused into an mlp.
  Model with_batches(std::vector<int64_t> batches) const;

  /// The first `num_members` members alone: the others are neither read nor computed. compact()
  /// brings those that a search goes on with to the front. Parameters and masks are shared, so that
  /// a change of a member changes both models; memory().weights_bytes is that of all members.
  /// Operands are of fewer members, as the plan says. Where the other model masks all of these,
  /// which it may while others remain, ensembles of these alone are those of no member: a mean
  /// is NaN.
  Model with_num_members(int64_t num_members) const;

  /// Masked members are left out of ensembles but still computed. mask() refuses the last member
  /// that is not masked. Does not wait.
  void mask(int64_t member, Stream stream);
  void unmask(int64_t member, Stream stream);
  bool is_masked(int64_t member) const;

  /// For a plan with drops_out: member i draws its numbers from seed + i, with a sequence of its
  /// own for each dropout of the graph. For another pass take another `sequence`, not another seed:
  /// with seed + 1 member i drops what member i + 1 dropped with `seed`. sequence: less than 2^64
  /// divided by the number of the graph's dropouts, rounded down; so none repeats another's masks.
  /// Until this is called both are 0. Does not wait; may be captured.
  void seed_dropout(uint64_t seed, uint64_t sequence, Stream stream);
  /// The same with a seed for each member, in their order. Members with the same seed drop the
  /// same.
  void seed_dropout(std::span<const uint64_t> seeds, uint64_t sequence, Stream stream);
  /// As seed_dropout with the same seeds and the next sequence, which is computed where the seeds
  /// lie: captured together with a run (ReplayOptions::advances_dropout), each replay is another
  /// pass. After the last sequence comes 0. Never allocates or waits.
  void advance_dropout(Stream stream);

  struct State;

 private:
  friend class ChunkedModel;
  friend class ModelReplay;
  void check(const ModelArguments& arguments, const Execution& execution) const;
  void enqueue(const ModelArguments& arguments, const Execution& execution) const;
  void require_member(int64_t member) const;
  void load(int64_t member, const MemberParameters& parameters, Stream stream, MemberLoads& loads);
  void set_mask(int64_t member, bool is_masked, Stream stream);
  Model with_problem(const ModelProblem& problem, const std::string& what) const;
  Model with_fewer_rows(int64_t batch) const;  ///< operands lie as this model's
  Model with_plan(ModelPlan plan, const std::string& what) const;
  Model(ModelPlan plan, std::shared_ptr<State> state)
      : plan_(std::move(plan)), state_(std::move(state)) {}
  ModelPlan plan_;
  std::shared_ptr<State> state_;
};

/// Plan and model in one: N sets of parameters, N members; those on the device must be complete,
/// as for Model.
Model compile(const Context& context, const Graph& graph, std::span<const MemberParameters> members,
              int64_t batch, const ModelOptions& options = {});

/// Names of the parameters that are equal, bit for bit, in all `members`: candidates for
/// ModelOptions::shared_parameters. Tensors lie on the CPU.
std::vector<std::string> equal_parameters(const Graph& graph,
                                          std::span<const MemberParameters> members);

}  // namespace wide
