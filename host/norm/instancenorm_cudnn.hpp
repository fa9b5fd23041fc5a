// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Groupnorm by cuDNN where each channel is a group: instancenorm, an operation of cuDNN's own, over
// the channels of all members.
#pragma once

#include "host/cudnn/cudnn_plan.hpp"
#include "wide/groupnorm.hpp"

namespace wide {

/// Why cuDNN cannot express the problem; empty where it can.
std::string instancenorm_cudnn_unsupported_reason(const GroupnormProblem& problem);
/// Why a plan of cuDNN's, which is made without operands, cannot run on these; empty where it can.
std::string instancenorm_cudnn_unsupported_reason(const GroupnormArguments& arguments);

/// The problem in cuDNN's terms. Ids are of tensors in memory, or kNoCudnnTensor.
struct InstancenormCudnnGraph {
  CudnnGraph graph;
  CudnnInstancenorm operation;
};
InstancenormCudnnGraph describe_instancenorm_cudnn(const GroupnormProblem& problem);
/// Addresses for all of the graph's tensors in memory.
CudnnBindings bind_instancenorm_cudnn(const InstancenormCudnnGraph& graph,
                                      const GroupnormArguments& arguments);

/// The graph with its plan.
class InstancenormCudnn {
 public:
  /// By the configuration at `place`, as make_cudnn_plan() has it. Throws unsupported with the
  /// reason where cuDNN cannot run the problem, or is missing.
  InstancenormCudnn(const CudnnDevice& device, const GroupnormProblem& problem, int place = 0);

  /// Why it cannot run the problem's members one by one; empty where it may.
  static std::string member_reason(const GroupnormProblem& problem);
  /// Member n's operands, by address alone.
  static GroupnormArguments member_of(const GroupnormProblem& problem,
                                      const GroupnormArguments& arguments, int64_t n);

  int64_t workspace_bytes() const { return plan_->workspace_bytes(); }
  const std::string& explain() const { return plan_->explain(); }
  /// For operands without an unsupported reason.
  void run(const GroupnormArguments& arguments, const Execution& execution) const;

 private:
  InstancenormCudnnGraph graph_;
  std::shared_ptr<const CudnnPlan> plan_;
};

}  // namespace wide
