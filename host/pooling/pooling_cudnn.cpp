// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// cuDNN calls it resampling. The padding after x is separate from that before it there, so that
// windows that skip positions, or end outside, get exactly the padding that they need.
#include "host/pooling/pooling_cudnn.hpp"

#include <algorithm>

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/cudnn/cudnn_wide_plan.hpp"

namespace wide {

namespace {

/// Windows along one axis, `size` positions and `outputs` windows; an adaptive pool's parts where
/// they are alike.
struct Windows {
  int64_t size, outputs, kernel, stride, padding;
  /// Positions after x that the last window takes.
  int64_t trailing_padding() const {
    return std::max<int64_t>(0, (outputs - 1) * stride + kernel - size - padding);
  }
};

Windows windows_along(const PoolingProblem& p, int64_t size, int64_t outputs,
                      const PoolingWindow& window) {
  if (p.mode != PoolingMode::adaptive_average) {
    return {size, outputs, window.kernel, window.stride, window.padding};
  }
  return {size, outputs, size / outputs, size / outputs, 0};
}

struct Axes {
  Windows rows, columns;
};
Axes axes_of(const PoolingProblem& p) {
  return {windows_along(p, p.height, p.out_height, p.rows),
          windows_along(p, p.width, p.out_width, p.columns)};
}

CudnnPooling::Of kind_of(const PoolingProblem& p) {
  using enum CudnnPooling::Of;
  if (p.mode == PoolingMode::max) return maximum;
  return p.mode == PoolingMode::average && p.counts_padding ? padded_mean : mean;
}

}  // namespace

std::string pooling_cudnn_unsupported_reason(const PoolingProblem& p) {
  if (p.mode == PoolingMode::adaptive_average) {
    const bool are_alike = p.height % p.out_height == 0 && p.width % p.out_width == 0;
    if (!are_alike) return "adaptive windows differ, and cuDNN's are all alike";
  } else if (p.rows.dilation != 1 || p.columns.dilation != 1) {
    return "cuDNN's windows have no dilation";
  }
  const Axes axes = axes_of(p);
  const auto ends_outside = [](const Windows& w) { return w.trailing_padding() > w.padding; };
  if (kind_of(p) == CudnnPooling::Of::padded_mean &&
      (ends_outside(axes.rows) || ends_outside(axes.columns))) {
    return "a last window ends past the padding, which cuDNN's means would count";
  }
  return joined_channels_reason(p);
}

std::string pooling_cudnn_unsupported_reason(const PoolingArguments& a) {
  return cudnn_alignment_reason({{"x", a.x}, {"y", a.y}});
}

PoolingCudnnGraph describe_pooling_cudnn(const PoolingProblem& p) {
  PoolingCudnnGraph g;
  const auto operand = [&](int64_t height, int64_t width, const ChannelStrides& s) {
    return g.graph.bind(cudnn_type(p.dtype), {p.batch, p.num_members * p.channels, height, width},
                        {s.batch, s.channel, s.row, s.column});
  };
  const auto [rows, columns] = axes_of(p);
  CudnnPooling& o = g.operation;
  o.of = kind_of(p);
  o.x = operand(p.height, p.width, p.x);
  o.y = operand(p.out_height, p.out_width, p.y);
  o.window = {rows.kernel, columns.kernel};
  o.stride = {rows.stride, columns.stride};
  o.padding_before = {rows.padding, columns.padding};
  o.padding_after = {rows.trailing_padding(), columns.trailing_padding()};
  g.graph.append(o);
  return g;
}

CudnnBindings bind_pooling_cudnn(const PoolingCudnnGraph& g, const PoolingArguments& a) {
  return {{g.operation.x, a.x}, {g.operation.y, a.y}};
}

PoolingCudnn::PoolingCudnn(const CudnnDevice& device, const PoolingProblem& problem, int place) {
  const std::string reason = pooling_cudnn_unsupported_reason(problem);
  if (!reason.empty()) throw_unsupported("pooling: cudnn: " + reason);
  graph_ = describe_pooling_cudnn(problem);
  // Nothing is multiplied and summed: an engine's note on tensor cores is irrelevant.
  plan_ = make_cudnn_plan("pooling", device, graph_.graph, {.allows_tensor_cores = true}, place);
}

std::string PoolingCudnn::member_reason(const PoolingProblem& p) {
  return member_alignment_reason(p.dtype, {p.x.member, p.y.member});
}

PoolingArguments PoolingCudnn::member_of(const PoolingProblem& p, const PoolingArguments& a,
                                         int64_t n) {
  return member_operands(p, a, n);
}

void PoolingCudnn::run(const PoolingArguments& arguments, const Execution& execution) const {
  plan_->run(require_cudnn("pooling", execution, arguments.x.device),
             bind_pooling_cudnn(graph_, arguments),
             {execution.workspace.data, plan_->workspace_bytes()}, execution.stream);
}

}  // namespace wide
