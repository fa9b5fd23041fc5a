// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The strategies that call cuDNN: all members as groups of one convolution, with channels first
// (grouped) or last (channels_last), and one call per member (sequential).
//
// cuDNN's plans want addresses at multiples of 16 bytes, which a plan does not know: where operands
// have others, the direct kernel stands in.
#include "host/conv/conv_cudnn.hpp"
#include "host/conv/conv_problem.hpp"
#include "host/conv/conv_run.hpp"
#include "host/core/check.hpp"
#include "host/core/pointer.hpp"

namespace wide {

namespace {

/// What runs where cuDNN does not take the operands.
ConvRunner make_stand_in(const Context& context, const ConvProblem& problem,
                         ConvRunner (*make)(const Context&, const ConvProblem&)) {
  const std::string reason = conv_direct_unsupported_reason(problem, context.info());
  if (reason.empty()) return make(context, problem);
  return {[reason](const ConvArguments&, const Execution&) {
    throw_unsupported(
        "conv: cuDNN wants operands that begin at multiples of 16 bytes, and the direct kernel "
        "cannot stand in: " +
        reason);
  }};
}

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

std::string reason_for(const ConvProblem& problem, ConvLayout layout) {
  if (problem.layout != layout) {
    return "it takes " + std::string(conv_layout_name(layout)) + ", the problem has " +
           std::string(conv_layout_name(problem.layout));
  }
  return conv_cudnn_unsupported_reason(problem);
}

}  // namespace

std::string conv_grouped_unsupported_reason(const ConvProblem& problem, const DeviceInfo&) {
  return reason_for(problem, ConvLayout::channels_first);
}

std::string conv_channels_last_unsupported_reason(const ConvProblem& problem, const DeviceInfo&) {
  return reason_for(problem, ConvLayout::channels_last);
}

ConvRunner make_conv_grouped(const Context& context, const ConvProblem& problem) {
  const auto all = std::make_shared<const ConvCudnn>(cudnn_device(context), problem);
  const ConvRunner stand_in = make_stand_in(context, problem, make_conv_direct);
  return {[all, stand_in](const ConvArguments& arguments, const Execution& execution) {
            if (!all->takes(arguments)) return stand_in.run(arguments, execution);
            all->run(arguments, execution);
          },
          all->workspace_bytes(), all->explain()};
}

ConvRunner make_conv_sequential(const Context& context, const ConvProblem& problem) {
  ConvProblem own = problem;
  own.num_members = 1;
  std::shared_ptr<const ConvCudnn> one;
  try {
    one = std::make_shared<const ConvCudnn>(cudnn_device(context), own);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    ConvRunner direct = make_conv_cuda_sequential(context, problem);
    direct.note = "the direct kernel, since " + std::string(error.what());
    return direct;
  }
  const ConvRunner stand_in = make_stand_in(context, problem, make_conv_cuda_sequential);
  return {[one, stand_in, problem](const ConvArguments& arguments, const Execution& execution) {
            // Every member or none, so that all are multiplied alike.
            for (int64_t n = 0; n < problem.num_members; ++n) {
              if (!one->takes(member_of(problem, arguments, n))) {
                return stand_in.run(arguments, execution);
              }
            }
            for (int64_t n = 0; n < problem.num_members; ++n) {
              one->run(member_of(problem, arguments, n), execution);
            }
          },
          one->workspace_bytes(), one->explain()};
}

}  // namespace wide
