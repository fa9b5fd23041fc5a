// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// pooling as one call of cuDNN's over the channels of all members: packed, these are [B, N*C, H, W]
// as any other channels, in either layout.
#pragma once

#include "host/cudnn/cudnn_plan.hpp"
#include "wide/pooling.hpp"

namespace wide {

/// Why cuDNN cannot express the problem; empty where it can.
std::string pooling_cudnn_unsupported_reason(const PoolingProblem& problem);
/// Why a plan of cuDNN's, which is made without operands, cannot run on these; empty where it can.
std::string pooling_cudnn_unsupported_reason(const PoolingArguments& arguments);

/// The problem in cuDNN's terms.
struct PoolingCudnnGraph {
  CudnnGraph graph;
  CudnnPooling operation;
};
PoolingCudnnGraph describe_pooling_cudnn(const PoolingProblem& problem);

/// Addresses for the graph's tensors.
CudnnBindings bind_pooling_cudnn(const PoolingCudnnGraph& graph, const PoolingArguments& arguments);

/// The graph with its plan.
class PoolingCudnn {
 public:
  /// By the configuration at `place`, as make_cudnn_plan() has it. Throws unsupported with the
  /// reason where cuDNN cannot run the problem, or is missing.
  PoolingCudnn(const CudnnDevice& device, const PoolingProblem& problem, int place = 0);

  /// Why it cannot run the problem's members one by one; empty where it may.
  static std::string member_reason(const PoolingProblem& problem);
  /// Member n's operands, by address alone.
  static PoolingArguments member_of(const PoolingProblem& problem,
                                    const PoolingArguments& arguments, int64_t n);

  int64_t workspace_bytes() const { return plan_->workspace_bytes(); }
  const std::string& explain() const { return plan_->explain(); }
  /// For operands without an unsupported reason.
  void run(const PoolingArguments& arguments, const Execution& execution) const;

 private:
  PoolingCudnnGraph graph_;
  std::shared_ptr<const CudnnPlan> plan_;
};

}  // namespace wide
