// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The strategies that call cuDNN: all members as groups of one convolution, with channels first
// (grouped) or last (channels_last), and one call per member (sequential). Policies of the first
// two are configurations of cuDNN's; which is fastest, only measuring shows.
//
// cuDNN's plans require addresses at multiples of 16 bytes, unknown to a plan: asked for by name,
// the first two refuse others. `sequential` does not name cuDNN, and uses the direct kernel.
#include "host/conv/conv_cudnn.hpp"
#include "host/conv/conv_problem.hpp"
#include "host/conv/conv_run.hpp"
#include "host/conv/conv_strategy.hpp"
#include "host/core/heuristic_policy.hpp"
#include "host/core/pointer.hpp"

namespace wide {

namespace {

ConvArguments member_of(const ConvProblem& p, const ConvArguments& a, int64_t n) {
  const int64_t bytes = dtype_bytes(p.dtype);
  ConvArguments own = a;
  own.x.data = advanced(a.x.data, n * p.x.member, bytes);
  own.weight.data = advanced(a.weight.data, n * p.weight.member, bytes);
  own.bias.data = advanced(a.bias.data, n * p.bias_member_stride, bytes);
  own.residual.data = advanced(a.residual.data, n * p.residual.member, bytes);
  own.y.data = advanced(a.y.data, n * p.y.member, bytes);
  return own;
}

std::string reason_for(const ConvProblem& problem, ChannelLayout layout) {
  if (problem.layout != layout) {
    return "it takes " + std::string(conv_layout_name(layout)) + ", the problem has " +
           std::string(conv_layout_name(problem.layout));
  }
  if (problem.x_layout.has_value()) {
    return "it takes one layout, x has " + std::string(conv_layout_name(*problem.x_layout));
  }
  return conv_cudnn_unsupported_reason(problem);
}

}  // namespace

std::string conv_grouped_unsupported_reason(const ConvProblem& problem, const DeviceInfo&) {
  return reason_for(problem, ChannelLayout::channels_first);
}

std::string conv_channels_last_unsupported_reason(const ConvProblem& problem, const DeviceInfo&) {
  return reason_for(problem, ChannelLayout::channels_last);
}

ConvRunner make_conv_grouped(const Context& context, const ConvProblem& problem, int place) {
  const auto all = std::make_shared<const ConvCudnn>(cudnn_device(context), problem, place);
  return {
      .run = [all](const ConvArguments& arguments,
                   const Execution& execution) { all->run(arguments, execution); },
      .workspace_bytes = all->workspace_bytes(),
      .note = all->explain(),
      .unsupported_reason =
          [](const ConvArguments& arguments) { return conv_cudnn_unsupported_reason(arguments); },
      .calls_cudnn = true,
      .policy = heuristic_policy(place)};
}

ConvRunner make_conv_sequential(const Context& context, const ConvProblem& problem) {
  std::shared_ptr<const ConvCudnn> one;
  std::string refusal = conv_cudnn_member_unsupported_reason(problem);
  if (refusal.empty()) {
    ConvProblem own = problem;
    own.num_members = 1;
    refusal =
        cudnn_refusal([&] { one = std::make_shared<const ConvCudnn>(cudnn_device(context), own); });
  }
  ConvRunner direct = make_conv_cuda_sequential(context, problem);
  if (one == nullptr) {
    direct.note = "by our " + conv_direct_text(problem, context.info()) + ": " + refusal;
    return direct;
  }
  return {.run =
              [one, direct, problem](const ConvArguments& arguments, const Execution& execution) {
                // Every member or none, so that all are multiplied alike.
                if (!conv_cudnn_unsupported_reason(arguments).empty()) {
                  return direct.run(arguments, execution);
                }
                for (int64_t n = 0; n < problem.num_members; ++n) {
                  one->run(member_of(problem, arguments, n), execution);
                }
              },
          .workspace_bytes = one->workspace_bytes(),
          .note = one->explain() + "; where operands are not aligned to 16 bytes by our " +
                  conv_direct_text(problem, context.info()),
          .calls_cudnn = true};
}

}  // namespace wide
