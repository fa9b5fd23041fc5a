// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/conv/conv_cudnn.hpp"

#include <algorithm>

#include "host/conv/conv_problem.hpp"
#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/workspace.hpp"

namespace wide {

namespace {

/// [outer, channels, H, W], or with a depth in front of H for volumes; of shapes and of strides.
Dims with_positions(const ConvProblem& p, int64_t outer, int64_t channels, int64_t depth,
                    int64_t height, int64_t width) {
  return is_volume(p) ? Dims{outer, channels, depth, height, width}
                      : Dims{outer, channels, height, width};
}

Strides strides_of(const ConvProblem& p, const ChannelStrides& s, int64_t depth_stride) {
  return with_positions(p, s.batch, s.channel, depth_stride, s.row, s.column);
}

/// Of y.
Shape output_shape(const ConvProblem& p) {
  const PerAxis size = conv_output_size(p);
  return with_positions(p, p.batch, p.num_members * p.out_channels, conv_output_depth(p),
                        size.height, size.width);
}

/// Strides of sums as dense as y, in the order of the layout.
Strides dense_strides(const ConvProblem& p) {
  if (p.layout == ChannelLayout::channels_first) return contiguous_strides(output_shape(p));
  const PerAxis size = conv_output_size(p);
  const int64_t column = p.num_members * p.out_channels, row = size.width * column;
  const int64_t depth = size.height * row;
  return with_positions(p, conv_output_depth(p) * depth, 1, depth, row, column);
}

/// Whether positions of the operand lie in one row, of the same stride from one to the next.
bool has_joined_rows(const ConvProblem& p, const ChannelStrides& strides, int64_t depth_stride) {
  const PerAxis size = conv_output_size(p);
  const int64_t row = size.width * strides.column;
  return (size.height == 1 || strides.row == row) &&
         (conv_output_depth(p) == 1 || depth_stride == size.height * row);
}

/// An operand of the epilogue's call, which takes matrices: [B, N * Cout, positions].
CudnnTensorId bind_rows(CudnnGraph& graph, CudnnType type, const ConvProblem& p,
                        const Strides& strides) {
  return graph.bind(type, {p.batch, p.num_members * p.out_channels, conv_positions(p) / p.batch},
                    {strides[0], strides[1], strides.back()});
}

CudnnFunction function_of(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return CudnnFunction::relu;
    case Activation::gelu:
      return CudnnFunction::gelu;
    case Activation::gelu_tanh:
      return CudnnFunction::gelu_tanh;
    case Activation::silu:
      return CudnnFunction::silu;
    default:
      throw_unsupported("conv: cuDNN has no " + std::string(activation_name(activation)));
  }
}

/// The epilogue's steps on a tensor that is yet to be named, in the order in which cuDNN expects
/// them: a residual before the activation comes before the bias.
std::vector<CudnnPointwise> epilogue_of(const Epilogue& epilogue, CudnnTensorId bias,
                                        CudnnTensorId residual) {
  std::vector<CudnnPointwise> steps;
  const auto add = [&](CudnnTensorId operand) {
    steps.push_back({CudnnFunction::add, kNoCudnnTensor, operand});
  };
  if (epilogue.residual == Residual::before_activation) add(residual);
  if (epilogue.has_bias) add(bias);
  if (epilogue.activation != Activation::none) {
    steps.push_back({function_of(epilogue.activation), kNoCudnnTensor});
  }
  if (epilogue.residual == Residual::after_activation) add(residual);
  return steps;
}

/// Chains the steps after `from`, the last into y; fp32 between them.
void append_steps(CudnnGraph& graph, std::vector<CudnnPointwise> steps, CudnnTensorId from,
                  CudnnTensorId y, const Strides& between) {
  for (CudnnPointwise& step : steps) {
    step.a = from;
    step.y =
        &step == &steps.back() ? y : graph.inside(CudnnType::fp32, graph.tensor(y).shape, between);
    from = step.y;
    graph.append(step);
  }
}

CudnnConvolution convolution_of(const ConvProblem& p) {
  const auto axes = [&](int64_t depth, const PerAxis& plane) {
    return is_volume(p) ? std::vector<int64_t>{depth, plane.height, plane.width}
                        : std::vector<int64_t>{plane.height, plane.width};
  };
  CudnnConvolution c;
  c.padding = axes(p.depth.padding, p.padding);
  c.stride = axes(p.depth.stride, p.stride);
  c.dilation = axes(p.depth.dilation, p.dilation);
  return c;
}

/// x and weight, bound.
CudnnConvolution bind_convolution(ConvCudnnGraph& g, const ConvProblem& p) {
  const CudnnType type = cudnn_type(p.dtype);
  const int64_t per_group = p.in_channels / p.groups;
  g.x = g.graph.bind(type,
                     with_positions(p, p.batch, p.num_members * p.in_channels, p.depth.input,
                                    p.input.height, p.input.width),
                     strides_of(p, p.x, p.depth.x_stride));
  const ConvWeightStrides& w = p.weight;
  g.weight = g.graph.bind(
      type,
      with_positions(p, p.num_members * p.out_channels, per_group, p.depth.kernel, p.kernel.height,
                     p.kernel.width),
      with_positions(p, w.out_channel, w.in_channel, p.depth.weight_stride, w.row, w.column));
  CudnnConvolution c = convolution_of(p);
  c.x = g.x;
  c.weight = g.weight;
  return c;
}

}  // namespace

