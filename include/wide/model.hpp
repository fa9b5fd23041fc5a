// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// model: N members of one graph as one model.
//
//   ModelPlan plan = make_model_plan(context, graph, {.num_members = 8, .batch = 32});
//   Model model(context, plan, members);            // loads the members' parameters
//   model.run({inputs, outputs}, {stream, workspace});
//
// A plan says exactly how many bytes everything takes before anything is allocated. A Model owns
// the parameters and nothing else: activations lie in the caller's workspace. Members may have
// batches of their own: {.num_members = 3, .batches = {8, 0, 32}}.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wide/graph.hpp"
#include "wide/plan.hpp"

namespace wide {

class TuningCache;
struct MemberLoads;

struct ModelProblem {
  int64_t num_members = 1;
  int64_t batch = 1;  ///< rows of every input, per member
  /// Rows of each member, in order; a member may have none. Such a model is "ragged": members' rows
  /// follow one another, [sum of batches, D], and `batch` becomes the largest of these. A shared
  /// input has `batch` rows, of which a member reads the first, as many as it has rows. Empty:
  /// `batch` each.
  std::vector<int64_t> batches{};
  friend bool operator==(const ModelProblem&, const ModelProblem&) = default;
};

struct ModelOptions {
  bool folds_batchnorm = true;  ///< into the preceding convolution or linear layer
  bool fuses_epilogues = true;  ///< activations and residuals into the preceding product
  bool reuses_memory = true;    ///< of activations that are no longer read
  bool allows_tf32 = false;     ///< fp32 products may round their operands to tf32
  /// Copies a value where its readers expect its members in different layouts; otherwise such a
  /// graph is refused, with the node's name.
  bool moves_data = true;
  bool drops_out = false;  ///< Monte Carlo: dropout is active, with its own numbers per member
  /// Parameters that are the same for all members: what depends on these and on shared inputs only
  /// is computed once. If such a parameter is stored once, members whose values differ are refused.
  /// If it is stored per member (as in a layer whose input is per member), each keeps its own
  /// value. Names as in the graph as given, read or not.
  std::vector<std::string> shared_parameters{};
  /// The layout of image convolutions and of the nodes between them: channels last runs better on
  /// tensor cores, but transposes images on the way in and out (not where a first layer of few
  /// channels can read them as they are). Absent: last where more convolutions of a region would
  /// run by `wgmma` than copies are needed, else as in the graph.
  std::optional<ChannelLayout> channel_layout{};
  /// Strategies by a node's name, by primitive, {"linear", "cublas_batched"}, or for "all", looked
  /// up in this order; also {"all", "auto_unverified"} (see PlanOptions). Others are chosen as by
  /// "auto". Layers whose strategy is named are not fused into an mlp, unless a strategy is
  /// named for that as well.
  std::map<std::string, std::string, std::less<>> strategies{};
  /// Copied when the plan is made, since with_batch() and chunks make further plans.
  const TuningCache* tuning = nullptr;
};

/// "default", "fast" (tf32 is allowed), "debug" (each node by itself, in memory of its own), "safe"
/// (member after member, by the strategy `sequential`). Throws invalid_argument for others.
ModelOptions model_options(std::string_view preset);

/// Exact, before anything is allocated.
struct ModelMemory {
  int64_t weights_bytes = 0;                  ///< what a Model allocates
  int64_t activation_bytes = 0;               ///< of the workspace: values between nodes
  int64_t scratch_bytes = 0;                  ///< of the workspace: what single nodes need
  int64_t input_bytes = 0, output_bytes = 0;  ///< the caller's
  /// What a ragged plan itself owns on CUDA from its creation: the tables of ragged_linear.
  int64_t table_bytes = 0;
  int64_t workspace_bytes() const { return activation_bytes + scratch_bytes; }
  int64_t total_bytes() const {
    return weights_bytes + workspace_bytes() + input_bytes + output_bytes + table_bytes;
  }
};

/// An input or output as the caller provides it: densely packed.
struct ModelOperand {
  std::string name;
  Dtype dtype = Dtype::fp32;
  Shape shape;  ///< of all members: [B, N*D], [B, N*C, H, W], [N, B, ..]; or shared: [B, D]; or
                ///< of a ragged model: [sum of batches, D]
  /// The axis of a member's shape along which members are joined or, where is_stacked, before which
  /// they have an axis of their own; -1: one for all members.
  int member_axis = -1;
  bool is_stacked = false;
  /// In a ragged model N + 1 entries: member i has the rows [first_rows[i], first_rows[i + 1]).
  std::vector<int64_t> first_rows{};
};

/// Member `index` of an operand's tensor, without a copy: [B, D] of [B, N*D], or its rows in a
/// ragged model; the whole tensor where it is one for all members. copy() brings members in and out
/// one by one. For a chunked model the batch may differ. Throws invalid_argument where the view
/// does not fit the operand, or there is no such member.
TensorView member_view(const ModelOperand& operand, const TensorView& view, int64_t num_members,
                       int64_t index);
ConstTensorView member_view(const ModelOperand& operand, const ConstTensorView& view,
                            int64_t num_members, int64_t index);

/// A node as it runs.
struct ModelStep {
  std::string node;
  std::string primitive;
  std::string strategy;  ///< empty for copies
  std::string explain;
  int64_t num_members = 1;  ///< 1 for what all members share
  int64_t scratch_bytes = 0;
  int64_t member = -1;  ///< in a ragged model, the one member that this computes; -1: all
  VendorCalls vendor_calls{};
};

struct ModelArguments {
  std::span<const ConstTensorView> inputs;  ///< in the order of the graph's
  std::span<const TensorView> outputs;
};

/// How a graph runs with N members on one device. Immutable: may run from several threads at a
/// time, each with its own Execution.
class ModelPlan {
 public:
  const ModelProblem& problem() const;
  const Graph& graph() const;  ///< after the passes
  const ModelMemory& memory() const;
  std::span<const ModelOperand> inputs() const;
  std::span<const ModelOperand> outputs() const;
  std::span<const ModelStep> steps() const;
  /// What the passes did, a line for each node that they removed.
  std::span<const std::string> notes() const;
  /// The notes, and a line for each step.
  std::string explain() const;
  int64_t workspace_bytes() const { return memory().workspace_bytes(); }
  VendorCalls vendor_calls() const;  ///< of any step

