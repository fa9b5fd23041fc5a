// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// dropout: every member drops its own elements, by its own random numbers, in one call.
//
// Seeds and probabilities are operands on the device, so that replaying a captured graph with other
// numbers in them draws another mask: Monte Carlo dropout increments `sequence`, in a model by
// Model::advance_dropout.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "wide/plan.hpp"
#include "wide/strides.hpp"
#include "wide/tensor.hpp"

namespace wide {

struct DropoutProblem {
  int64_t num_members = 1;
  int64_t rows = 0;           ///< per member: the product of all axes but the last
  int64_t features = 0;       ///< D, the last axis of a member
  Dtype dtype = Dtype::fp32;  ///< of x and y: fp32, fp16 or bf16
  RowStrides x{}, y{};
  int64_t seed_member_stride = 0, probability_member_stride = 0;
  friend bool operator==(const DropoutProblem&, const DropoutProblem&) = default;
};

struct DropoutArguments {
  ConstTensorView x;              ///< [.., N*D]
  ConstTensorView seeds;          ///< int64 [N, 2]: a seed, and the number of a sequence
  ConstTensorView probabilities;  ///< fp32 [N, 1]: of an element to be dropped
  TensorView y;                   ///< [.., N*D]; may be x itself
};

/// One member's seed and probability, for prepare_weights.
struct DropoutMember {
  ConstTensorView seed;         ///< int64 [2]
  ConstTensorView probability;  ///< fp32 [1]
};

/// Reads the problem off the operands; `like` gives what they do not show: num_members, and
/// features where x is not packed.
DropoutProblem describe_dropout(const DropoutArguments& arguments, const DropoutProblem& like);

extern template class PrimitivePlan<DropoutProblem>;

class DropoutPlan : public PrimitivePlan<DropoutProblem> {
 public:
  /// N seeds [2] -> [N, 2], N probabilities [1] -> [N, 1].
  void prepare_weights(std::span<const DropoutMember> members, const TensorView& seeds,
                       const TensorView& probabilities, Stream stream) const;
  /// The inverse, bit for bit.
  void restore_weights(const ConstTensorView& seeds, const ConstTensorView& probabilities,
                       std::span<const TensorView> member_seeds,
                       std::span<const TensorView> member_probabilities, Stream stream) const;

  /// y[r, n, d] = 0 where word(r, n, d) < p[n] 2^32, else x[r, n, d] / (1 - p[n]), multiplied in
  /// fp32, rounded once.
  /// Words: Philox4x32-10 with the member's seed as key; the counter's upper half is the sequence,
  ///        its lower half e / 4 with e = r D + d, the element's number in its member; word e % 4.
  ///        So a member's mask depends on its seed, its sequence and the element's number only: not
  ///        on N, layout, dtype, strategy or device. Words of a seed and their masks repeat only
  ///        where the sequence does.
  /// p: 0 keeps everything, bit for bit, 1 drops everything; one outside of [0, 1] or NaN makes
  ///    the member's y NaN. A dropped element is 0 whatever it was.
  /// Layout: as DropoutArguments says; features contiguous, any row and member strides, any
  ///         alignment of an element. y may be x itself; it overlaps nothing else.
  /// Types: x and y share a dtype in {fp32, fp16, bf16}.
  /// Stream: asynchronous on execution.stream; never synchronizes or allocates; may be captured.
  /// Memory: workspace_bytes() of execution.workspace.
  /// Errors: invalid_argument, cuda.
  /// Threads: safe with an Execution each.
  /// Source: Srivastava et al., "Dropout", JMLR 15 (2014); Salmon et al., "Parallel random numbers:
  ///         as easy as 1, 2, 3", SC'11; Gal, Ghahramani, "Dropout as a Bayesian Approximation",
  ///         arXiv:1506.02142.
  void run(const DropoutArguments& arguments, const Execution& execution) const;

 private:
  friend DropoutPlan make_dropout_plan(const Context&, const DropoutProblem&, const PlanOptions&);
  explicit DropoutPlan(std::shared_ptr<const State> state) : PrimitivePlan(std::move(state)) {}
};

DropoutPlan make_dropout_plan(const Context& context, const DropoutProblem& problem,
                              const PlanOptions& options = {});

}  // namespace wide
