// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// top_k: which K of N members each row of a batch goes to, by a score for each, and how much each
// of these counts: the router of a mixture of experts.
//
// Mixture of experts, of N experts of which each of B rows goes to K; R = B*K:
//   linear      {one member}                     x [B, in] -> scores [B, N], the router
//   top_k       {.choices = K}                   scores    -> ids [B, K], gates [B, K]
//   routing     {N members, R rows}              ids       -> first_rows, order
//   routed_mlp  {.gathers, .scatters, .choices = K}, gates
//                                                x [B, in] -> y [B, K*out]
//   ensemble    {sum, K members}                 y         -> [B, out]
// Nothing is decided on the host: the calls can be captured once, for any x. A model does all but
// the router's own layer, for experts of any graph: ModelProblem::choices (model_plan.hpp). Where a
// device has some of the experts only, its routing says from which id on (first_id); rows of the
// others become zeros, and the sums of all devices add up to the result. verify/routing/mixture.hpp
// has the calls in full.
#pragma once

#include <memory>
#include <utility>

#include "wide/gate_function.hpp"
#include "wide/plan.hpp"
#include "wide/tensor.hpp"

namespace wide {

struct TopKProblem {
  int64_t num_members = 1;        ///< N, to choose from; up to 2^31 - 1
  int64_t rows = 0;               ///< B
  int64_t choices = 1;            ///< K, from 1 to N
  Dtype dtype = Dtype::fp32;      ///< of scores: fp32, fp16 or bf16
  Dtype id_dtype = Dtype::int64;  ///< int32 or int64
  bool has_gates = false;
  GateFunction gate = GateFunction::softmax;
  int64_t scores_row_stride = 0;  ///< 0: packed
  friend bool operator==(const TopKProblem&, const TopKProblem&) = default;
};

struct TopKArguments {
  ConstTensorView scores;  ///< [B, N], members side by side
  TensorView ids;          ///< [B, K], contiguous: what routing takes
  TensorView gates{};      ///< fp32 [B, K], contiguous: what routed layers take; absent: not wanted
};

/// Reads the problem off the operands; `like` gives what they do not show: gate.
TopKProblem describe_top_k(const TopKArguments& arguments, const TopKProblem& like = {});

extern template class PrimitivePlan<TopKProblem>;

/// There are no parameters, so nothing is prepared.
class TopKPlan : public PrimitivePlan<TopKProblem> {
 public:
  /// ids[b, :] = the K members with the largest scores[b, :], in descending order; of equal scores
  /// the smaller id comes first. NaN is larger than all, as where members vote (ensemble.hpp): all
  /// NaN are equal, and so are the zeros of both signs.
  /// gates[b, k], with s_k = scores[b, ids[b, k]]:
  ///   softmax      exp(s_k - s_0) / sum_j exp(s_j - s_0), j the K chosen ones
  ///   softmax_all  the same with the sum over all N members
  ///   sigmoid      1 / (1 + exp(-s_k))
  ///   none         s_k
  /// A softmax is 0 where s_k is -infinity, and NaN throughout a row whose largest score is NaN or
  /// infinite.
  /// Layout: as TopKArguments says; any row stride and alignment of an element of scores. No
  ///         operand overlaps another.
  /// Types: scores fp32, fp16 or bf16; gates fp32, whatever the scores are; intermediates in fp32.
  ///        Every strategy of a device writes the same bits every time.
  /// Speed: on CUDA a warp takes a row of up to 256 members, a block a longer one; beyond 8192
  ///        members each choice reads the row again.
  /// Stream: asynchronous on execution.stream; never synchronizes or allocates; may be captured.
  /// Memory: workspace_bytes() of execution.workspace.
  /// Errors: invalid_argument, unsupported (on CUDA rows in more than 2^31 - 1 blocks, each of one
  ///         row, or of four of up to 256 members), cuda.
  /// Threads: safe with an Execution each.
  void run(const TopKArguments& arguments, const Execution& execution) const;

 private:
  friend TopKPlan make_top_k_plan(const Context&, const TopKProblem&, const PlanOptions&);
  explicit TopKPlan(std::shared_ptr<const State> state) : PrimitivePlan(std::move(state)) {}
};

/// Fixes the strategy. `sequential` makes a row's choices one after another, a launch each. Errors:
/// see plan.hpp.
TopKPlan make_top_k_plan(const Context& context, const TopKProblem& problem,
                         const PlanOptions& options = {});

}  // namespace wide
