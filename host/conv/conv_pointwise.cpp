// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A convolution of one tap is a matrix product, one row per position; where channels are last the
// packed operands are already linear's, and its kernels run them in place.
#include "host/conv/conv_problem.hpp"
#include "host/conv/conv_run.hpp"
#include "host/linear/linear_problem.hpp"
#include "host/linear/linear_strategy.hpp"
#include "wide/linear.hpp"

namespace wide {

namespace {

/// Whether all positions of all batch rows are one column stride apart.
bool are_one_line(const ChannelStrides& s, int64_t depth_stride, const ConvProblem& p) {
  const int64_t height = p.input.height, width = p.input.width, depth = p.depth.input;
  return (height == 1 || s.row == width * s.column) &&
         (depth == 1 || depth_stride == height * width * s.column) &&
         (p.batch <= 1 || s.batch == depth * height * width * s.column);
}

LinearProblem linear_problem(const ConvProblem& p) {
  const auto rows = [](const ChannelStrides& s) { return RowStrides{s.column, s.member}; };
  LinearProblem linear;
  linear.num_members = p.num_members;
  linear.batch = conv_positions(p);
  linear.in_features = p.in_channels;
  linear.out_features = p.out_channels;
  linear.dtype = p.dtype;
  linear.allow_tf32 = p.allow_tf32;
  linear.epilogue = p.epilogue;
  linear.x = rows(p.x);
  linear.y = rows(p.y);
  if (p.epilogue.residual != Residual::none) linear.residual = rows(p.residual);
  linear.weight = {p.weight.out_channel, p.weight.member};
  linear.bias_member_stride = p.bias_member_stride;
  return linear;
}

/// The same elements as [rows, members, channels], or [members, channels].
template <class View>
View as_rows(const View& view, const Shape& shape, const Strides& strides) {
  return view.is_absent() ? view : View(view.data, view.dtype, shape, strides, view.device);
}

/// By the member's problem alone, so that its bits do not depend on N or on strides.
std::string_view kernel_for(const ConvProblem& problem) {
  return problem.dtype == Dtype::fp32 && !problem.allow_tf32 ? "simt" : "tensor_core";
}

}  // namespace

std::string conv_pointwise_unsupported_reason(const ConvProblem& p, const DeviceInfo& device) {
  if (!is_pointwise(p)) return "it is for kernels of one tap, of stride 1, unpadded, of one group";
  if (p.in_channels == 0) return "there is no channel to multiply";
  if (p.layout == ChannelLayout::channels_first || p.x_layout.has_value()) {
    return "it is a matrix product of rows of channels, here channels are first; direct takes both";
  }
  const bool has_line_of_residual =
      p.epilogue.residual == Residual::none || are_one_line(p.residual, p.depth.residual_stride, p);
  if (!are_one_line(p.x, p.depth.x_stride, p) || !are_one_line(p.y, p.depth.y_stride, p) ||
      !has_line_of_residual) {
    return "positions of x, y or the residual are not one line of equal steps; direct takes any";
  }
  const auto strategy = parse_linear_strategy(kernel_for(p), DeviceType::cuda);
  return linear_unsupported_reason(*strategy, complete_linear_problem(linear_problem(p)), device);
}

ConvRunner make_conv_pointwise(const Context& context, const ConvProblem& problem) {
  const LinearPlan plan = make_linear_plan(context, linear_problem(problem),
                                           {.strategy = std::string(kernel_for(problem))});
  return {[plan](const ConvArguments& a, const Execution& execution) {
            const LinearProblem& p = plan.problem();
            const auto rows = [&](const auto& view, const RowStrides& strides, int64_t channels) {
              return as_rows(view, {p.batch, p.num_members, channels},
                             Strides{strides.row, strides.member, 1});
            };
            plan.run({.x = rows(a.x, p.x, p.in_features),
                      .weight = as_rows(a.weight, {p.num_members, p.out_features, p.in_features},
                                        Strides{p.weight.member, p.weight.row, 1}),
                      .bias = as_rows(a.bias, {p.num_members, p.out_features},
                                      Strides{p.bias_member_stride, 1}),
                      .y = rows(a.y, p.y, p.out_features),
                      .residual = rows(a.residual, p.residual, p.out_features)},
                     execution);
          },
          plan.workspace_bytes(), "linear's " + std::string(plan.explain())};
}

}  // namespace wide
