// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// routed_linear: N fully connected layers of identical shape, each for the rows of one batch that
// are routed to it. How many these are is known on the device only: a plan is for any routing.
//
// Several layers share a routing. The first reads rows where they are (gather), the last writes
// them where they belong (scatter); in between they lie in the order of their members:
//   routing:        ids -> first_rows, order
//   routed_linear:  {.gathers = true}          x [B, in]    -> h [R, hidden], in routed order
//   routed_linear:  {.scatters = true, gates}  h [R, hidden] -> y [R, out]
// Where each of B rows goes to K members, R = B*K and y is [B, K*out], whose sum over K is an
// ensemble's of K members. top_k.hpp has a mixture of experts from scores to that sum.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "wide/epilogue.hpp"
#include "wide/linear.hpp"
#include "wide/plan.hpp"
#include "wide/routing.hpp"
#include "wide/tensor.hpp"

namespace wide {

/// The shapes, types, strides and epilogue of one call. Strides left 0 mean packed.
struct RoutedLinearProblem {
  int64_t num_members = 1;
  int64_t num_rows = 0;  ///< R, the routing's rows; up to 2^31 - 1
  int64_t in_features = 0;
  int64_t out_features = 0;
  Dtype dtype = Dtype::fp32;  ///< of x, weight, bias, residual and y: fp32, fp16 or bf16
  bool allow_tf32 = false;    ///< fp32 operands may be rounded to tf32 before they are multiplied
  WeightFormat weight_format = WeightFormat::packed;
  int64_t group_size = 128;  ///< of quantised weights: inputs that share a scale, 64 or 128
  bool gathers = false;      ///< x lies by rows: row r reads x[r / choices]; else in routed order
  bool scatters = false;     ///< y lies by rows, residual too; else in routed order
  int64_t choices = 1;       ///< K, the rows that read one of x; 1 unless it gathers; divides R
  bool has_gates = false;    ///< a factor of each row, last of all
  Epilogue epilogue{};
  int64_t x_row_stride = 0, y_row_stride = 0, residual_row_stride = 0;
  RowStrides weight{};  ///< row: from one output feature to the next; quantised: member, in bytes
  int64_t bias_member_stride = 0;
  int64_t scale_member_stride = 0;
  friend bool operator==(const RoutedLinearProblem&, const RoutedLinearProblem&) = default;
};

/// Operands of one call; bias, scale, residual and gates are absent exactly where the problem has
/// none.
struct RoutedLinearArguments {
  ConstTensorView x;           ///< [R, in]; that gathers: [R / K, in]
  ConstTensorView weight;      ///< [N, out, in]; quantised: uint8 [N, linear_member_bytes(problem)]
  ConstTensorView bias{};      ///< [N, out]
  TensorView y;                ///< [R, out]; that scatters also [B, K*out], contiguous
  ConstTensorView scale{};     ///< fp32: [N, 1] or [N, out]
  ConstTensorView residual{};  ///< lies as y; either y itself or separate memory
  ConstTensorView gates{};     ///< fp32 [R] or [B, K], by rows, whether y lies so or not
  ConstTensorView first_rows;  ///< int32 [N + 1]: of a routing of R rows to N members
  ConstTensorView order;       ///< int32 [R]
};

/// As linear.hpp's.
QuantizedWeight linear_quantized_weight(const RoutedLinearProblem& problem);
int64_t linear_member_bytes(const RoutedLinearProblem& problem);

/// Reads the problem off the operands; `like` gives what they do not show: allow_tf32, gathers,
/// scatters, activation, alpha, whether and where a residual is added, and the weights' format;
/// where that is a quantised one, also group_size, in_features and out_features.
RoutedLinearProblem describe_routed_linear(const RoutedLinearArguments& arguments,
                                           const RoutedLinearProblem& like = {});

extern template class PrimitivePlan<RoutedLinearProblem>;

/// How plan.run computes one problem on one device, whatever the routing. Immutable: may run from
/// several threads at a time, each with its own Execution.
class RoutedLinearPlan : public PrimitivePlan<RoutedLinearProblem> {
 public:
  /// "packed": [N, out, in]; the others are quantize.hpp's.
  std::string_view weight_format() const;

  /// Member parameters -> the plan's format. Runs once per set of weights, on `stream`. Weights to
  /// be quantised may be fp32, fp16 or bf16 whatever the problem's dtype, under the terms of
  /// quantize_weights().
  void prepare_weights(std::span<const LinearMember> members, const TensorView& weight,
                       const TensorView& bias, Stream stream) const;
  /// The inverse, bit for bit; for quantised weights the stored values, rounded to the members'
  /// dtype.
  void restore_weights(const ConstTensorView& weight, const ConstTensorView& bias,
                       std::span<const TensorView> member_weights,
                       std::span<const TensorView> member_biases, Stream stream) const;

  /// For all members n, and all j in [first_rows[n], first_rows[n + 1]), with r = order[j]:
  ///   y[to, o] = gates[r] * activation(alpha * scale[n, o] * sum_i x[from, i] * weight[n, o, i]
  ///                                    + bias[n, o] + residual[to, o])
  /// or the residual added after the activation, before the gate; `from` is r / K if it gathers and
  /// j if not, `to` is r if it scatters and j if not.
  /// Rows of no member, those from first_rows[N] on, become zeros in y; their rows of x and
  /// residual are not read.
  /// Layout: as RoutedLinearArguments says; any row strides and member strides of the problem,
  ///         features contiguous; any alignment of an element (16 bytes is fastest). y overlaps no
  ///         input, but residual may be y itself.
  /// Types: x, weight, bias, residual and y share a dtype in {fp32, fp16, bf16}; scale and gates
  ///        are fp32; products and sums in fp32, one rounding at the end; tf32 products only with
  ///        allow_tf32. Quantised weights are uint8; their codes' values are multiplied exactly,
  ///        sums by the scales in fp32.
  /// Routing: one that routing.hpp describes, of these R rows and N members. Another one is not
  ///          noticed: y then is undefined, but nothing outside of the operands is read or written.
  /// Stream: asynchronous on execution.stream; never synchronizes or allocates; may be captured:
  ///         what is launched depends on the problem only, so a replay follows a new routing.
  /// Memory: none: workspace_bytes() is 0.
  /// Errors: invalid_argument, unsupported, cuda: see plan.hpp.
  /// Threads: safe with an Execution each.
  /// Members: a row's bits depend on its own x, its member's parameters, the number of rows of that
  ///          member and the row's place among them, never on other members.
  void run(const RoutedLinearArguments& arguments, const Execution& execution) const;

 private:
  friend RoutedLinearPlan make_routed_linear_plan(const Context&, const RoutedLinearProblem&,
                                                  const PlanOptions&);
  explicit RoutedLinearPlan(std::shared_ptr<const State> state) : PrimitivePlan(std::move(state)) {}
};

/// Fixes the strategy. Errors: see plan.hpp.
RoutedLinearPlan make_routed_linear_plan(const Context& context, const RoutedLinearProblem& problem,
                                         const PlanOptions& options = {});

}  // namespace wide
