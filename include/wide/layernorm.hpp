// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// layernorm: every row of every member normalised on its own, in one call.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "wide/plan.hpp"
#include "wide/strides.hpp"
#include "wide/tensor.hpp"

namespace wide {

struct LayernormProblem {
  int64_t num_members = 1;
  int64_t rows = 0;           ///< of a member: the product of all axes but the last
  int64_t features = 0;       ///< D, elements that are normalised together
  Dtype dtype = Dtype::fp32;  ///< of x, gamma, beta and y: fp32, fp16 or bf16
  float epsilon = 1e-5f;
  bool has_gamma = true;
  bool has_beta = true;
  RowStrides x{}, y{};
  int64_t gamma_member_stride = 0, beta_member_stride = 0;
  bool has_residual = false;  ///< x + residual is normalised
  bool has_sum = false;       ///< and x + residual is written, too
  RowStrides residual{}, sum{};
  /// Of ids, int32 or int64, which tell each row's member: rows are routed, and `rows` those of all
  /// members, which lie as if they were one member's. Absent: rows are not routed.
  std::optional<Dtype> id_dtype{};
  int64_t first_id = 0;  ///< of member 0, >= 0; with ids only
  friend bool operator==(const LayernormProblem&, const LayernormProblem&) = default;
};

struct LayernormArguments {
  ConstTensorView x;           ///< [.., N*D]
  ConstTensorView gamma{};     ///< [N, D], or absent: 1
  ConstTensorView beta{};      ///< [N, D], or absent: 0
  TensorView y;                ///< [.., N*D]; may be x or residual itself
  ConstTensorView residual{};  ///< [.., N*D], or absent: 0
  TensorView sum{};            ///< [.., N*D], or absent; may be x or residual itself, but not y
  ConstTensorView ids{};       ///< [..], a row's member, of [.., D] then; or absent
};

struct LayernormMember {
  ConstTensorView gamma{};  ///< [D], or absent
  ConstTensorView beta{};   ///< [D], or absent
};

/// Reads the problem off the operands; `like` gives what they do not show: num_members (where both
/// gamma and beta are absent, with features where x is not packed), epsilon and first_id.
LayernormProblem describe_layernorm(const LayernormArguments& arguments,
                                    const LayernormProblem& like = {});

extern template class PrimitivePlan<LayernormProblem>;

class LayernormPlan : public PrimitivePlan<LayernormProblem> {
 public:
  /// N gammas and betas [D] -> [N, D] each.
  void prepare_weights(std::span<const LayernormMember> members, const TensorView& gamma,
                       const TensorView& beta, Stream stream) const;
  /// The inverse, bit for bit.
  void restore_weights(const ConstTensorView& gamma, const ConstTensorView& beta,
                       std::span<const TensorView> member_gammas,
                       std::span<const TensorView> member_betas, Stream stream) const;

  /// y[r, n, d] = (x[r, n, d] - mean) / sqrt(variance + epsilon) * gamma[n, d] + beta[n, d],
  /// mean and (biased) variance over d of x[r, n, :]. With a residual, sum = x + residual, rounded
  /// to the dtype, replaces x and is written where there is a tensor for it.
  /// Layout: as LayernormArguments says; features contiguous, any row and member strides, any
  ///         alignment of an element. Outputs may be x or residual themselves; they overlap nothing
  ///         else.
  /// Types: x, gamma, beta, y share a dtype in {fp32, fp16, bf16}; statistics in fp32 by two
  ///         passes (mean first), so that a common offset of the row costs no accuracy.
  /// Speed:  on CUDA one block, and so one multiprocessor, takes a row, however long it is: fewer
  ///         rows (of all members) than multiprocessors leave some of these idle.
  /// Limits: a CUDA launch has up to 2^31 - 1 blocks, each of a row, or of at least four rows of up
  ///         to 1024 features. If one launch for all members exceeds this, wide is unsupported and
  ///         "auto" takes another strategy; if a single member exceeds it, so is sequential: making
  ///         its plan throws unsupported.
  /// Routed: with ids (int32 or int64) rows of all tensors are [.., D], and row r has the gamma
  ///         and beta of member n = ids[r] - first_id. Rows of no member, n not in [0, N), become
  ///         zeros in y and sum, whatever x and residual have there. Rows lie as ids do: layers
  ///         before scatter, layers behind gather (routed_linear.hpp). `sequential` launches once
  ///         for each member, and once for rows of none.
  /// Stream: asynchronous on execution.stream; never synchronizes or allocates; may be captured:
  ///         a replay follows other ids, which the device alone reads.
  /// Memory: workspace_bytes() of execution.workspace.
  /// Vendor: cudnn runs the rows of one member, or of all members without parameters, where no gap
  ///         is between them: no residual and no ids. `sequential` is it, too, where each member's
  ///         rows are so.
  /// Errors: invalid_argument, cuda, cudnn; unsupported where cudnn was asked for and operands are
  ///         not aligned to 16 bytes, or y is x.
  /// Threads: safe with an Execution each.
  /// Rows:   under one strategy of ours a row's bits depend on itself and its member's parameters.
  /// Source: Ba, Kiros, Hinton, "Layer Normalization", 2016, arXiv:1607.06450, section 3.
  void run(const LayernormArguments& arguments, const Execution& execution) const;

 private:
  friend LayernormPlan make_layernorm_plan(const Context&, const LayernormProblem&,
                                           const PlanOptions&);
  explicit LayernormPlan(std::shared_ptr<const State> state) : PrimitivePlan(std::move(state)) {}
};

LayernormPlan make_layernorm_plan(const Context& context, const LayernormProblem& problem,
                                  const PlanOptions& options = {});

}  // namespace wide
