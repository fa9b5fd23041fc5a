// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// pooling: the largest value or the mean of windows of every channel of every member, in one call.
// Signals are images of one row; a global pool is an adaptive one with a single output.
#pragma once

#include <memory>
#include <utility>

#include "wide/channels.hpp"
#include "wide/plan.hpp"
#include "wide/pooling_mode.hpp"
#include "wide/tensor.hpp"

namespace wide {

/// Windows along one axis: output i takes x[i * stride - padding + t * dilation], t < kernel, where
/// such an x exists.
struct PoolingWindow {
  int64_t kernel = 1;
  int64_t stride = 0;    ///< 0: kernel, so that windows lie side by side
  int64_t padding = 0;   ///< positions that do not exist at either end; at most kernel / 2
  int64_t dilation = 1;  ///< max's; of averages 1
  friend bool operator==(const PoolingWindow&, const PoolingWindow&) = default;
};

struct PoolingProblem {
  int64_t num_members = 1;
  int64_t batch = 0;                                     ///< B
  int64_t channels = 0;                                  ///< C, of one member
  int64_t height = 1;                                    ///< rows of positions of x; 1 for signals
  int64_t width = 0;                                     ///< positions in a row of x
  ChannelLayout layout = ChannelLayout::channels_first;  ///< of x and y
  PoolingMode mode = PoolingMode::max;
  PoolingWindow rows{}, columns{};        ///< not if adaptive; for signals leave `rows` as it is
  bool ceil_mode = false;                 ///< a last window may begin inside x and end outside
  bool counts_padding = true;             ///< average's: padding counts as zeros
  int64_t out_height = 0, out_width = 0;  ///< of y; 0: as the windows give
  Dtype dtype = Dtype::fp32;              ///< of x and y: fp32, fp16 or bf16
  ChannelStrides x{}, y{};
  friend bool operator==(const PoolingProblem&, const PoolingProblem&) = default;
};

struct PoolingArguments {
  ConstTensorView x;  ///< [B, N*C, L] or [B, N*C, H, W]; or [B, L, N*C] or [B, H, W, N*C]
  TensorView y;       ///< as x, of the outputs' size
};

/// The number of outputs for `size` positions: (size + 2 padding - dilation (kernel - 1) - 1) /
/// stride + 1, rounded down, or up with `ceil_mode` as long as the last window begins inside x or
/// its left padding. A stride of 0 is the kernel. Below 1 where the window is larger than x, and
/// where there is no such window: a kernel or dilation below 1, a negative size, stride or padding,
/// sizes beyond 64 bits. Never throws.
int64_t pooling_outputs(int64_t size, const PoolingWindow& window, bool ceil_mode);

/// Reads the problem off the operands; `like` gives what they do not show: num_members, the
/// layout, the mode and its windows.
PoolingProblem describe_pooling(const PoolingArguments& arguments, const PoolingProblem& like);

extern template class PrimitivePlan<PoolingProblem>;

/// There are no parameters, so nothing is prepared.
class PoolingPlan : public PrimitivePlan<PoolingProblem> {
 public:
  /// y[b, n, c, i, j] = the largest or the mean of x[b, n, c, window(i), window(j)]. A mean divides
  /// by the window's positions inside x and its padding, or inside x alone (counts_padding); an
  /// adaptive window i of O over L positions is [floor(i L / O), ceil((i + 1) L / O)). A window of
  /// nothing but padding, as dilation can make one, has -infinity as its largest value.
  /// Layout: as PoolingArguments says; the last axis contiguous, any other strides, any alignment
  ///         of an element. y overlaps nothing.
  /// Types: x and y share a dtype in {fp32, fp16, bf16}; sums in fp32.
  /// Limits: on CUDA a launch has up to 2^31 - 1 blocks, each of at least one output. If one
  ///         launch for all members exceeds this, wide is unsupported and "auto" takes another
  ///         strategy; if a single member exceeds it, so is sequential: making its plan throws
  ///         unsupported.
  /// Stream: asynchronous on execution.stream; never synchronizes or allocates; may be captured.
  /// Memory: workspace_bytes() of execution.workspace.
  /// Errors: invalid_argument, unsupported (strides of the other layout; by "cudnn" operands that
  ///         are not aligned to 16 bytes), cuda, cudnn.
  /// Threads: safe with an Execution each.
  void run(const PoolingArguments& arguments, const Execution& execution) const;

 private:
  friend PoolingPlan make_pooling_plan(const Context&, const PoolingProblem&, const PlanOptions&);
  explicit PoolingPlan(std::shared_ptr<const State> state) : PrimitivePlan(std::move(state)) {}
};

PoolingPlan make_pooling_plan(const Context& context, const PoolingProblem& problem,
                              const PlanOptions& options = {});

}  // namespace wide
