// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// ensemble: the outputs of N members combined into one, in one call.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "wide/ensemble_function.hpp"
#include "wide/plan.hpp"
#include "wide/strides.hpp"
#include "wide/tensor.hpp"

namespace wide {

struct EnsembleProblem {
  int64_t num_members = 1;
  int64_t rows = 0;      ///< per member: the product of all axes but the last
  int64_t features = 0;  ///< D, the last axis of a member
  EnsembleFunction function = EnsembleFunction::mean;
  Dtype dtype = Dtype::fp32;  ///< of x and y: fp32, fp16 or bf16
  bool has_mask = false;
  RowStrides x{};            ///< a member stride of 0: all members have the same x
  int64_t y_row_stride = 0;  ///< 0: packed
  friend bool operator==(const EnsembleProblem&, const EnsembleProblem&) = default;
};

struct EnsembleArguments {
  ConstTensorView x;       ///< [.., N*D]
  ConstTensorView mask{};  ///< uint8 [N], 0 for members that are left out; absent: none are
  TensorView y;            ///< [.., D], one for all members
};

/// Reads the problem off the operands; `like` gives what they do not show: num_members and
/// function.
EnsembleProblem describe_ensemble(const EnsembleArguments& arguments, const EnsembleProblem& like);

extern template class PrimitivePlan<EnsembleProblem>;

/// There are no parameters, so nothing is prepared.
class EnsemblePlan : public PrimitivePlan<EnsembleProblem> {
 public:
  /// Over the K members n whose mask[n] is not 0, with x_n = x[r, n, d]:
  ///   mean          y[r, d] = sum x_n / K
  ///   variance      y[r, d] = sum (x_n - mean)^2 / (K - 1); differences from the first of these
  ///                 members are taken before anything is squared, so that a common offset costs
  ///                 no accuracy
  ///   vote          y[r, d] = the share of members n for which d is the largest of x[r, n, :]:
  ///                 the first of equals, in a row with NaN the first NaN, as argmax does
  ///                 elsewhere
  ///   log_mean_exp  y[r, d] = m + log(sum exp(x_n - m) / K), m the largest x_n; -infinity where
  ///                 all are, +infinity where one is
  ///   sum           y[r, d] = sum x_n
  /// With K = 0 every result is NaN but a sum, which is 0; the variance is NaN with K = 1, too.
  /// Otherwise NaN arises only from NaN (not in votes), from infinities of both signs in a mean or
  /// a sum, and in a variance from any infinity and from finite values of which two differ by more
  /// than fp32 can hold. Sums and squares that overflow fp32 are infinite: the variance of 1e20 and
  /// -1e20, and the mean of 3e38 and 3e38. Members that are left out are never read. The mask is
  /// read when the call runs, so that a replayed capture follows its changes.
  /// Layout: as EnsembleArguments says; features contiguous, any row and member strides of x, any
  ///         row stride of y, any alignment of an element; y overlaps neither x nor mask.
  /// Types: x and y share a dtype in {fp32, fp16, bf16}; intermediates in fp32, added in the
  ///        order of members, rounded once: the same bits every time and by every strategy of a
  ///        device.
  /// Stream: asynchronous on execution.stream; never synchronizes or allocates; may be captured.
  /// Memory: workspace_bytes() of execution.workspace.
  /// Errors: invalid_argument, unsupported (votes of more than kMaxVoters or on 2^31 features; on
  ///         CUDA y in more than 2^31 - 1 blocks, each of a row or a piece of one, or of several
  ///         short ones), cuda.
  /// Threads: safe with an Execution each.
  /// Sources: Welford, "Note on a method for calculating corrected sums of squares and products",
  ///          Technometrics 4 (1962); the largest and the sum in one pass as in Milakov,
  ///          Gimelshein, arXiv:1805.02867.
  void run(const EnsembleArguments& arguments, const Execution& execution) const;

 private:
  friend EnsemblePlan make_ensemble_plan(const Context&, const EnsembleProblem&,
                                         const PlanOptions&);
  explicit EnsemblePlan(std::shared_ptr<const State> state) : PrimitivePlan(std::move(state)) {}
};

EnsemblePlan make_ensemble_plan(const Context& context, const EnsembleProblem& problem,
                                const PlanOptions& options = {});

}  // namespace wide
