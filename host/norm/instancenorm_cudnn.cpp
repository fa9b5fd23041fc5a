// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/norm/instancenorm_cudnn.hpp"

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/pointer.hpp"
#include "host/cudnn/cudnn_wide_plan.hpp"

namespace wide {

std::string instancenorm_cudnn_unsupported_reason(const GroupnormProblem& p) {
  if (p.layout == ChannelLayout::channels_last) return "channels are last";
  if (p.groups != p.channels) return "cuDNN has no norm over groups of several channels";
  if (p.has_gamma != p.has_beta) return "cuDNN's instancenorm wants gamma and beta, or neither";
  return joined_channels_reason(p, {p.gamma_member_stride, p.beta_member_stride});
}

std::string instancenorm_cudnn_unsupported_reason(const GroupnormArguments& a) {
  if (may_overlap(a.x, a.y)) return "y is x itself, which cuDNN's documentation does not allow";
  return cudnn_alignment_reason({{"x", a.x}, {"gamma", a.gamma}, {"beta", a.beta}, {"y", a.y}});
}

InstancenormCudnnGraph describe_instancenorm_cudnn(const GroupnormProblem& p) {
  InstancenormCudnnGraph g;
  const int64_t channels = p.num_members * p.channels;
  const CudnnType type = cudnn_type(p.dtype);
  const auto operand = [&](const ChannelStrides& s) {
    return g.graph.bind(type, {p.batch, channels, p.height, p.width},
                        {s.batch, s.channel, s.row, 1});
  };
  const auto parameter = [&](bool is_there) {
    return is_there ? g.graph.bind(type, {1, channels, 1, 1}, {channels, 1, 1, 1}) : kNoCudnnTensor;
  };
  CudnnInstancenorm& o = g.operation;
  o.x = operand(p.x);
  o.y = operand(p.y);
  o.scale = parameter(p.has_gamma);
  o.bias = parameter(p.has_beta);
  o.epsilon = g.graph.number(p.epsilon, 4);
  g.graph.append(o);
  return g;
}

CudnnBindings bind_instancenorm_cudnn(const InstancenormCudnnGraph& g,
                                      const GroupnormArguments& a) {
  const CudnnInstancenorm& o = g.operation;
  return {{o.x, a.x}, {o.y, a.y}, {o.scale, a.gamma}, {o.bias, a.beta}};
}

InstancenormCudnn::InstancenormCudnn(const CudnnDevice& device, const GroupnormProblem& problem,
                                     int place) {
  const std::string reason = instancenorm_cudnn_unsupported_reason(problem);
  if (!reason.empty()) throw_unsupported("groupnorm: cudnn: " + reason);
  graph_ = describe_instancenorm_cudnn(problem);
  // Nothing is multiplied and summed: an engine's note on tensor cores is irrelevant.
  plan_ = make_cudnn_plan("groupnorm", device, graph_.graph, {.allows_tensor_cores = true}, place);
}

std::string InstancenormCudnn::member_reason(const GroupnormProblem& p) {
  return member_alignment_reason(
      p.dtype, {p.x.member, p.y.member, p.gamma_member_stride, p.beta_member_stride});
}

GroupnormArguments InstancenormCudnn::member_of(const GroupnormProblem& p,
                                                const GroupnormArguments& a, int64_t n) {
  const int64_t bytes = dtype_bytes(p.dtype);
  GroupnormArguments own = member_operands(p, a, n);
  own.gamma.data = advanced(a.gamma.data, n * p.gamma_member_stride, bytes);
  own.beta.data = advanced(a.beta.data, n * p.beta_member_stride, bytes);
  return own;
}

void InstancenormCudnn::run(const GroupnormArguments& arguments, const Execution& execution) const {
  plan_->run(require_cudnn("groupnorm", execution, arguments.x.device),
             bind_instancenorm_cudnn(graph_, arguments),
             {execution.workspace.data, plan_->workspace_bytes()}, execution.stream);
}

}  // namespace wide
