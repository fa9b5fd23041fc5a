// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// conv: N convolutions of identical shape in one call. One primitive for signals and images: conv1d
// is conv2d of height 1.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
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
  /// Of y, residual, x, and the weight: [N*Cout, Cin/groups, kh, kw] or [N*Cout, kh, kw,
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
/// 1 where the kernel is larger than the padded input.
PerAxis conv_output_size(const ConvProblem& problem);

/// Operands of one call; signals have no H, and no kh. bias and residual are absent exactly where
/// the problem has none.
struct ConvArguments {
  ConstTensorView x;           ///< [B, N*Cin, H, W] or [B, H, W, N*Cin]
  ConstTensorView weight;      ///< [N*Cout, Cin/groups, kh, kw] or [N*Cout, kh, kw, Cin/groups]
  ConstTensorView bias;        ///< [N*Cout] or [N, Cout]
  TensorView y;                ///< as x, with Cout channels and the output's size
  ConstTensorView residual{};  ///< as y; y itself, or memory of its own
};

/// One member's parameters, as a checkpoint holds them, whatever the layout.
struct ConvMember {
  ConstTensorView weight;  ///< [Cout, Cin/groups, kh, kw], or without kh
  ConstTensorView bias;    ///< [Cout], or absent
};

/// Reads the problem off the operands; `like` gives what they do not show: num_members, groups,
/// stride, padding, dilation, layout, x_layout, allow_tf32, activation and where a residual is
/// added.
ConvProblem describe_conv(const ConvArguments& arguments, const ConvProblem& like);

class ConvPlan {
 public:
  const ConvProblem& problem() const;  ///< with all strides filled in
  std::string_view strategy() const;
  std::string explain() const;
  int64_t workspace_bytes() const;
  /// "channels_first" or "channels_last": ChannelLayout says what these are.
  std::string_view weight_format() const;

  /// Member parameters -> the packed ones, in the layout's order. Runs once per set of weights.
  void prepare_weights(std::span<const ConvMember> members, const TensorView& weight,
                       const TensorView& bias, Stream stream) const;
  /// The inverse, bit for bit.
  void restore_weights(const ConstTensorView& weight, const ConstTensorView& bias,
                       std::span<const TensorView> member_weights,
                       std::span<const TensorView> member_biases, Stream stream) const;

  /// y[b, n, o, i, j] = activation(sum over c, p, q of weight[n, o, c, p, q] *
  ///     x[b, n, first channel of o's group + c, i * stride - padding + p * dilation, j likewise]
  ///     + bias[n, o] + residual[b, n, o, i, j]), or the residual added after the activation;
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
  /// Members: under one strategy of ours, a member's bits depend on its own operands only, never on
  ///         N or its neighbours; cuDNN may round otherwise, and "auto" choose otherwise, for
  ///         another N.
  void run(const ConvArguments& arguments, const Execution& execution) const;

  struct State;

 private:
  friend ConvPlan make_conv_plan(const Context&, const ConvProblem&, const PlanOptions&);
  explicit ConvPlan(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// Fixes the strategy. Errors: see plan.hpp.
ConvPlan make_conv_plan(const Context& context, const ConvProblem& problem,
                        const PlanOptions& options = {});

}  // namespace wide