std::string conv_cudnn_unsupported_reason(const ConvProblem& p) {
  if (p.num_members == 1) return "";
  const auto is_joined = [](int64_t member, int64_t channels, int64_t channel) {
    return member == channels * channel;
  };
  const Epilogue& e = p.epilogue;
  if (!is_joined(p.x.member, p.in_channels, p.x.channel) ||
      !is_joined(p.y.member, p.out_channels, p.y.channel) ||
      (e.residual != Residual::none &&
       !is_joined(p.residual.member, p.out_channels, p.residual.channel))) {
    return "members do not lie side by side as channels";
  }
  if (!is_joined(p.weight.member, p.out_channels, p.weight.out_channel) ||
      (e.has_bias && p.bias_member_stride != p.out_channels)) {
    return "members' weights or biases do not lie one after another";
  }
  return "";
}

std::string conv_cudnn_member_unsupported_reason(const ConvProblem& p) {
  // For a single member, too: whether cuDNN computes a member does not depend on their number.
  for (const auto& [name, stride] : {std::pair{"x", p.x.member},
                                     {"weight", p.weight.member},
                                     {"bias", p.bias_member_stride},
                                     {"residual", p.residual.member},
                                     {"y", p.y.member}}) {
    const int64_t bytes = stride * dtype_bytes(p.dtype);
    if (bytes % kCudnnAlignment == 0) continue;
    return "members of " + std::string(name) + " lie " + std::to_string(bytes) +
           " bytes apart, expected a multiple of cuDNN's alignment = " +
           std::to_string(kCudnnAlignment);
  }
  return "";
}

std::string conv_cudnn_unsupported_reason(const ConvArguments& a) {
  return cudnn_alignment_reason(
      {{"x", a.x}, {"weight", a.weight}, {"bias", a.bias}, {"residual", a.residual}, {"y", a.y}});
}

ConvCudnnGraph describe_conv_cudnn(const ConvProblem& p) {
  ConvCudnnGraph g;
  CudnnConvolution convolution = bind_convolution(g, p);
  const CudnnType type = cudnn_type(p.dtype);
  const Shape shape = output_shape(p);
  g.y = g.graph.bind(type, shape, strides_of(p, p.y, p.depth.y_stride));
  if (p.epilogue.has_bias) {
    // In the order of the layout, although nothing steps along any axis but one.
    const bool is_last = p.layout == ChannelLayout::channels_last;
    const int64_t c = shape[1], one = is_last ? c : 1;
    g.bias = g.graph.bind(type, with_positions(p, 1, c, 1, 1, 1),
                          with_positions(p, c, 1, one, one, one));
  }
  if (p.epilogue.residual != Residual::none) {
    g.residual = g.graph.bind(type, shape, strides_of(p, p.residual, p.depth.residual_stride));
  }
  const auto steps = epilogue_of(p.epilogue, g.bias, g.residual);
  const Strides dense = dense_strides(p);
  convolution.y = steps.empty() ? g.y : g.graph.inside(CudnnType::fp32, shape, dense);
  g.graph.append(convolution);
  append_steps(g.graph, steps, convolution.y, g.y, dense);
  return g;
}

