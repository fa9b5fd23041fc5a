// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// In mode eval cuDNN's normalisation takes 1 / sqrt(variance + epsilon), which is not available:
// the formula goes to its fusion of element-wise operations instead, which takes operands as rows
// of a matrix, [B, N*C, H*W]. Mode train is an operation of cuDNN's own. With channels first its
// configurations that cuDNN 9.19 plans first for an H200 want a workspace of twice x, and hardly
// any with channels last: very likely they convert x and convert y back, so that their time is not
// the best that cuDNN can do. It takes the first one allowed, not the fastest of a search.
#include "host/norm/batchnorm_cudnn.hpp"

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/pointer.hpp"
#include "host/core/workspace.hpp"
#include "host/cudnn/cudnn_wide_plan.hpp"

namespace wide {

namespace {

using enum CudnnFunction;

bool is_train(const BatchnormProblem& p) {
  return p.mode == BatchnormMode::train;
}

bool has_gaps_between_rows(const BatchnormProblem& p, const ChannelStrides& strides) {
  return p.height > 1 && strides.row != p.width;
}

BatchnormCudnnGraph describe_eval(const BatchnormProblem& p) {
  BatchnormCudnnGraph g;
  CudnnGraph& graph = g.graph;
  const int64_t channels = p.num_members * p.channels, positions = p.height * p.width;
  const CudnnType type = cudnn_type(p.dtype);
  const Shape all{p.batch, channels, positions};
  const auto operand = [&](const ChannelStrides& s) {
    return graph.bind(type, all, {s.batch, s.channel, 1});
  };
  const auto parameter = [&](CudnnType of) {
    return graph.bind(of, {1, channels, 1}, {channels, 1, 1});
  };
  g.x = operand(p.x);
  g.y = operand(p.y);
  g.mean = parameter(CudnnType::fp32);
  g.variance = parameter(CudnnType::fp32);
  const CudnnTensorId epsilon = graph.number(p.epsilon, 3);
  const CudnnTensorId scale = graph.apply(rsqrt, graph.apply(add, g.variance, epsilon));
  const CudnnTensorId centred = graph.apply(subtract, g.x, g.mean);
  CudnnPointwise last{multiply, centred, scale};
  const auto then = [&](CudnnFunction function, CudnnTensorId by) {
    last.y = graph.inside(CudnnType::fp32, all);
    graph.append(last);
    last = {function, last.y, by};
  };
  if (p.has_gamma) then(multiply, g.gamma = parameter(type));
  if (p.has_beta) then(add, g.beta = parameter(type));
  last.y = g.y;
  graph.append(last);
  return g;
}

BatchnormCudnnGraph describe_train(const BatchnormProblem& p) {
  BatchnormCudnnGraph g;
  CudnnGraph& graph = g.graph;
  const int64_t channels = p.num_members * p.channels;
  const CudnnType type = cudnn_type(p.dtype);
  const auto operand = [&](const ChannelStrides& s) {
    return graph.bind(type, {p.batch, channels, p.height, p.width}, {s.batch, s.channel, s.row, 1});
  };
  const auto parameter = [&](CudnnType of) {
    return graph.bind(of, {1, channels, 1, 1}, {channels, 1, 1, 1});
  };
  const auto statistic = [&] { return parameter(CudnnType::fp32); };
  g.x = operand(p.x);
  g.y = operand(p.y);
  g.gamma = parameter(type);
  g.beta = parameter(type);
  g.mean = statistic();
  g.variance = statistic();
  g.next_mean = statistic();
  g.next_variance = statistic();
  g.saved_mean = statistic();
  g.saved_inv_std = statistic();
  graph.append(CudnnBatchnorm{g.x, g.gamma, g.beta, graph.number(p.epsilon, 4),
                              graph.number(p.momentum, 4), g.mean, g.variance, g.next_mean,
                              g.next_variance, g.saved_mean, g.saved_inv_std, g.y});
  return g;
}

}  // namespace

std::string batchnorm_cudnn_unsupported_reason(const BatchnormProblem& p) {
  const std::string reason =
      joined_channels_reason(p, {p.gamma_member_stride, p.beta_member_stride, p.mean_member_stride,
                                 p.variance_member_stride});
  if (!reason.empty()) return reason;
  if (is_train(p)) {
    return p.has_gamma && p.has_beta ? "" : "mode train of cuDNN's wants gamma and beta";
  }
  return has_gaps_between_rows(p, p.x) || has_gaps_between_rows(p, p.y)
             ? "there are gaps between rows of positions"
             : "";
}

std::string batchnorm_cudnn_unsupported_reason(const BatchnormArguments& a) {
  if (!a.epsilon.is_absent() || !a.momentum.is_absent()) {
    return "members have an epsilon or momentum of their own, and cuDNN has one for all channels";
  }
  if (may_overlap(a.x, a.y)) return "y is x itself, which cuDNN's documentation does not allow";
  return cudnn_alignment_reason({{"x", a.x},
                                 {"gamma", a.gamma},
                                 {"beta", a.beta},
                                 {"running_mean", a.running_mean},
                                 {"running_variance", a.running_variance},
                                 {"y", a.y}});
}

BatchnormCudnnGraph describe_batchnorm_cudnn(const BatchnormProblem& p) {
  return is_train(p) ? describe_train(p) : describe_eval(p);
}

int64_t batchnorm_saved_bytes(const BatchnormProblem& p) {
  if (!is_train(p)) return 0;
  const int64_t bytes = p.num_members * p.channels * dtype_bytes(Dtype::fp32);
  return aligned_bytes(bytes);
}

CudnnBindings bind_batchnorm_cudnn(const BatchnormCudnnGraph& g, const BatchnormProblem& problem,
                                   const BatchnormArguments& a, void* saved) {
  void* const second = static_cast<std::byte*>(saved) + batchnorm_saved_bytes(problem);
  return {{g.x, a.x},
          {g.y, a.y},
          {g.gamma, a.gamma},
          {g.beta, a.beta},
          {g.mean, a.running_mean},
          {g.variance, a.running_variance},
          {g.next_mean, a.running_mean},
          {g.next_variance, a.running_variance},
          {g.saved_mean, saved},
          {g.saved_inv_std, second}};
}

BatchnormCudnn::BatchnormCudnn(const CudnnDevice& device, const BatchnormProblem& problem,
                               int place)
    : problem_(problem), saved_bytes_(2 * batchnorm_saved_bytes(problem)) {
  const std::string reason = batchnorm_cudnn_unsupported_reason(problem);
  if (!reason.empty()) throw_unsupported("batchnorm: cudnn: " + reason);
  graph_ = describe_batchnorm_cudnn(problem);
  // Nothing is multiplied and summed: an engine's note on tensor cores is irrelevant.
  plan_ = make_cudnn_plan("batchnorm", device, graph_.graph, {.allows_tensor_cores = true}, place);
}

std::string BatchnormCudnn::member_reason(const BatchnormProblem& p) {
  return member_alignment_reason(
      p.dtype, {p.x.member, p.y.member, p.gamma_member_stride, p.beta_member_stride},
      {p.mean_member_stride, p.variance_member_stride});
}

BatchnormArguments BatchnormCudnn::member_of(const BatchnormProblem& p, const BatchnormArguments& a,
                                             int64_t n) {
  const int64_t bytes = dtype_bytes(p.dtype), statistic = dtype_bytes(Dtype::fp32);
  BatchnormArguments own = member_operands(p, a, n);
  own.gamma.data = advanced(a.gamma.data, n * p.gamma_member_stride, bytes);
  own.beta.data = advanced(a.beta.data, n * p.beta_member_stride, bytes);
  own.running_mean.data = advanced(a.running_mean.data, n * p.mean_member_stride, statistic);
  own.running_variance.data =
      advanced(a.running_variance.data, n * p.variance_member_stride, statistic);
  return own;
}

void BatchnormCudnn::run(const BatchnormArguments& arguments, const Execution& execution) const {
  auto* const saved = static_cast<std::byte*>(execution.workspace.data);
  plan_->run(require_cudnn("batchnorm", execution, arguments.x.device),
             bind_batchnorm_cudnn(graph_, problem_, arguments, saved),
             {saved + saved_bytes_, plan_->workspace_bytes()}, execution.stream);
}

}  // namespace wide
