// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// recurrent: LSTM or GRU layers of N members over whole sequences in one call.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "wide/plan.hpp"
#include "wide/recurrent_cell.hpp"
#include "wide/strides.hpp"
#include "wide/tensor.hpp"

namespace wide {

/// The shapes, types and strides of one call. Strides left 0 mean packed.
struct RecurrentProblem {
  RecurrentCell cell = RecurrentCell::lstm;
  int64_t num_members = 1;
  int64_t batch = 0;  ///< B: sequences of a member
  int64_t steps = 0;  ///< T
  int64_t in_features = 0;
  int64_t hidden = 0;            ///< H: features of y
  Dtype dtype = Dtype::fp32;     ///< of all operands but cell states: fp32, fp16 or bf16
  bool is_reversed = false;      ///< steps are taken from the last to the first
  bool has_bias = false;         ///< both of them
  bool has_first_state = false;  ///< else sequences begin with zeros
  bool has_last_cell = false;    ///< lstm's: the last cell state is written
  bool shared_input = false;     ///< all members read one x [B, T, in]
  bool allow_tf32 = false;       ///< fp32 may be rounded to tf32 before it is multiplied
  RecurrentStrides x{}, y{};
  RowStrides input_weight{}, hidden_weight{};  ///< row: from one gate's output to the next
  int64_t input_bias_member_stride = 0, hidden_bias_member_stride = 0;
  RowStrides first_hidden{}, first_cell{}, last_cell{};
  friend bool operator==(const RecurrentProblem&, const RecurrentProblem&) = default;
};

/// Operands of one call. Exactly those that the problem lacks are absent.
struct RecurrentArguments {
  ConstTensorView x;               ///< [B, T, N*in] or [B, T, N, in]; shared: [B, T, in]
  ConstTensorView input_weight;    ///< [N, G*H, in]
  ConstTensorView hidden_weight;   ///< [N, G*H, H]
  ConstTensorView input_bias{};    ///< [N, G*H]
  ConstTensorView hidden_bias{};   ///< [N, G*H]
  TensorView y;                    ///< [B, T, N*H] or [B, T, N, H]
  ConstTensorView first_hidden{};  ///< [B, N*H] or [B, N, H]
  ConstTensorView first_cell{};    ///< fp32, likewise; lstm's
  TensorView last_cell{};          ///< fp32, likewise; lstm's; may be first_cell itself
};

/// One member's parameters, as a checkpoint holds them.
template <class View>
struct BasicRecurrentMember {
  View input_weight{};   ///< [G*H, in]
  View hidden_weight{};  ///< [G*H, H]
  View input_bias{};     ///< [G*H], or absent
  View hidden_bias{};    ///< [G*H], or absent
};
using RecurrentMember = BasicRecurrentMember<ConstTensorView>;

/// Reads the problem off the operands; `like` gives what they do not show: the cell, is_reversed,
/// shared_input and allow_tf32.
RecurrentProblem describe_recurrent(const RecurrentArguments& arguments,
                                    const RecurrentProblem& like = {});

extern template class PrimitivePlan<RecurrentProblem>;

/// How plan.run computes one problem on one device. Immutable: may run from several threads at a
/// time, each with its own Execution.
class RecurrentPlan : public PrimitivePlan<RecurrentProblem> {
 public:
  /// N members' parameters -> the packed ones; biases are absent where the problem has none. Runs
  /// once per set of weights, on `stream`.
  void prepare_weights(std::span<const RecurrentMember> members, const TensorView& input_weight,
                       const TensorView& hidden_weight, const TensorView& input_bias,
                       const TensorView& hidden_bias, Stream stream) const;
  /// The inverse, bit for bit.
  void restore_weights(const ConstTensorView& input_weight, const ConstTensorView& hidden_weight,
                       const ConstTensorView& input_bias, const ConstTensorView& hidden_bias,
                       std::span<const BasicRecurrentMember<TensorView>> members,
                       Stream stream) const;

  /// For every sequence b of every member n, with u_t = W_input x_t + b_input and
  /// v_t = W_hidden h_{t-1} + b_hidden, both [G, H], and s the logistic function:
  ///   lstm  c_t = s(u_1 + v_1) c_{t-1} + s(u_0 + v_0) tanh(u_2 + v_2)
  ///         h_t = s(u_3 + v_3) tanh(c_t)
  ///   gru   z_t = s(u_1 + v_1)
  ///         h_t = (1 - z_t) tanh(u_2 + s(u_0 + v_0) v_2) + z_t h_{t-1}
  /// and y[b, t, n] = h_t; t counts down where is_reversed. For a layer in both directions, the y
  /// of two calls are views of one tensor [B, T, N, 2, H]; the last hidden state is y's last step.
  /// Where there are no steps, last_cell is first_cell, or zeros.
  /// Layout: as RecurrentArguments says; features contiguous, any other strides, so that [T, B, ..]
  ///         is a view, but x's sequences and steps must fold into rows of one stride; any
  ///         alignment of an element (16 bytes is fastest). y and last_cell overlap no input, but
  ///         last_cell may be first_cell itself.
  /// Types: one dtype in {fp32, fp16, bf16}, cell states fp32; u_t is rounded to the dtype once, so
  ///        is h_t; all else is fp32. Step by step, v_t is rounded, too. tf32 products only with
  ///        allow_tf32, and never of W_hidden in `fused`.
  /// Stream: asynchronous on execution.stream; never synchronizes or allocates; may be captured.
  /// Memory: workspace_bytes() of execution.workspace: x's part of the gates, B T N G H elements
  ///         (sequential: of one member), and what step-by-step strategies keep between steps.
  /// Errors: invalid_argument, unsupported, cuda, cublas: see plan.hpp.
  /// Threads: safe with an Execution each.
  /// Parts:  a sequence cut into several calls, each beginning with the states that the previous
  ///         one ended with, has under `fused` the bits of one call where u does; for another
  ///         number of rows linear may sum u in another order.
  /// Sources: Hochreiter, Schmidhuber, "Long Short-Term Memory"; Cho et al., arXiv:1406.1078;
  ///          weights that stay on chip: Diamos et al., "Persistent RNNs".
  void run(const RecurrentArguments& arguments, const Execution& execution) const;

 private:
  friend RecurrentPlan make_recurrent_plan(const Context&, const RecurrentProblem&,
                                           const PlanOptions&);
  explicit RecurrentPlan(std::shared_ptr<const State> state) : PrimitivePlan(std::move(state)) {}
};

/// Fixes the strategy. Errors: see plan.hpp; `fused` takes what a member's hidden weights leave
/// room for in shared memory.
RecurrentPlan make_recurrent_plan(const Context& context, const RecurrentProblem& problem,
                                  const PlanOptions& options = {});

}  // namespace wide