  struct State;
  const State& state() const { return *state_; }

 private:
  friend ModelPlan make_model_plan(const Context&, const Graph&, const ModelProblem&,
                                   const ModelOptions&);
  explicit ModelPlan(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// Passes, then layouts, strategies, memory. Throws invalid_argument or unsupported, with the name
/// of the node that cannot run with N members side by side, or of a value that takes 2^44 bytes or
/// more. In a ragged model, linear layers run as one ragged_linear each (or by `linear`, member
/// after member, where the strategies name only that), nodes without parameters once over all
/// members' rows, and all others member after member, a step each; ensembles are refused.
ModelPlan make_model_plan(const Context& context, const Graph& graph, const ModelProblem& problem,
                          const ModelOptions& options = {});

/// The largest number of members whose total_bytes() is at most `bytes`; 0 where not even one fits.
/// What no plan can be made for (a value that takes 2^44 bytes or more for all members) does not
/// fit; where members take no memory, INT64_MAX.
int64_t largest_num_members_that_fits(const Context& context, const Graph& graph, int64_t batch,
                                      int64_t bytes, const ModelOptions& options = {});

/// A member's parameters, owned, on the CPU, by their names in the graph as it was given.
using OwnedParameters = std::map<std::string, Tensor, std::less<>>;

/// Views of one member's parameters, or of several members', in order; valid as long as those
/// exist.
MemberParameters views_of(const OwnedParameters& parameters);
MemberParameters views_of(OwnedParameters&& parameters) = delete;
std::vector<MemberParameters> views_of(std::span<const OwnedParameters> members);

/// A plan with its parameters in place. Copies, and the results of with_batch(), are handles of the
/// same members. Running is const and may be done from several threads, each with its own
/// Execution. Calls that change members or read them back, on CUDA: make them on the stream of the
/// runs, or while nothing runs; such calls of several threads take turns. On the CPU they may come
/// at any time from any thread: a change waits for the runs in progress, and later runs wait for
/// it, so that a run has the members from either before or after a change. Pointers never change:
/// captured graphs stay valid. A change that is refused, or runs out of memory on the host, has
/// changed nothing. The parameters' memory is freed when the last copy and the last replay are
/// destroyed: on CUDA the caller makes sure that no queued work still uses it, as for a
/// Tensor.
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
  /// A single step, for measuring: those before it must have run on the same Execution, with no
  /// change of members in between.
  void run_step(int64_t step, const ModelArguments& arguments, const Execution& execution) const;

  /// Replaces all parameters of a member, on `stream`, after whatever writes them there; waits for
  /// its copies from the host.
  void replace(int64_t member, const MemberParameters& parameters, Stream stream);
  /// Sets one parameter of a member, by its name in the graph as given. The others keep their
  /// values; what is computed from several of them is recomputed. Dtypes, places and refusals are
  /// those of replace(), including that of another value for a parameter that all members share.
  /// Waits for its copies from the host.
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
  /// changes both models. Throws unsupported where that batch would store parameters differently.
  Model with_batch(int64_t batch) const;
  /// Likewise, with a number of rows for each member, ModelProblem::batches; parameters are stored
  /// differently where layers were fused into an mlp.
  Model with_batches(std::vector<int64_t> batches) const;

  /// Masked members are left out of ensembles but still computed. mask() refuses the last member
  /// that is not masked. Does not wait.
  void mask(int64_t member, Stream stream);
  void unmask(int64_t member, Stream stream);
  bool is_masked(int64_t member) const;

  /// For a plan with drops_out: member i draws its numbers from seed + i, with a sequence of its
  /// own for each dropout of the graph. For another pass take another `sequence`, not another seed:
  /// with seed + 1 member i drops what member i + 1 dropped with `seed`. sequence: less than 2^64
  /// divided by the number of the graph's dropouts, rounded down; so none repeats another's masks.
  /// Until this is called both are 0. Waits for its copies.
  void seed_dropout(uint64_t seed, uint64_t sequence, Stream stream);
  /// The same with a seed for each member, in their order. Members with the same seed drop the
  /// same.
  void seed_dropout(std::span<const uint64_t> seeds, uint64_t sequence, Stream stream);

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
  Model(ModelPlan plan, std::shared_ptr<State> state)
      : plan_(std::move(plan)), state_(std::move(state)) {}
  ModelPlan plan_;
  std::shared_ptr<State> state_;
};

/// Plan and model in one: N sets of parameters, N members; those on the device must be complete,
/// as for Model.
Model compile(const Context& context, const Graph& graph, std::span<const MemberParameters> members,
              int64_t batch, const ModelOptions& options = {});

/// Runs a model on more rows than its plan's batch, some at a time: memory is bounded by the
/// plan's. Inputs and outputs must have the batch in front: no operand of the plan is_stacked.
class ChunkedModel {
 public:
  /// `batch` rows in all. Throws unsupported where an operand is stacked, for a ragged model, and
  /// where dropout drops: its numbers depend on the row within a run, so that every piece would
  /// have the same mask. For Monte Carlo on more rows take with_batch(), or runs with a `sequence`
  /// each.
  ChunkedModel(const Model& model, int64_t batch);
  /// For all rows.
  int64_t workspace_bytes() const;
  /// Operands with the extent `batch` in front, else as the plan's. As Model::run.
  void run(const ModelArguments& arguments, const Execution& execution) const;

