// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// linear: N fully connected layers of identical shape in one call.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "wide/epilogue.hpp"
#include "wide/plan.hpp"
#include "wide/quantize.hpp"
#include "wide/strides.hpp"
#include "wide/tensor.hpp"

namespace wide {

/// The shapes, types, strides and epilogue of one call. Strides left 0 mean packed.
struct LinearProblem {
  int64_t num_members = 1;
  int64_t batch = 0;  ///< rows per member: B, or B*T
  int64_t in_features = 0;
  int64_t out_features = 0;
  Dtype dtype = Dtype::fp32;  ///< of x and weight: fp32, fp16, bf16, fp8_e4m3 or fp8_e5m2
  /// Of bias, residual and y: as x, and fp16 or bf16 where x is fp8. Absent: as x.
  std::optional<Dtype> y_dtype{};
  bool shared_input = false;  ///< all members read one x [B, in]
  bool allow_tf32 = false;    ///< fp32 operands may be rounded to tf32 before they are multiplied
  WeightFormat weight_format = WeightFormat::packed;
  int64_t group_size = 128;  ///< of quantised weights: inputs that share a scale, 64 or 128
  /// Quantised weights, scale * value of the code, may be rounded to x's dtype before they are
  /// multiplied: what is beyond its range becomes infinite. `decoded` then has all members' in its
  /// workspace, two bytes each.
  bool allow_rounded_weights = false;
  Epilogue epilogue{};
  RowStrides x{}, y{};
  RowStrides weight{};  ///< row: from one output feature to the next; quantised: member, in bytes
  RowStrides residual{};
  int64_t bias_member_stride = 0;
  int64_t scale_member_stride = 0;
  friend bool operator==(const LinearProblem&, const LinearProblem&) = default;
};

/// Operands of one call; bias, scale and residual are absent exactly where the problem has none.
struct LinearArguments {
  ConstTensorView x;       ///< [B, N*in], [B, T, N*in] or [B, N, in]; shared: [B, in] or [B, T, in]
  ConstTensorView weight;  ///< [N, out, in]; quantised: uint8 [N, linear_member_bytes(problem)]
  ConstTensorView bias{};  ///< [N, out]
  TensorView y;            ///< [B, N*out], [B, T, N*out] or [B, N, out]
  ConstTensorView scale{};     ///< fp32: [N, 1] or [N, out]
  ConstTensorView residual{};  ///< as y; either y itself or separate memory
};

/// One member's parameters, as a checkpoint holds them.
struct LinearMember {
  ConstTensorView weight;  ///< [out, in]
  ConstTensorView bias{};  ///< [out], or absent
};

/// How a member's weight is stored where weight_format is not packed, and the bytes of its blob.
QuantizedWeight linear_quantized_weight(const LinearProblem& problem);
int64_t linear_member_bytes(const LinearProblem& problem);

/// Reads the problem off the operands; `like` gives what they do not show: shared_input,
/// allow_tf32, activation, alpha, whether and where a residual is added, and the weights' format;
/// where that is a quantised one, also group_size, allow_rounded_weights, in_features and
/// out_features.
LinearProblem describe_linear(const LinearArguments& arguments, const LinearProblem& like = {});

extern template class PrimitivePlan<LinearProblem>;

/// How plan.run computes one problem on one device. Immutable: may run from several threads at a
/// time, each with its own Execution.
class LinearPlan : public PrimitivePlan<LinearProblem> {
 public:
  /// The weights' format: "packed" is [N, out, in] as described above, the others are
  /// quantize.hpp's.
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

  /// y[b, n, o] = activation(alpha * scale[n, o] * sum_i x[b, n, i] * weight[n, o, i] + bias[n, o]
  ///                         + residual[b, n, o]), or the residual added after the activation
  /// Layout: as LinearArguments says; any row and member strides of the problem, features
  ///         contiguous; any alignment of an element (16 bytes is fastest). y overlaps no input,
  ///         but residual may be y itself.
  /// Types: x and weight share a dtype in {fp32, fp16, bf16, fp8_e4m3, fp8_e5m2}; bias, residual
  ///         and y have it too, or fp16 or bf16 for fp8; scale is fp32; products and sums in fp32,
  ///         one rounding at the end; tf32 products only with allow_tf32, or three per product if
  ///         the strategy tf32x3 is asked for by name, which keeps fp32's accuracy. Quantised
  ///         weights are uint8; their codes' values are multiplied exactly, sums by the scales in
  ///         fp32; or, only with allow_rounded_weights, weights are first rounded to x's dtype.
  /// Stream: asynchronous on execution.stream; never synchronizes or allocates; may be captured.
  /// Memory: workspace_bytes() of execution.workspace.
  /// Errors: invalid_argument, unsupported, cuda, cublas: see plan.hpp.
  /// Threads: safe with an Execution each.
  void run(const LinearArguments& arguments, const Execution& execution) const;

 private:
  friend LinearPlan make_linear_plan(const Context&, const LinearProblem&, const PlanOptions&);
  explicit LinearPlan(std::shared_ptr<const State> state) : PrimitivePlan(std::move(state)) {}
};

/// Fixes strategy and policy. Errors: see plan.hpp.
LinearPlan make_linear_plan(const Context& context, const LinearProblem& problem,
                            const PlanOptions& options = {});

}  // namespace wide
