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

namespace wide {

class HostContext;
class TuningCache;

struct ModelProblem {
  int64_t num_members = 1;
  int64_t batch = 1;  ///< rows of every input, per member
  /// Rows of each member, in their order; none at all for a member is allowed. Such a model is
  /// "ragged": members' rows lie one behind the other, [sum of batches, D], and `batch` becomes the
  /// most that a member has. Of a shared input, which has `batch` rows, a member reads as many as
  /// it has, the first ones. Empty: `batch` each.
  std::vector<int64_t> batches{};
  friend bool operator==(const ModelProblem&, const ModelProblem&) = default;
};

struct ModelOptions {
  bool folds_batchnorm = true;  ///< into the convolution or linear layer in front of it
  bool fuses_epilogues = true;  ///< activations and residuals into the product in front of them
  bool reuses_memory = true;    ///< activations whose time is over give their place to others
  bool allows_tf32 = false;     ///< fp32 products may round their operands to tf32
  /// Copies where members cannot lie as all that read a value want them; else that is refused, with
  /// the node's name.
  bool moves_data = true;
  bool drops_out = false;  ///< Monte Carlo: dropout drops, each member by numbers of its own
  /// Parameters that are the same for all members: what depends on these and on shared inputs only
  /// is computed once. Members whose own differ are refused where one is stored for all; each keeps
  /// its own where they are stored for each member, as those of a layer are whose input each has of
  /// its own. Names of the graph as it is given, whether or not anything reads them.
  std::vector<std::string> shared_parameters{};
  /// How convolutions of images have their channels, and what stands between them: "last" runs on
  /// tensor cores better, and turns images where they come in and go out (not where a first layer
  /// of few channels can read them as they are). Absent: last where more convolutions of a region
  /// would run by `wgmma` than copies are made, else as the graph has it.
  std::optional<ChannelLayout> channel_layout{};
  /// Strategies by a node's name, by primitive: {"linear", "cublas_batched"}, or "all"; what is
  /// named first here is looked for first. Others are chosen as by "auto". Layers whose strategy is
  /// named become no mlp, unless that has one that is named, too.
  std::map<std::string, std::string, std::less<>> strategies{};
  /// Copied when the plan is made, as with_batch() and chunks make further ones.
  const TuningCache* tuning = nullptr;
};

/// "default", "fast" (tf32 is allowed), "debug" (each node by itself, in memory of its own), "safe"
/// (every member after the other, by the strategy `sequential`). Throws invalid_argument for
/// others.
ModelOptions model_options(std::string_view preset);

/// Exact, before anything is allocated.
struct ModelMemory {
  int64_t weights_bytes = 0;                  ///< what a Model allocates
  int64_t activation_bytes = 0;               ///< of the workspace: values between nodes
  int64_t scratch_bytes = 0;                  ///< of the workspace: what single nodes need
  int64_t input_bytes = 0, output_bytes = 0;  ///< the caller's
  /// What a ragged plan owns itself, on CUDA, from when it is made: the tables of ragged_linear.
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
  /// The axis of a member's shape that members are joined along; where is_stacked they stand in
  /// front of it, on an axis of their own; -1: one for all members.
  int member_axis = -1;
  bool is_stacked = false;
  /// Of a ragged model, N + 1 entries: member i has the rows [first_rows[i], first_rows[i + 1]).
  std::vector<int64_t> first_rows{};
};

/// Member `index` of an operand's tensor, no copy: [B, D] of [B, N*D], or its rows of a ragged
/// model; of what is one for all members the whole. copy() brings members in and out one by one.
/// Of a chunked model the batch may be another. Throws invalid_argument where the view is not the
/// operand's, or there is no such member.
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
  int64_t member = -1;  ///< of a ragged model, whose rows alone this computes; -1: all members'
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
  /// What the passes did, a line for each node that went.
  std::span<const std::string> notes() const;
  /// The notes, and a line for each step.
  std::string explain() const;
  int64_t workspace_bytes() const { return memory().workspace_bytes(); }

  struct State;
  const State& state() const { return *state_; }

