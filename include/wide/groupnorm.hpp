// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// groupnorm: the channels of a group of every batch row of every member normalised together, in one
// call. With as many groups as channels it is instancenorm, for signals and images alike.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "wide/channels.hpp"
#include "wide/plan.hpp"
#include "wide/tensor.hpp"

namespace wide {

struct GroupnormProblem {
  int64_t num_members = 1;
  int64_t batch = 0;          ///< B
  int64_t channels = 0;       ///< C, of one member
  int64_t groups = 1;         ///< G of one member; divides C. G = C: instancenorm
  int64_t height = 1;         ///< rows of positions; 1 for signals
  int64_t width = 0;          ///< positions in a row; 1 for vectors
  Dtype dtype = Dtype::fp32;  ///< of x, gamma, beta and y: fp32, fp16 or bf16
  float epsilon = 1e-5f;
  bool has_gamma = true;
  bool has_beta = true;
  ChannelLayout layout = ChannelLayout::channels_first;  ///< of x and y
  ChannelStrides x{}, y{};
  int64_t gamma_member_stride = 0, beta_member_stride = 0;
  friend bool operator==(const GroupnormProblem&, const GroupnormProblem&) = default;
};

struct GroupnormArguments {
  /// [B, N*C], [B, N*C, L] or [B, N*C, .., H, W]; channels last [B, L, N*C] or [B, .., H, W, N*C]
  ConstTensorView x;
  ConstTensorView gamma{};  ///< [N, C] or [N*C], or absent: 1
  ConstTensorView beta{};   ///< as gamma; absent: 0
  TensorView y;             ///< as x; may be x itself
};

struct GroupnormMember {
  ConstTensorView gamma{};  ///< [C], or absent
  ConstTensorView beta{};   ///< [C], or absent
};

/// Reads the problem off the operands; `like` gives what they do not show: groups, epsilon, the
/// layout, and num_members where neither gamma nor beta is [N, C].
GroupnormProblem describe_groupnorm(const GroupnormArguments& arguments,
                                    const GroupnormProblem& like);

extern template class PrimitivePlan<GroupnormProblem>;

class GroupnormPlan : public PrimitivePlan<GroupnormProblem> {
 public:
  /// N gammas and betas [C] -> [N, C] each.
  void prepare_weights(std::span<const GroupnormMember> members, const TensorView& gamma,
                       const TensorView& beta, Stream stream) const;
  /// The inverse, bit for bit.
  void restore_weights(const ConstTensorView& gamma, const ConstTensorView& beta,
                       std::span<const TensorView> member_gammas,
                       std::span<const TensorView> member_betas, Stream stream) const;

  /// y = (x - mean) / sqrt(variance + epsilon) * gamma[n, c] + beta[n, c], mean and (biased)
  /// variance over the channels of c's group in x[b, n, ..] and all positions.
  /// Layout: as GroupnormArguments says; the last axis of x and y contiguous, any other
  ///         strides, any alignment of an element. y may be x itself; it overlaps nothing else.
  /// Types: x, gamma, beta, y share a dtype in {fp32, fp16, bf16}; statistics in fp32 of values
  ///         minus a mean, so that a common offset costs no accuracy. At most 2^31 - 1 values per
  ///         group.
  /// Speed:  on CUDA elements are moved one by one where rows of positions have gaps, and where
  ///         images do not begin and end at multiples of 16 bytes and a group takes more than half
  ///         of a block's shared memory; with channels last where groups of channels, or as few of
  ///         them as have whole vectors of 16 bytes, do not begin at multiples of 16 bytes. There,
  ///         images of more positions than a block has in registers are read twice, by two
  ///         launches.
  /// Limits: on CUDA a launch has up to 2^31 - 1 groups of batch rows, with channels last as many
  ///         channels of all members, and blocks, each of 16 KB of x. If one launch for
  ///         all members exceeds this, wide is unsupported and "auto" takes another strategy; if a
  ///         single member exceeds it, so is sequential: making its plan throws unsupported.
  /// Stream: asynchronous on execution.stream; never synchronizes or allocates; may be captured.
  /// Memory: workspace_bytes() of execution.workspace.
  /// Errors: invalid_argument, cuda, cudnn; unsupported for strides of another layout, and where
  ///         cudnn, which takes groups of one channel only, and channels first, was asked for and
  ///         operands are not aligned to 16 bytes, or y is x.
  /// Threads: safe with an Execution each.
  /// Source: Wu, He, "Group Normalization", 2018, arXiv:1803.08494, section 3; for instances:
  ///         Ulyanov, Vedaldi, Lempitsky, "Instance Normalization", 2016, arXiv:1607.08022.
  void run(const GroupnormArguments& arguments, const Execution& execution) const;

 private:
  friend GroupnormPlan make_groupnorm_plan(const Context&, const GroupnormProblem&,
                                           const PlanOptions&);
  explicit GroupnormPlan(std::shared_ptr<const State> state) : PrimitivePlan(std::move(state)) {}
};

GroupnormPlan make_groupnorm_plan(const Context& context, const GroupnormProblem& problem,
                                  const PlanOptions& options = {});

}  // namespace wide
