// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// conv: N convolutions of identical shape in one call. One primitive for signals, images and
// volumes: conv1d is conv2d of height 1, and conv2d is conv3d of depth 1.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "wide/channels.hpp"
#include "wide/epilogue.hpp"
#include "wide/plan.hpp"
#include "wide/strides.hpp"
#include "wide/tensor.hpp"

namespace wide {

/// A number for each axis of positions. Signals lie along the width and have a height of 1.
struct PerAxis {
  int64_t height = 1;
  int64_t width = 1;
  friend constexpr bool operator==(const PerAxis&, const PerAxis&) = default;
};

/// The third axis of positions, that of volumes. Signals and images have a depth of 1.
struct ConvDepth {
  int64_t input = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;  ///< zeros on either side
  int64_t dilation = 1;
  /// Elements from one plane to the next, of x, y, the residual and the weight.
  int64_t x_stride = 0, y_stride = 0, residual_stride = 0, weight_stride = 0;
  friend constexpr bool operator==(const ConvDepth&, const ConvDepth&) = default;
};

/// The shapes, types, strides and epilogue of one call.
struct ConvProblem {
  int64_t num_members = 1;
  int64_t batch = 0;         ///< B
  int64_t in_channels = 0;   ///< of one member
  int64_t out_channels = 0;  ///< of one member
  int64_t groups = 1;        ///< of one member's channels; divides both
  PerAxis input{};           ///< H and W
  PerAxis kernel{};
  PerAxis stride{};
  PerAxis padding{0, 0};  ///< zeros on either side
  PerAxis dilation{};
  ConvDepth depth{};
  /// Of y, residual, x, and the weight: [N*Cout, Cin/groups, kd, kh, kw] or [N*Cout, kd, kh, kw,
  /// Cin/groups].
  ChannelLayout layout = ChannelLayout::channels_first;
  /// x's layout where it differs, so that the first channels-last layer can read a channels-first
  /// input in place.
  std::optional<ChannelLayout> x_layout{};
  Dtype dtype = Dtype::fp32;  ///< of all operands: fp32, fp16 or bf16
  bool allow_tf32 = false;    ///< fp32 operands may be rounded to tf32 before they are multiplied
  Epilogue epilogue{};        ///< bias, activation and residual; a factor belongs in the weights
  ChannelStrides x{}, y{}, residual{};
  ConvWeightStrides weight{};
  int64_t bias_member_stride = 0;
  friend bool operator==(const ConvProblem&, const ConvProblem&) = default;
};

/// H and W of y: (input + 2 padding - dilation (kernel - 1) - 1) / stride + 1, rounded down; below
/// 1 where the kernel is larger than the padded input, and where there is no such convolution: a
/// kernel, stride or dilation below 1, a negative input or padding, sizes beyond 64 bits. Never
/// throws.
PerAxis conv_output_size(const ConvProblem& problem);
/// The same for the depth.
int64_t conv_output_depth(const ConvProblem& problem);

/// Operands of one call; images have no D and kd, signals also no H and kh. bias and residual
/// are absent exactly where the problem has none.
struct ConvArguments {
  ConstTensorView x;  ///< [B, N*Cin, D, H, W] or [B, D, H, W, N*Cin]
  /// [N*Cout, Cin/groups, kd, kh, kw] or [N*Cout, kd, kh, kw, Cin/groups]
  ConstTensorView weight;
  ConstTensorView bias{};      ///< [N*Cout] or [N, Cout]
  TensorView y;                ///< as x, with Cout channels and the output's size
  ConstTensorView residual{};  ///< as y; either y itself or separate memory
};

/// One member's parameters, as a checkpoint holds them, whatever the layout.
struct ConvMember {
  ConstTensorView weight;  ///< [Cout, Cin/groups, kd, kh, kw], or without kd, or kd and kh
  ConstTensorView bias{};  ///< [Cout], or absent
};

/// Reads the problem off the operands; `like` gives what they do not show: num_members, groups,
/// stride, padding, dilation, the depth's, layout, x_layout, allow_tf32, activation and
/// where a residual is added.
ConvProblem describe_conv(const ConvArguments& arguments, const ConvProblem& like);

extern template class PrimitivePlan<ConvProblem>;

class ConvPlan : public PrimitivePlan<ConvProblem> {
 public:
  /// "channels_first" or "channels_last": ChannelLayout says what these are.
  std::string_view weight_format() const;

  /// Member parameters -> the packed ones, in the layout's order. Runs once per set of weights.
  void prepare_weights(std::span<const ConvMember> members, const TensorView& weight,
                       const TensorView& bias, Stream stream) const;
  /// The inverse, bit for bit.
  void restore_weights(const ConstTensorView& weight, const ConstTensorView& bias,
                       std::span<const TensorView> member_weights,
                       std::span<const TensorView> member_biases, Stream stream) const;

  /// y[b, n, o, h, i, j] = activation(sum over c, r, p, q of weight[n, o, c, r, p, q] *
  ///     x[b, n, first channel of o's group + c, h * stride - padding + r * dilation, i and j
  ///     likewise] + bias[n, o] + residual[b, n, o, h, i, j]), or the residual added after the
  ///     activation; images have no h and r, signals also no i and p;
  /// x is 0 outside its positions. Padding is multiplied as zero, so an infinite or NaN weight
  /// yields NaN there.
  /// Layout: as ConvArguments says; the last axis of every operand contiguous, any other strides,
  ///         any alignment of an element (16 bytes is fastest). y overlaps no input, but residual
  ///         may be y itself.
  /// Types: all operands share a dtype in {fp32, fp16, bf16}; products and sums in fp32, one
  ///        rounding at the end; tf32 products only with allow_tf32.
  /// Stream: asynchronous on execution.stream; never synchronizes or allocates; may be captured.
  /// Memory: workspace_bytes() of execution.workspace.
  /// Errors: invalid_argument, unsupported, cuda, cudnn, out_of_memory (cuDNN's own): see plan.hpp;
  ///         unsupported, too, where a strategy of cuDNN's was asked for and operands are not
  ///         aligned to 16 bytes.
  /// Threads: safe with an Execution each.
  void run(const ConvArguments& arguments, const Execution& execution) const;

 private:
  friend ConvPlan make_conv_plan(const Context&, const ConvProblem&, const PlanOptions&);
  explicit ConvPlan(std::shared_ptr<const State> state) : PrimitivePlan(std::move(state)) {}
};

/// Fixes the strategy and, of `grouped` and `channels_last`, the policy. Errors: see plan.hpp.
ConvPlan make_conv_plan(const Context& context, const ConvProblem& problem,
                        const PlanOptions& options = {});

}  // namespace wide