 private:
  friend ModelPlan make_model_plan(const Context&, const Graph&, const ModelProblem&,
                                   const ModelOptions&);
  explicit ModelPlan(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// Passes, layouts, strategies, memory. Throws invalid_argument or unsupported, with the name of
/// the node that cannot run with N members side by side, or of a value that takes 2^44 bytes or
/// more. Of a ragged model, linear layers run as one ragged_linear each (or by `linear`, member
/// after member, where the strategies name only that), nodes without parameters once over the rows
/// of all, and all others member after member, a step each; ensembles are refused.
ModelPlan make_model_plan(const Context& context, const Graph& graph, const ModelProblem& problem,
                          const ModelOptions& options = {});

/// The most members whose total_bytes() are at most `bytes`; 0 where not even one fits. What is
/// larger than plans can be made for (a value of all members of 2^44 bytes or more) does not fit;
/// where members take nothing, INT64_MAX do.
int64_t largest_n_that_fits(const Context& context, const Graph& graph, int64_t batch,
                            int64_t bytes, const ModelOptions& options = {});

/// A member's parameters, owned, on the CPU, by their names in the graph as it was given.
using OwnedParameters = std::map<std::string, Tensor, std::less<>>;

/// Views of them, good as long as they are; of one member, or of several in their order.
MemberParameters views_of(const OwnedParameters& parameters);
MemberParameters views_of(OwnedParameters&& parameters) = delete;
std::vector<MemberParameters> views_of(std::span<const OwnedParameters> members);

/// A plan with its parameters in place. Copies are handles of the same members, as those of
/// with_batch() are. Running is const and may be done from several threads, each with its own
/// Execution. What changes members: on CUDA it goes on the stream that the runs are on, or comes
/// while nothing runs, from one thread at a time; on the CPU it may come at any time from any
/// thread: it waits for the runs that go on, and those that come after it wait for it, so that a
/// run has the members from before a change or from behind it. Pointers never change: captured
/// graphs go on as they are. A change that is refused, or runs out of memory on the host, has
/// changed nothing.
class Model {
 public:
  /// Allocates memory().weights_bytes and loads the members. `members` has a set of parameters for
  /// each member; tensors lie on the CPU or on the model's device. fp32, fp16 and bf16 become the
  /// graph's dtype, rounded to nearest. Waits for its copies. Throws invalid_argument with member
  /// and parameter where one is missing, of another shape, or unknown; what PyTorch's BatchNorm
  /// counts in training, NAME.num_batches_tracked beside a NAME.running_mean, is passed over.
  Model(const Context& context, const ModelPlan& plan, std::span<const MemberParameters> members);

  const ModelPlan& plan() const { return plan_; }

  /// Enqueues every step. Never allocates or synchronizes; may be captured in a CUDA graph. Outputs
  /// overlap neither inputs nor one another, and nothing overlaps the workspace.
  /// Errors: invalid_argument (operands contradict the plan, workspace), those of the primitives.
  void run(const ModelArguments& arguments, const Execution& execution) const;
  /// One step of it, for measuring: those before it must have run on the same Execution, and no
  /// change of members comes between them.
  void run_step(int64_t step, const ModelArguments& arguments, const Execution& execution) const;

  /// Member i gets other parameters, all of them. On `stream`; waits for its copies from the host.
  void replace(int64_t member, const MemberParameters& parameters, Stream stream);
  /// One parameter of member i, by its name in the graph as it was given. The others stay what they
  /// are; what is computed of them together is computed anew. Dtypes, places and what is refused
  /// are as of replace(), another value of what all members share, too. Waits for its copies from
  /// the host.
  void set(int64_t member, std::string_view parameter, const ConstTensorView& view, Stream stream);
  /// Member `to` becomes what member `from` is; on the device, does not wait.
  void clone(int64_t from, int64_t to, Stream stream);
  /// A member's parameters as they were given, rounded to the graph's dtype where that is another;
  /// those that a batchnorm was folded into, too. Waits for `stream`.
  OwnedParameters get(int64_t member, Stream stream) const;
  /// One of them, into memory of the caller's on the CPU or the model's device: densely packed, of
  /// the graph's dtype, or fp32, fp16 or bf16 where that is one of these. Waits for `stream`.
  void get(int64_t member, std::string_view parameter, const TensorView& destination,
           Stream stream) const;

  /// The members that are not masked move to the front, in their order, on the device; those behind
  /// them are masked. Returns which member each of the first ones was. Does not wait. Rows of a
  /// ragged model stay with their place: whoever becomes member i has the rows of member i.
  std::vector<int64_t> compact(Stream stream);

  /// The same members, for another batch: parameters are shared, so that what changes a member
  /// changes it in both. Throws unsupported where that batch would store parameters otherwise.
  Model with_batch(int64_t batch) const;
  /// Likewise, with rows of each member's own, ModelProblem::batches; parameters are stored
  /// otherwise where layers were fused to an mlp.
  Model with_batches(std::vector<int64_t> batches) const;

  /// Masked members are left out of ensembles; they go on being computed. Does not wait.
  void mask(int64_t member, Stream stream);
  void unmask(int64_t member, Stream stream);
  bool is_masked(int64_t member) const;

  /// Of a plan with drops_out: member i draws the numbers of seed + i, and of a sequence of its own
  /// for each dropout of the graph. Another pass is another `sequence`, not another seed: by seed +
  /// 1 member i drops what member i + 1 dropped by `seed`. Until it is called both are 0. Waits for
  /// its copies.
  void seed_dropout(uint64_t seed, uint64_t sequence, Stream stream);
  /// The same with a seed for each member, in their order. Members of one seed drop the same.
  void seed_dropout(std::span<const uint64_t> seeds, uint64_t sequence, Stream stream);

  struct State;

 private:
  friend class ChunkedModel;
  friend class ModelReplay;
  void check(const ModelArguments& arguments, const Execution& execution) const;
  void enqueue(const ModelArguments& arguments, const Execution& execution) const;
  void require_member(int64_t member) const;
  void load(int64_t member, const MemberParameters& parameters, Stream stream, bool checks_shared,
            HostContext& host);
  void set_mask(int64_t member, bool is_masked, Stream stream);
  Model with_problem(const ModelProblem& problem, const std::string& what) const;
  Model(ModelPlan plan, std::shared_ptr<State> state)
      : plan_(std::move(plan)), state_(std::move(state)) {}
  ModelPlan plan_;
  std::shared_ptr<State> state_;
};

/// Plan and model in one: N sets of parameters, N members.
Model compile(const Context& context, const Graph& graph, std::span<const MemberParameters> members,
              int64_t batch, const ModelOptions& options = {});

/// Runs a model on more rows than its plan's batch, some at a time: memory is bounded by the
/// plan's. Inputs and outputs must have the batch in front: no operand of the plan is_stacked.
class ChunkedModel {
 public:
  /// `batch` rows in all. Throws unsupported where an operand is stacked, of a ragged model, and
  /// where dropout drops: its numbers go by the row of a run, so that every piece would have the
  /// same mask. Monte Carlo on more rows is with_batch(), or runs with a `sequence` each.
  ChunkedModel(const Model& model, int64_t batch);
  /// Of all rows.
  int64_t workspace_bytes() const;
  /// Operands with the extent `batch` in front, else as the plan's. As Model::run.
  void run(const ModelArguments& arguments, const Execution& execution) const;

 private:
  Model model_;
  std::vector<Model> rest_;  ///< none, or one: for the rows that do not fill a batch
  int64_t batch_;
};

/// The largest batch, up to `most`, whose total_bytes() are at most `bytes`; 0 where not even one
/// row fits. What no plan can be made for does not fit, as above; where there is none for one row
/// either, that is thrown: it is the graph or the options, not the batch.
int64_t largest_batch_that_fits(const Context& context, const Graph& graph, int64_t num_members,
                                int64_t bytes, int64_t most, const ModelOptions& options = {});

/// How far each member of the wide model is from the same member run alone, node by node
/// (preset "safe"), on random inputs: the largest difference over the largest value; NaN counts as
/// infinite; 0 of a member without rows. Members that drop out do so alone, too, by the same masks.
/// Of an ensemble what it joins is compared, not the result. Allocates and waits.
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
  /// Throws io, and invalid_argument for what is no such file.
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

/// Names of the parameters that are the same, bit for bit, for all of several members: what
/// ModelOptions::shared_parameters may be. Tensors lie on the CPU.
std::vector<std::string> equal_parameters(const Graph& graph,
                                          std::span<const MemberParameters> members);

/// A model's run on fixed operands, captured once: run() is a single launch of a CUDA graph. On the
/// CPU it is Model::run with these operands.
class ModelReplay {
 public:
  /// Captures on a stream of its own. The operands' memory and `execution`'s workspace and handles
  /// must outlive the replay, which keeps the model. Throws invalid_argument for a context of
  /// another device than the model's.
  ModelReplay(const Context& context, const Model& model, const ModelArguments& arguments,
              const Execution& execution);
  ~ModelReplay();
  ModelReplay(ModelReplay&&) noexcept;
  ModelReplay& operator=(ModelReplay&&) = delete;

  /// One launch; never allocates or synchronizes.
  void run(Stream stream) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wide