 private:
  Model model_;
  std::vector<Model> rest_;  ///< none, or one: for the rows that do not fill a batch
  int64_t batch_;
};

/// The largest batch, up to `most`, whose total_bytes() are at most `bytes`; 0 where not even one
/// row fits. What no plan can be made for does not fit, as above; where none can be made for one
/// row either, that error is thrown: the graph or the options are at fault, not the batch.
int64_t largest_batch_that_fits(const Context& context, const Graph& graph, int64_t num_members,
                                int64_t bytes, int64_t most, const ModelOptions& options = {});

/// How far each member of the wide model is from the same member run alone, node by node
/// (preset "safe"), on random inputs: the largest difference over the largest value; infinite where
/// there is a NaN; 0 for a member without rows. Dropout has the same masks in both. For ensembles,
/// the inputs are compared, not the result. Parameters on the device must be complete, as for
/// Model. Allocates and waits.
std::vector<double> validate_model(const Context& context, const Graph& graph,
                                   const ModelProblem& problem,
                                   std::span<const MemberParameters> members,
                                   const ModelOptions& options = {}, uint64_t seed = 42);

/// All members' parameters in one safetensors file: "3/fc1.weight" is member 3's; the metadata has
/// the number of members and the graph's name. Waits for `stream`.
void save_members(const std::string& path, const Model& model, Stream stream);
/// One member's, under the graph's own names.
void save_member(const std::string& path, const Model& model, int64_t member, Stream stream);

/// The members of a file that save_members wrote, as long as this object lives.
class MembersFile {
 public:
  /// Throws io, and invalid_argument for any other file.
  static MembersFile open(const std::string& path);
  int64_t num_members() const { return static_cast<int64_t>(members_.size()); }
  const std::string& graph_name() const { return graph_name_; }
  std::span<const MemberParameters> members() const { return members_; }

 private:
  MembersFile(std::shared_ptr<const void> file, std::string graph_name,
              std::vector<MemberParameters> members);
  std::shared_ptr<const void> file_;
  std::string graph_name_;
  std::vector<MemberParameters> members_;
};

/// Names of the parameters that are equal, bit for bit, in all `members`: candidates for
/// ModelOptions::shared_parameters. Tensors lie on the CPU.
std::vector<std::string> equal_parameters(const Graph& graph,
                                          std::span<const MemberParameters> members);

/// A model's run on fixed operands, captured once: run() is a single launch of a CUDA graph. On the
/// CPU it is Model::run with these operands.
class ModelReplay {
 public:
  /// Captures on a stream of its own. The operands' memory and `execution`'s workspace and handles
  /// must outlive the replay, which keeps the model. On CUDA the caller makes sure that no run is
  /// still queued when the replay dies. Throws invalid_argument for a context of another device
  /// than the model's.
  ModelReplay(const Context& context, const Model& model, const ModelArguments& arguments,
              const Execution& execution);
  ~ModelReplay();
  ModelReplay(ModelReplay&&) noexcept;
  ModelReplay& operator=(ModelReplay&&) = delete;

  /// One launch; never allocates or synchronizes. Several threads may call it: runs of one replay
  /// take turns, whatever their streams, and write the same outputs, which hold the last results.
  /// Threads that each need results of their own have a replay each.
  void run(Stream stream) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wide
