// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// batchnorm: every channel of every member normalised over batch and positions, in one call. One
// primitive for vectors, signals and images: batchnorm2d is batchnorm1d with H*W positions.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "wide/channels.hpp"
#include "wide/plan.hpp"
#include "wide/tensor.hpp"

namespace wide {

enum class BatchnormMode : uint8_t {
  eval,   ///< with the running statistics, left unchanged
  train,  ///< with the batch's statistics, which update the running ones
};

struct BatchnormProblem {
  int64_t num_members = 1;
  int64_t batch = 0;          ///< B
  int64_t channels = 0;       ///< C, of one member
  int64_t height = 1;         ///< rows of positions; 1 for signals
  int64_t width = 0;          ///< positions in a row; 1 for vectors
  Dtype dtype = Dtype::fp32;  ///< of x, gamma, beta and y: fp32, fp16 or bf16
  BatchnormMode mode = BatchnormMode::eval;
  float epsilon = 1e-5f;  ///< unless the arguments give each member its own
  float momentum = 0.1f;  ///< the batch's weight in the running statistics; as epsilon
  bool has_gamma = true;
  bool has_beta = true;
  ChannelStrides x{}, y{};
  int64_t gamma_member_stride = 0, beta_member_stride = 0;
  int64_t mean_member_stride = 0, variance_member_stride = 0;  ///< of the running statistics
  friend bool operator==(const BatchnormProblem&, const BatchnormProblem&) = default;
};

/// Parameters of one member, [C], or of all, [N, C] or [N*C].
template <class View>
struct BasicBatchnormParameters {
  View gamma;             ///< or absent: 1
  View beta;              ///< or absent: 0
  View running_mean;      ///< fp32
  View running_variance;  ///< fp32
};
using BatchnormParameters = BasicBatchnormParameters<TensorView>;
using ConstBatchnormParameters = BasicBatchnormParameters<ConstTensorView>;

struct BatchnormArguments {
  ConstTensorView x;            ///< [B, N*C], [B, N*C, L] or [B, N*C, .., H, W]
  ConstTensorView gamma{};      ///< [N, C] or [N*C], or absent: 1
  ConstTensorView beta{};       ///< as gamma; absent: 0
  TensorView running_mean;      ///< as gamma, fp32; written in mode train only
  TensorView running_variance;  ///< as running_mean
  TensorView y;                 ///< as x; may be x itself
  ConstTensorView epsilon{};    ///< fp32 [N], each member's own, read when the call runs; or absent
  ConstTensorView momentum{};   ///< as epsilon
};

/// Reads the problem off the operands; `like` gives what they do not show: mode, epsilon, momentum,
/// and num_members where the parameters are [N*C].
BatchnormProblem describe_batchnorm(const BatchnormArguments& arguments,
                                    const BatchnormProblem& like = {});

extern template class PrimitivePlan<BatchnormProblem>;

class BatchnormPlan : public PrimitivePlan<BatchnormProblem> {
 public:
  /// N members' [C] -> [N, C], for each parameter that the problem has.
  void prepare_weights(std::span<const ConstBatchnormParameters> members,
                       const BatchnormParameters& packed, Stream stream) const;
  /// The inverse, bit for bit.
  void restore_weights(const ConstBatchnormParameters& packed,
                       std::span<const BatchnormParameters> members, Stream stream) const;

  /// y = (x - mean[n, c]) / sqrt(variance[n, c] + epsilon[n]) * gamma[n, c] + beta[n, c]
  /// eval:  mean and variance are the running ones.
  /// train: they are those of x[:, n, c, :], the variance biased; and
  ///        running = (1 - momentum[n]) * running + momentum[n] * batch's, the variance unbiased.
  /// Layout: as BatchnormArguments says; the last axis of x and y contiguous, any strides of batch,
  ///         channels and rows, any alignment of an element. Channels last is refused. y may be x
  ///         itself; it overlaps nothing else.
  /// Types: x, gamma, beta, y share a dtype in {fp32, fp16, bf16}; the running statistics are fp32;
  ///         statistics in fp32 of values minus a mean, so that a common offset costs no accuracy.
  ///         In train at least two values per channel, at most 2^31 - 1 in all.
  /// Speed:  on CUDA, train moves elements one by one where rows of positions have gaps, and where
  ///         images do not begin and end at multiples of 16 bytes and a channel takes more than
  ///         half of a block's shared memory (eval only where rows have gaps). Small images of that
  ///         kind are read up to twice where there are gaps between channels or shared memory holds
  ///         few of them. Channels of one position take whole sectors only where they lie side by
  ///         side; where their rows do not begin and end at multiples of 16 bytes, pieces of 256
  ///         bytes, and in train elements one by one where a block's shared memory does not hold
  ///         64 bytes of each row.
  /// Limits: on CUDA a launch has up to 2^31 - 1 channels of members, in eval as many blocks of up
  ///         to 16 KiB of one. If one launch for all members exceeds this, wide is unsupported and
  ///         "auto" takes another strategy; if a single member exceeds it, so is sequential: making
  ///         its plan throws unsupported.
  /// Stream: asynchronous on execution.stream; never synchronizes or allocates; may be captured.
  /// Memory: workspace_bytes() of execution.workspace.
  /// Errors: invalid_argument, cuda, cudnn; unsupported where cudnn was asked for and operands are
  ///         not aligned to 16 bytes, y is x, or members have an epsilon or momentum of their own.
  /// Threads: safe with an Execution each.
  /// Source: Ioffe, Szegedy, "Batch Normalization", 2015, arXiv:1502.03167, section 3.
  void run(const BatchnormArguments& arguments, const Execution& execution) const;

 private:
  friend BatchnormPlan make_batchnorm_plan(const Context&, const BatchnormProblem&,
                                           const PlanOptions&);
  explicit BatchnormPlan(std::shared_ptr<const State> state) : PrimitivePlan(std::move(state)) {}
};

BatchnormPlan make_batchnorm_plan(const Context& context, const BatchnormProblem& problem,
                                  const PlanOptions& options = {});

}  // namespace wide
