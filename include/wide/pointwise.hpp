// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// pointwise: one function of every element of every member, in one call.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "wide/plan.hpp"
#include "wide/pointwise_function.hpp"
#include "wide/strides.hpp"
#include "wide/tensor.hpp"

namespace wide {

struct PointwiseProblem {
  int64_t num_members = 1;
  int64_t rows = 0;      ///< per member: the product of all axes but the last
  int64_t features = 0;  ///< D, the last axis of a member
  PointwiseFunction function = PointwiseFunction::relu;
  Dtype dtype = Dtype::fp32;  ///< of x, slope and y: fp32, fp16 or bf16
  float slope = 0.01f;        ///< leaky_relu's; finite
  float alpha = 1;            ///< elu's; finite
  float beta = 1;             ///< softplus's; finite, at least 2^-126
  float low = -1, high = 1;   ///< clamp's; low <= high, infinite where there is no bound
  int64_t num_slopes = 0;     ///< of a member, prelu's: 1, or features; other functions: 0
  RowStrides x{}, y{};
  int64_t slope_member_stride = 0;
  friend bool operator==(const PointwiseProblem&, const PointwiseProblem&) = default;
};

struct PointwiseArguments {
  ConstTensorView x;        ///< [.., N*D]
  ConstTensorView slope{};  ///< prelu's: [N, 1] or [N, D]; absent for other functions
  TensorView y;             ///< [.., N*D]; may be x itself
};

/// Reads the problem off the operands; `like` gives what they do not show: num_members (with
/// features where x is not packed), the function and its parameters.
PointwiseProblem describe_pointwise(const PointwiseArguments& arguments,
                                    const PointwiseProblem& like);

extern template class PrimitivePlan<PointwiseProblem>;

class PointwisePlan : public PrimitivePlan<PointwiseProblem> {
 public:
  /// N slopes [1] or [D] -> [N, 1] or [N, D]; nothing for functions without slopes.
  void prepare_weights(std::span<const ConstTensorView> members, const TensorView& slope,
                       Stream stream) const;
  /// The inverse, bit for bit.
  void restore_weights(const ConstTensorView& slope, std::span<const TensorView> members,
                       Stream stream) const;

  /// y[r, n, d] = function(x[r, n, d]), in fp32, rounded once.
  /// Layout: as PointwiseArguments says; features contiguous, any row and member strides, any
  ///         alignment of an element. y may be x itself; it overlaps nothing else. Tensors of other
  ///         layouts without gaps and without slopes are views [rows, N*D] of the same memory.
  /// Types: x, slope, y share a dtype in {fp32, fp16, bf16}.
  /// Stream: asynchronous on execution.stream; never synchronizes or allocates; may be captured.
  /// Memory: workspace_bytes() of execution.workspace.
  /// Errors: invalid_argument, cuda.
  /// Threads: safe with an Execution each.
  /// Source: Hendrycks, Gimpel, "Gaussian Error Linear Units", arXiv:1606.08415; Elfwing et al.,
  ///         "Sigmoid-Weighted Linear Units", arXiv:1702.03118; Clevert et al., "ELUs",
  ///         arXiv:1511.07289; He et al., "Delving Deep into Rectifiers", arXiv:1502.01852; Howard
  ///         et al., "Searching for MobileNetV3", arXiv:1905.02244.
  void run(const PointwiseArguments& arguments, const Execution& execution) const;

 private:
  friend PointwisePlan make_pointwise_plan(const Context&, const PointwiseProblem&,
                                           const PlanOptions&);
  explicit PointwisePlan(std::shared_ptr<const State> state) : PrimitivePlan(std::move(state)) {}
};

PointwisePlan make_pointwise_plan(const Context& context, const PointwiseProblem& problem,
                                  const PlanOptions& options = {});

}  // namespace wide
