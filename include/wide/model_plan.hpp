// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// model_plan: how a graph runs with N members: its steps, and exactly how many bytes everything
// takes, before anything is allocated.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wide/gate_function.hpp"
#include "wide/graph.hpp"
#include "wide/plan.hpp"
#include "wide/router.hpp"

namespace wide {

class TuningCache;

struct ModelProblem {
  int64_t num_members = 1;
  int64_t batch = 1;  ///< rows of every input, per member
  /// Rows of each member, in order; a member may have none. Such a model is "ragged": members' rows
  /// follow one another, [sum of batches, D], and `batch` becomes the largest of these. A shared
  /// input has `batch` rows, of which a member reads the first, as many as it has rows. Empty:
  /// `batch` each.
  std::vector<int64_t> batches{};
  /// Every row is run by one member, which the row names: experts, agents of several kinds. Inputs
  /// and outputs are those of one member, [batch, D], whose rows are all members' together, and
  /// after the graph's inputs there is another, `member_ids`, [batch] of id_dtype: only the device
  /// reads it, so that one plan, and one captured graph, is for any ids. Linear layers and norms of
  /// members' own give zeros for a row whose id is that of no member; it is no error, but what
  /// other nodes make of such a row is unspecified. Members differ in linear layers, layernorm,
  /// rmsnorm and chain only.
  bool is_routed = false;
  /// K, the members that run each row of a routed model: a mixture of experts, of which the graph
  /// is one. Outputs are sums over a row's K members, each times its gate where there are gates;
  /// ids of no member add nothing. Inputs then are
  ///   ids        member_ids, [batch, K], or [batch] for K = 1
  ///   gated_ids  member_ids, and gates, fp32, of the same shape: top_k's
  ///   scores     scores [batch, num_scores], num_scores >= K, of the first output's dtype: the K
  ///              members with the largest of a row run it, and `gate` makes their gates of these
  ///              (top_k.hpp)
  int64_t choices = 1;
  Router router = Router::ids;
  GateFunction gate = GateFunction::softmax;  ///< of Router::scores
  /// The id of member 0 in a routed model, >= 0: its members may be a part of all there are, the
  /// experts of one device of several. Rows are chosen, and gates made, among all; what is not for
  /// these members adds nothing, so that outputs of all parts add up to the whole.
  int64_t first_id = 0;
  int64_t num_scores = 0;  ///< of Router::scores: members there are; 0: first_id + num_members
  Dtype id_dtype = Dtype::int64;  ///< of member_ids: int64 or int32
  friend bool operator==(const ModelProblem&, const ModelProblem&) = default;
};

struct ModelOptions {
  bool folds_batchnorm = true;  ///< into the preceding convolution or linear layer
  bool fuses_epilogues = true;  ///< activations and residuals into the preceding product
  bool reuses_memory = true;    ///< of activations that are no longer read
  bool allows_tf32 = false;     ///< fp32 products may round their operands to tf32
  /// Linear layers in 16 bits may round quantised weights to these, in a workspace that holds a
  /// layer's for all members (LinearProblem::allow_rounded_weights).
  bool allows_rounded_weights = false;
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
  /// up in this order; also {"all", "auto_unverified"} (see PlanOptions). Names of primitives are
  /// those of primitives even if nodes have them. Others are chosen as by "auto". Layers whose
  /// strategy is named are not fused into an mlp, unless a strategy is named for that as well.
  std::map<std::string, std::string, std::less<>> strategies{};
  /// Copied when the plan is made, since with_batch() and chunks make further plans.
  const TuningCache* tuning = nullptr;
};

/// "default", "fast" (tf32 and rounded weights are allowed), "debug" (each node by itself, in
/// memory of its own), "safe" (member after member, by the strategy `sequential`). Throws
/// invalid_argument for others.
ModelOptions model_options(std::string_view preset);

/// Exact, before anything is allocated.
struct ModelMemory {
  int64_t weights_bytes = 0;                  ///< what a Model allocates
  int64_t activation_bytes = 0;               ///< of the workspace: values between nodes
  int64_t scratch_bytes = 0;                  ///< of the workspace: what single nodes need
  int64_t input_bytes = 0, output_bytes = 0;  ///< the caller's
  /// What a ragged plan itself owns on CUDA from its creation: the tables of ragged_linear.
  int64_t table_bytes = 0;
  /// Of the host, on any device: a Model's parameters that its weights do not hold as they were
  /// given, such as quantised ones and those of a folded batchnorm. get() and set() need them.
  int64_t host_bytes = 0;
  int64_t workspace_bytes() const { return activation_bytes + scratch_bytes; }
  /// Of the device, host_bytes not included.
  int64_t total_bytes() const {
    return weights_bytes + workspace_bytes() + input_bytes + output_bytes + table_bytes;
  }
};

/// An input or output as the caller provides it: densely packed.
struct ModelOperand {
  std::string name;
  Dtype dtype = Dtype::fp32;
  Shape shape;  ///< of all members: [B, N*D], [B, N*C, H, W], [N, B, ..]; or shared: [B, D]; or
                ///< of a ragged model: [sum of batches, D]; or of a routed one: [B, D]
  /// The axis of a member's shape along which members are joined or, where is_stacked, before which
  /// they have an axis of their own; -1: one for all members, as all operands of a routed model
  /// are.
  int member_axis = -1;
  bool is_stacked = false;
  /// In a ragged model N + 1 entries: member i has the rows [first_rows[i], first_rows[i + 1]).
  std::vector<int64_t> first_rows{};
  int64_t num_members = 1;  ///< of the plan, also where it is one for all
};

/// Member `index` of an operand's tensor, without a copy: [B, D] of [B, N*D], or its rows in a
/// ragged model; the whole tensor where it is one for all members. copy() brings members in and out
/// one by one. For a chunked model the batch may differ. Throws invalid_argument where the view
/// does not fit the operand, or there is no such member.
TensorView member_view(const ModelOperand& operand, const TensorView& view, int64_t index);
ConstTensorView member_view(const ModelOperand& operand, const ConstTensorView& view,
                            int64_t index);
inline TensorView member_view(const ModelOperand& operand, Tensor& tensor, int64_t index) {
  return member_view(operand, tensor.view(), index);
}

/// A parameter that each member is loaded with, by its name in the graph as given.
struct ModelParameter {
  std::string name;
  Dtype dtype = Dtype::fp32;  ///< fp32, fp16 and bf16 are given as any of these
  Shape shape;                ///< of one member
  bool is_shared = false;     ///< stored once: members whose values differ are refused
};

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
  bool is_tuned = false;  ///< the strategy is a tuning cache's
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
  std::span<const ModelParameter> parameters() const;  ///< in the order of the graph as given
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
  friend class Model;
  friend ModelPlan make_model_plan(const Context&, const Graph&, const ModelProblem&,
                                   const ModelOptions&);
  explicit ModelPlan(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// Passes, then layouts, strategies, memory. Throws invalid_argument or unsupported, with the name
/// of the node that cannot run with N members side by side, or of a value that takes 2^44 bytes or
/// more. In a ragged model, linear layers run as one ragged_linear each (or by `linear`, member
/// after member, where the strategies name only that), nodes without parameters once over all
/// members' rows, and all others member after member, a step each; ensembles are refused. In a
/// routed model linear layers run as one routed_linear each, or several as one routed_mlp, norms of
/// rows and nodes without parameters once over all rows, and all others are refused.
ModelPlan make_model_plan(const Context& context, const Graph& graph, const ModelProblem& problem,
                          const ModelOptions& options = {});

/// The largest number of members whose total_bytes() is at most `bytes`, on the CPU together with
/// host_bytes; 0 where not even one fits.
/// What no plan can be made for (a value that takes 2^44 bytes or more for all members) does not
/// fit; where members take no memory, INT64_MAX.
int64_t largest_num_members_that_fits(const Context& context, const Graph& graph, int64_t batch,
                                      int64_t bytes, const ModelOptions& options = {});

/// The largest batch, up to `most`, whose bytes, counted likewise, are at most `bytes`; 0 where not
/// even one row fits. What no plan can be made for does not fit, as above; where none can be made
/// for one row either, that error is thrown: the graph or the options are at fault, not the batch.
int64_t largest_batch_that_fits(const Context& context, const Graph& graph, int64_t num_members,
                                int64_t bytes, int64_t most, const ModelOptions& options = {});

}  // namespace wide
