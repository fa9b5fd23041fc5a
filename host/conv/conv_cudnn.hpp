// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// conv in cuDNN's terms: members are groups, so that all of them are one convolution of N * groups
// groups on the packed operands. One member alone is the same with N = 1.
//
// With channels last cuDNN fuses any epilogue; with channels first only residual, bias and relu, in
// that order. Others follow in a second call, on sums of fp32 in the workspace.
#pragma once

#include <vector>

#include "host/cudnn/cudnn_plan.hpp"
#include "wide/conv.hpp"

namespace wide {

/// Why cuDNN cannot express all members at once; empty where it can.
std::string conv_cudnn_unsupported_reason(const ConvProblem& problem);

/// Why members cannot be called one after another: their distance puts some of them at addresses
/// that cuDNN does not take. Empty where they can.
std::string conv_cudnn_member_unsupported_reason(const ConvProblem& problem);
/// Why a plan of cuDNN's, which is made without operands, cannot run on these; empty where it can.
std::string conv_cudnn_unsupported_reason(const ConvArguments& arguments);

/// A call of cuDNN's. Ids are of tensors in memory, or kNoCudnnTensor.
struct ConvCudnnGraph {
  CudnnGraph graph;
  CudnnTensorId x = kNoCudnnTensor, weight = kNoCudnnTensor, bias = kNoCudnnTensor;
  CudnnTensorId residual = kNoCudnnTensor, y = kNoCudnnTensor;
  CudnnTensorId sums = kNoCudnnTensor;  ///< fp32, packed as y: passed from one call to the next
};
/// All of it in one call.
ConvCudnnGraph describe_conv_cudnn(const ConvProblem& problem);
/// The products alone, into sums; and from sums, the epilogue.
ConvCudnnGraph describe_conv_sums(const ConvProblem& problem);
ConvCudnnGraph describe_conv_epilogue(const ConvProblem& problem);

/// Addresses for all of the graph's tensors in memory.
CudnnBindings bind_conv_cudnn(const ConvCudnnGraph& graph, const ConvArguments& arguments,
                              void* sums);

/// The one or two calls with their plans. Immutable.
class ConvCudnn {
 public:
  /// The convolution by the configuration at `place`, as make_cudnn_plan() has it; whether the
  /// epilogue is in its call does not depend on that. Throws unsupported with the reason where
  /// cuDNN cannot run the problem, or is missing.
  ConvCudnn(const CudnnDevice& device, const ConvProblem& problem, int place = 0);

  int64_t workspace_bytes() const;
  std::string explain() const;
  /// For operands without an unsupported reason.
  void run(const ConvArguments& arguments, const Execution& execution) const;

 private:
  struct Call {
    ConvCudnnGraph graph;
    std::shared_ptr<const CudnnPlan> plan;
  };
  std::vector<Call> calls_;
  int64_t sums_bytes_ = 0;
};

}  // namespace wide
