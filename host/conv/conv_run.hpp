// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How the strategies of conv are started. Each has a function that makes a runner for a plan and,
// where it cannot run everything, one that says why not; conv_strategy.cpp lists them. Those of
// *_cuda.cpp files throw unsupported in a build without CUDA.
#pragma once

#include <functional>
#include <string>

#include "wide/conv.hpp"

namespace wide {

/// A strategy with all that it built for one problem. Immutable: several threads may run it at a
/// time, each with its own Execution.
struct ConvRunner {
  /// Arguments were checked against the problem; y is not empty.
  std::function<void(const ConvArguments& arguments, const Execution& execution)> run;
  int64_t workspace_bytes = 0;
  std::string note{};  ///< added to the plan's explanation; may be empty
  /// Why run() does not take the operands; empty where it does. Null: it takes any.
  std::function<std::string(const ConvArguments& arguments)> unsupported_reason{};
  bool calls_cudnn = false;
  std::string policy{};  ///< empty: there is one way to run
};

// On the CPU: member after member, or the tiles of all members at once.
ConvRunner make_conv_cpu_sequential(const Context& context, const ConvProblem& problem);
ConvRunner make_conv_cpu_wide(const Context& context, const ConvProblem& problem);

// kernels/conv/conv_direct.cu: for all members in one launch, or in one each.
std::string conv_direct_unsupported_reason(const ConvProblem& problem, const DeviceInfo& device);
ConvRunner make_conv_direct(const Context& context, const ConvProblem& problem);
ConvRunner make_conv_cuda_sequential(const Context& context, const ConvProblem& problem);

// cuDNN's: all members as groups of one convolution, with channels first or last, by the
// configuration of cuDNN's at `place`; or member after member, by the direct kernel where cuDNN
// does not take the problem.
std::string conv_grouped_unsupported_reason(const ConvProblem& problem, const DeviceInfo& device);
std::string conv_channels_last_unsupported_reason(const ConvProblem& problem,
                                                  const DeviceInfo& device);
ConvRunner make_conv_grouped(const Context& context, const ConvProblem& problem, int place);
ConvRunner make_conv_sequential(const Context& context, const ConvProblem& problem);

// Convolutions of one tap by linear's kernels, on CUDA.
std::string conv_pointwise_unsupported_reason(const ConvProblem& problem, const DeviceInfo& device);
ConvRunner make_conv_pointwise(const Context& context, const ConvProblem& problem);

// A matrix product on tensor cores, by kernels/conv/conv_implicit_gemm.cu.
ConvRunner make_conv_implicit_gemm(const Context& context, const ConvProblem& problem);

// The same on Hopper's, by kernels/conv/conv_wgmma.cu; implicit_gemm's kernel stands in where an
// address is not a multiple of 16 bytes.
ConvRunner make_conv_wgmma(const Context& context, const ConvProblem& problem);

}  // namespace wide
