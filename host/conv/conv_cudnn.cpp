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

Strides strides_of(const ChannelStrides& s) {
  return {s.batch, s.channel, s.row, s.column};
}

/// [B, N * Cout, H, W] of y.
Shape output_shape(const ConvProblem& p) {
  const PerAxis size = conv_output_size(p);
  return {p.batch, p.num_members * p.out_channels, size.height, size.width};
}

/// Of sums as dense as y, in the order of the layout.
Strides dense_strides(const ConvProblem& p) {
  const Shape s = output_shape(p);
  if (p.layout == ChannelLayout::channels_first) return contiguous_strides(s);
  return {s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]};
}

/// Whether positions of the operand lie in one row, of the same stride from one to the next.
bool has_joined_rows(const ConvProblem& p, const ChannelStrides& strides) {
  const PerAxis size = conv_output_size(p);
  return size.height == 1 || strides.row == size.width * strides.column;
}

/// An operand of the epilogue's call, which takes matrices: [B, N * Cout, positions].
CudnnTensorId bind_rows(CudnnGraph& graph, CudnnType type, const ConvProblem& p,
                        const Strides& strides) {
  const Shape s = output_shape(p);
  return graph.bind(type, {s[0], s[1], s[2] * s[3]}, {strides[0], strides[1], strides[3]});
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

/// The epilogue's steps on a tensor that is still to be named, in the order in which cuDNN knows
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

/// Chains the steps behind `from`, the last into y; fp32 between them.
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
  const auto both = [](const PerAxis& size) {
    return std::vector<int64_t>{size.height, size.width};
  };
  CudnnConvolution c;
  c.padding = both(p.padding);
  c.stride = both(p.stride);
  c.dilation = both(p.dilation);
  return c;
}

/// x and weight, bound.
CudnnConvolution bind_convolution(ConvCudnnGraph& g, const ConvProblem& p) {
  const CudnnType type = cudnn_type(p.dtype);
  const int64_t per_group = p.in_channels / p.groups;
  g.x = g.graph.bind(type, {p.batch, p.num_members * p.in_channels, p.input.height, p.input.width},
                     strides_of(p.x));
  g.weight = g.graph.bind(
      type, {p.num_members * p.out_channels, per_group, p.kernel.height, p.kernel.width},
      {p.weight.out_channel, p.weight.in_channel, p.weight.row, p.weight.column});
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
    return "members' weights or biases do not lie one behind the other";
  }
  return "";
}

std::string conv_cudnn_member_unsupported_reason(const ConvProblem& p) {
  // Of a single member, too: whether cuDNN computes a member does not depend on how many there are.
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
  g.y = g.graph.bind(type, shape, strides_of(p.y));
  if (p.epilogue.has_bias) {
    // In the order of the layout, although nothing steps along three of its axes.
    const bool is_last = p.layout == ChannelLayout::channels_last;
    const int64_t c = shape[1], one = is_last ? c : 1;
    g.bias = g.graph.bind(type, {1, c, 1, 1}, {c, 1, one, one});
  }
  if (p.epilogue.residual != Residual::none) {
    g.residual = g.graph.bind(type, shape, strides_of(p.residual));
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
  g.y = bind_rows(g.graph, type, p, strides_of(p.y));
  if (p.epilogue.has_bias) g.bias = g.graph.bind(type, {1, channels, 1}, {channels, 1, 1});
  if (p.epilogue.residual != Residual::none) {
    g.residual = bind_rows(g.graph, type, p, strides_of(p.residual));
  }
  append_steps(g.graph, epilogue_of(p.epilogue, g.bias, g.residual), g.sums, g.y,
               contiguous_strides(g.graph.tensor(g.y).shape));
  return g;
}

CudnnBindings bind_conv_cudnn(const ConvCudnnGraph& g, const ConvArguments& a, void* sums) {
  const auto address = [](const ConstTensorView& view) { return const_cast<void*>(view.data); };
  return {{g.x, address(a.x)},       {g.weight, address(a.weight)},
          {g.bias, address(a.bias)}, {g.residual, address(a.residual)},
          {g.y, address(a.y)},       {g.sums, sums}};
}

ConvCudnn::ConvCudnn(const CudnnDevice& device, const ConvProblem& problem) {
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
        has_joined_rows(problem, problem.y) &&
        (problem.epilogue.residual == Residual::none || has_joined_rows(problem, problem.residual));
    if (problem.layout == ChannelLayout::channels_last || problem.epilogue.is_identity() ||
        !joins_rows) {
      throw;
    }
    plan(describe_conv_sums(problem), numerics);
    // Nothing is multiplied there: a note on tensor cores says nothing.
    plan(describe_conv_epilogue(problem), {.allows_tensor_cores = true});
    const int64_t bytes = checked_bytes(output_shape(problem), dtype_bytes(Dtype::fp32));
    sums_bytes_ = aligned_bytes(bytes);
  }
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
