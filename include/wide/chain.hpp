// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// chain: the operations between a network's matrix products (bias, activation, residual and norm)
// in one call that reads and writes everything once.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "wide/chain_norm.hpp"
#include "wide/epilogue.hpp"
#include "wide/plan.hpp"
#include "wide/strides.hpp"
#include "wide/tensor.hpp"

namespace wide {

struct ChainProblem {
  int64_t num_members = 1;
  int64_t rows = 0;           ///< of a member: the product of all axes but the last
  int64_t features = 0;       ///< D, elements that are normalised together
  Dtype dtype = Dtype::fp32;  ///< of all operands: fp32, fp16 or bf16
  Activation activation = Activation::none;
  ChainNorm norm = ChainNorm::none;
  float epsilon = 1e-5f;  ///< the norm's
  bool has_bias = false;
  bool has_residual = false;
  bool has_sum = false;    ///< the norm's input is written as well; with a norm only
  bool has_gamma = false;  ///< with a norm only
  bool has_beta = false;   ///< with layernorm only
  RowStrides x{}, residual{}, sum{}, y{};
  int64_t bias_member_stride = 0, gamma_member_stride = 0, beta_member_stride = 0;
  /// Of ids, int32 or int64, which tell each row's member: rows are routed, and `rows` those of all
  /// members, which lie as if they were one member's. Absent: rows are not routed.
  std::optional<Dtype> id_dtype{};
  int64_t first_id = 0;  ///< of member 0, >= 0; with ids only
  friend bool operator==(const ChainProblem&, const ChainProblem&) = default;
};

struct ChainArguments {
  ConstTensorView x;           ///< [.., N*D]
  ConstTensorView bias{};      ///< [N, D], or absent: 0
  ConstTensorView residual{};  ///< [.., N*D], or absent: 0
  ConstTensorView gamma{};     ///< [N, D], or absent: 1
  ConstTensorView beta{};      ///< [N, D], or absent: 0
  TensorView y;                ///< [.., N*D]; may be x or residual itself
  TensorView sum{};            ///< [.., N*D], or absent; may be x or residual itself, but not y
  ConstTensorView ids{};       ///< [..], a row's member, of [.., D] then; or absent
};

struct ChainMember {
  ConstTensorView bias{}, gamma{}, beta{};  ///< [D], or absent
};

/// Parameters of all members, each [N, D] or absent.
struct ChainParameters {
  TensorView bias{}, gamma{}, beta{};
};

/// Reads the problem off the operands; `like` gives what they do not show: num_members (where there
/// are no parameters, with features where x is not packed), activation, norm, epsilon and first_id.
ChainProblem describe_chain(const ChainArguments& arguments, const ChainProblem& like);

extern template class PrimitivePlan<ChainProblem>;

class ChainPlan : public PrimitivePlan<ChainProblem> {
 public:
  /// N biases, gammas and betas [D] -> [N, D] each.
  void prepare_weights(std::span<const ChainMember> members, const ChainParameters& parameters,
                       Stream stream) const;
  /// The inverse, bit for bit.
  void restore_weights(const ChainParameters& parameters, std::span<const ChainParameters> members,
                       Stream stream) const;

  /// sum[r, n, d] = residual[r, n, d] + activation(x[r, n, d] + bias[n, d]), in fp32 and then
  /// rounded to the dtype; y[r, n, :] = norm(sum[r, n, :]) with gamma and beta, as layernorm and
  /// rmsnorm define it, bit for bit their result for the stored sum; y = sum without a norm.
  /// Layout: as ChainArguments says; features contiguous, any row and member strides, any alignment
  ///         of an element. Outputs may be x or residual themselves; they overlap nothing else.
  /// Types: all operands share a dtype in {fp32, fp16, bf16}; intermediates in fp32.
  /// Speed:  on CUDA one block, and so one multiprocessor, takes a row, however long it is: fewer
  ///         rows (of all members) than multiprocessors leave some of these idle.
  /// Limits: a CUDA launch has up to 2^31 - 1 blocks, each of a row, or of at least four rows of up
  ///         to 1024 features. If one launch for all members exceeds this, wide is unsupported and
  ///         "auto" launches each member; if a single member exceeds it, making the plan throws
  ///         unsupported.
  /// Routed: with ids (int32 or int64) rows of all tensors are [.., D], and row r has the bias,
  ///         gamma and beta of member n = ids[r] - first_id. Rows of no member, n not in [0, N),
  ///         become zeros in y and sum, whatever x and residual have there. Rows lie as ids do:
  ///         layers before scatter, layers behind gather (routed_linear.hpp). `sequential` launches
  ///         once for each member, and once for rows of none.
  /// Stream: asynchronous on execution.stream; never synchronizes or allocates; may be captured:
  ///         a replay follows other ids, which the device alone reads.
  /// Memory: workspace_bytes() of execution.workspace.
  /// Errors: invalid_argument, cuda.
  /// Threads: safe with an Execution each.
  void run(const ChainArguments& arguments, const Execution& execution) const;

 private:
  friend ChainPlan make_chain_plan(const Context&, const ChainProblem&, const PlanOptions&);
  explicit ChainPlan(std::shared_ptr<const State> state) : PrimitivePlan(std::move(state)) {}
};

ChainPlan make_chain_plan(const Context& context, const ChainProblem& problem,
                          const PlanOptions& options = {});

}  // namespace wide