ConvCudnnGraph describe_conv_sums(const ConvProblem& p) {
  ConvCudnnGraph g;
  CudnnConvolution convolution = bind_convolution(g, p);
  convolution.y = g.sums = g.graph.bind(CudnnType::fp32, output_shape(p), dense_strides(p));
  g.graph.append(convolution);
  return g;
}

ConvCudnnGraph describe_conv_epilogue(const ConvProblem& p) {
  ConvCudnnGraph g;
  const CudnnType type = cudnn_type(p.dtype);
  const int64_t channels = p.num_members * p.out_channels;
  g.sums = bind_rows(g.graph, CudnnType::fp32, p, dense_strides(p));
  g.y = bind_rows(g.graph, type, p, strides_of(p, p.y, p.depth.y_stride));
  if (p.epilogue.has_bias) g.bias = g.graph.bind(type, {1, channels, 1}, {channels, 1, 1});
  if (p.epilogue.residual != Residual::none) {
    g.residual = bind_rows(g.graph, type, p, strides_of(p, p.residual, p.depth.residual_stride));
  }
  append_steps(g.graph, epilogue_of(p.epilogue, g.bias, g.residual), g.sums, g.y,
               contiguous_strides(g.graph.tensor(g.y).shape));
  return g;
}

CudnnBindings bind_conv_cudnn(const ConvCudnnGraph& g, const ConvArguments& a, void* sums) {
  return {{g.x, a.x}, {g.weight, a.weight}, {g.bias, a.bias}, {g.residual, a.residual},
          {g.y, a.y}, {g.sums, sums}};
}

ConvCudnn::ConvCudnn(const CudnnDevice& device, const ConvProblem& problem, int place) {
  const std::string reason = conv_cudnn_unsupported_reason(problem);
  if (!reason.empty()) throw_unsupported("conv: cudnn: " + reason);
  // fp32 is multiplied as such unless tf32 is allowed; 16 bits are exact in any engine.
  const CudnnNumerics numerics{.allows_tensor_cores =
                                   problem.dtype != Dtype::fp32 || problem.allow_tf32};
  const auto plan = [&](ConvCudnnGraph graph, const CudnnNumerics& allowed) {
    auto made = make_cudnn_plan("conv", device, graph.graph, allowed);
    calls_.push_back({std::move(graph), std::move(made)});
  };
  try {
    plan(describe_conv_cudnn(problem), numerics);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    const bool joins_rows =
        has_joined_rows(problem, problem.y, problem.depth.y_stride) &&
        (problem.epilogue.residual == Residual::none ||
         has_joined_rows(problem, problem.residual, problem.depth.residual_stride));
    if (problem.layout == ChannelLayout::channels_last || problem.epilogue.is_identity() ||
        !joins_rows) {
      throw;
    }
    plan(describe_conv_sums(problem), numerics);
    // Nothing is multiplied there: a note on tensor cores is irrelevant.
    plan(describe_conv_epilogue(problem), {.allows_tensor_cores = true});
    const int64_t bytes = checked_bytes(output_shape(problem), dtype_bytes(Dtype::fp32));
    sums_bytes_ = aligned_bytes(bytes);
  }
  if (place == 0) return;
  Call& convolution = calls_.front();
  convolution.plan = make_cudnn_plan("conv", device, convolution.graph.graph, numerics, place);
}

int64_t ConvCudnn::workspace_bytes() const {
  int64_t bytes = 0;
  for (const Call& call : calls_) bytes = std::max(bytes, call.plan->workspace_bytes());
  return sums_bytes_ + bytes;
}

std::string ConvCudnn::explain() const {
  std::string text = calls_.front().plan->explain();
  if (calls_.size() > 1) text += "; then, for the epilogue, " + calls_.back().plan->explain();
  return text;
}

void ConvCudnn::run(const ConvArguments& arguments, const Execution& execution) const {
  void* const cudnn = require_cudnn("conv", execution, arguments.x.device);
  auto* const sums = static_cast<std::byte*>(execution.workspace.data);
  for (const Call& call : calls_) {
    call.plan->run(cudnn, bind_conv_cudnn(call.graph, arguments, sums),
                   {sums + sums_bytes_, call.plan->workspace_bytes()}, execution.stream);
  }
}

}  // namespace wide
