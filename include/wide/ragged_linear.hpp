// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// ragged_linear: N fully connected layers in one call, each with its own batch and widths.
//
// Members of different shapes share no tensor, so each operand is one storage of one axis in which
// every member has a place: an offset, and a stride from row to row. By default members lie densely
// in order, each beginning at a multiple of 16 bytes. One layer's y then lies as the x of the next,
// whose in_features are its out_features.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "wide/linear.hpp"
#include "wide/plan.hpp"

namespace wide {

/// Where a member's rows lie in a storage, in elements.
struct RaggedRows {
  int64_t offset = -1;  ///< of its first element; -1: after the previous member, see above
  int64_t row = 0;      ///< from row to row; 0: packed
  friend bool operator==(const RaggedRows&, const RaggedRows&) = default;
};

/// Any of the sizes may be 0.
struct RaggedLinearMember {
  int64_t batch = 0;  ///< rows of its x and y
  int64_t in_features = 0;
  int64_t out_features = 0;
  RaggedRows x{}, weight{}, y{};
  int64_t bias_offset = -1;  ///< of its bias, and of its scale where that is per output
  friend bool operator==(const RaggedLinearMember&, const RaggedLinearMember&) = default;
};

struct RaggedLinearProblem {
  std::vector<RaggedLinearMember> members;  ///< at least one
  Dtype dtype = Dtype::fp32;                ///< of x, weight, bias, residual, y: fp32, fp16, bf16
  bool allow_tf32 = false;  ///< fp32 operands may be rounded to tf32 before they are multiplied
  Epilogue epilogue{};      ///< one for all members
  friend bool operator==(const RaggedLinearProblem&, const RaggedLinearProblem&) = default;
};

/// The problem with every offset and stride filled in. Throws invalid_argument that names member
/// and field for negative sizes, extents that do not fit in 64 bits and outputs that overlap each
/// other: members of y lie apart, or interleave at one row stride.
RaggedLinearProblem lay_out_ragged_linear(RaggedLinearProblem problem);

/// Elements that a problem's storages must have at least.
struct RaggedLinearExtents {
  int64_t x = 0;
  int64_t weight = 0;
  int64_t bias = 0;   ///< 0 without
  int64_t scale = 0;  ///< 0 without
  int64_t y = 0;
  int64_t residual = 0;  ///< 0 without
};
RaggedLinearExtents ragged_linear_extents(const RaggedLinearProblem& problem);

/// Operands of one call: storages of one axis, contiguous, at least as long as
/// ragged_linear_extents() says. bias, scale and residual are absent exactly where the problem has
/// none.
struct RaggedLinearArguments {
  ConstTensorView x;           ///< members [B_i, in_i]
  ConstTensorView weight;      ///< members [out_i, in_i]
  ConstTensorView bias{};      ///< members [out_i]
  TensorView y;                ///< members [B_i, out_i]
  ConstTensorView scale{};     ///< fp32: one per member, or members [out_i]
  ConstTensorView residual{};  ///< its members lie as y's; either y itself or separate memory
};

/// The [num_rows, features] that lie at `rows` in a storage; no copy. `rows` is of a problem that
/// was laid out. Throws invalid_argument where the storage is too short.
TensorView ragged_rows(const TensorView& storage, const RaggedRows& rows, int64_t num_rows,
                       int64_t features);
ConstTensorView ragged_rows(const ConstTensorView& storage, const RaggedRows& rows,
                            int64_t num_rows, int64_t features);
inline TensorView ragged_rows(Tensor& storage, const RaggedRows& rows, int64_t num_rows,
                              int64_t features) {
  return ragged_rows(storage.view(), rows, num_rows, features);
}

extern template class PrimitivePlan<RaggedLinearProblem>;

/// How plan.run computes one problem on one device. Immutable: may run from several threads at a
/// time, each with its own Execution. On CUDA it owns a table of the members in device memory,
/// which calls and captured graphs read: the last copy of the plan must outlive them and the work
/// that they queued.
class RaggedLinearPlan : public PrimitivePlan<RaggedLinearProblem> {
 public:
  /// Bytes of device memory that the plan owns: its table. 0 on the CPU.
  int64_t table_bytes() const;

  /// Member parameters -> every member's [out_i, in_i] and [out_i] at its place. Runs once per set
  /// of weights, on `stream`.
  void prepare_weights(std::span<const LinearMember> members, const TensorView& weight,
                       const TensorView& bias, Stream stream) const;
  /// The inverse, bit for bit.
  void restore_weights(const ConstTensorView& weight, const ConstTensorView& bias,
                       std::span<const TensorView> member_weights,
                       std::span<const TensorView> member_biases, Stream stream) const;

  /// y_i[b, o] = activation(alpha * scale_i[o] * sum_k x_i[b, k] * weight_i[o, k] + bias_i[o]
  ///                        + residual_i[b, o]) for all members i, or the residual added after the
  ///                        activation
  /// Layout: storages as RaggedLinearArguments says; any offsets and row strides of the problem,
  ///         any alignment of an element (16 bytes is fastest; "cublas_grouped" multiplies member
  ///         after member without, but for strict fp32). y overlaps no input, but residual
  ///         may be y itself.
  /// Types: as in linear: one dtype in {fp32, fp16, bf16}, scale fp32; products and sums in fp32,
  ///        one rounding at the end; tf32 products only with allow_tf32.
  /// Stream: asynchronous on execution.stream; never synchronizes, allocates or uploads; may be
  ///         captured.
  /// Memory: workspace_bytes() of execution.workspace.
  /// Errors: invalid_argument, unsupported, cuda, cublas: see plan.hpp.
  /// Threads: safe with an Execution each.
  /// Members: a member's bits depend on its own operands and shape only; by "cublas_grouped" they
  ///          may depend on the others' shapes: which kernels run its groups is cuBLAS's choice.
  void run(const RaggedLinearArguments& arguments, const Execution& execution) const;

 private:
  friend RaggedLinearPlan make_ragged_linear_plan(const Context&, const RaggedLinearProblem&,
                                                  const PlanOptions&);
  explicit RaggedLinearPlan(std::shared_ptr<const State> state) : PrimitivePlan(std::move(state)) {}
};

/// Lays the problem out, fixes strategy and policy and, on CUDA, uploads the table: allocates from
/// the context's allocator and waits for the copy, on a stream of its own. Errors: see plan.hpp,
/// and out_of_memory, cuda.
RaggedLinearPlan make_ragged_linear_plan(const Context& context, const RaggedLinearProblem& problem,
                                         const PlanOptions& options = {});

}  // namespace wide
