// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// softmax: every row of every member on its own, in one call.
#pragma once

#include <memory>
#include <utility>

#include "wide/plan.hpp"
#include "wide/strides.hpp"
#include "wide/tensor.hpp"

namespace wide {

struct SoftmaxProblem {
  int64_t num_members = 1;
  int64_t rows = 0;           ///< per member: the product of all axes but the last
  int64_t features = 0;       ///< D, elements that add up to 1
  bool is_log = false;        ///< the logarithm of it
  Dtype dtype = Dtype::fp32;  ///< of x and y: fp32, fp16 or bf16
  RowStrides x{}, y{};
  friend bool operator==(const SoftmaxProblem&, const SoftmaxProblem&) = default;
};

struct SoftmaxArguments {
  ConstTensorView x;  ///< [.., N*D]
  TensorView y;       ///< [.., N*D]; may be x itself
};

/// Reads the problem off the operands; `like` gives what they do not show: num_members (with
/// features where x is not packed) and is_log.
SoftmaxProblem describe_softmax(const SoftmaxArguments& arguments, const SoftmaxProblem& like);

extern template class PrimitivePlan<SoftmaxProblem>;

/// There are no parameters, so nothing is prepared.
class SoftmaxPlan : public PrimitivePlan<SoftmaxProblem> {
 public:
  /// y[r, n, d] = exp(x[r, n, d] - m) / sum_e exp(x[r, n, e] - m), m the largest of x[r, n, :]; or
  /// x[r, n, d] - m - log of that sum. Where x is -infinity it is 0, or -infinity; a row that holds
  /// a NaN or +infinity, or nothing but -infinity, becomes NaN.
  /// Layout: as SoftmaxArguments says; features contiguous, any row and member strides, any
  ///         alignment of an element. y may be x itself; it overlaps nothing else.
  /// Types: x and y share a dtype in {fp32, fp16, bf16}; intermediates in fp32.
  /// Speed:  on CUDA one block, and so one multiprocessor, takes a row, however long it is: fewer
  ///         rows (of all members) than multiprocessors leave some of these idle.
  /// Limits: a CUDA launch has up to 2^31 - 1 blocks, each of a row, or of at least four rows of up
  ///         to 1024 features. If one launch for all members exceeds this, wide is unsupported and
  ///         "auto" takes another strategy; if a single member exceeds it, so is sequential: making
  ///         its plan throws unsupported.
  /// Stream: asynchronous on execution.stream; never synchronizes or allocates; may be captured.
  /// Memory: workspace_bytes() of execution.workspace.
  /// Errors: invalid_argument, unsupported (by "cudnn" where y is x), cuda, cudnn.
  /// Threads: safe with an Execution each.
  /// Source: Milakov, Gimelshein, "Online normalizer calculation for softmax", arXiv:1805.02867.
  void run(const SoftmaxArguments& arguments, const Execution& execution) const;

 private:
  friend SoftmaxPlan make_softmax_plan(const Context&, const SoftmaxProblem&, const PlanOptions&);
  explicit SoftmaxPlan(std::shared_ptr<const State> state) : PrimitivePlan(std::move(state)) {}
};

SoftmaxPlan make_softmax_plan(const Context& context, const SoftmaxProblem& problem,
                              const PlanOptions& options = {});

}  // namespace wide
