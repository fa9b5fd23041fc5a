// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// batchnorm as one call of cuDNN's over the channels of all members: packed, these are [B, N*C]
// like any other channels.
#pragma once

#include "host/cudnn/cudnn_plan.hpp"
#include "wide/batchnorm.hpp"

namespace wide {

/// Why cuDNN cannot express the problem; empty where it can.
std::string batchnorm_cudnn_unsupported_reason(const BatchnormProblem& problem);
/// Why a plan of cuDNN's, which is made without operands, cannot run on these; empty where it can.
std::string batchnorm_cudnn_unsupported_reason(const BatchnormArguments& arguments);

/// The problem in cuDNN's terms. Ids are of tensors in memory, or kNoCudnnTensor.
struct BatchnormCudnnGraph {
  CudnnGraph graph;
  CudnnTensorId x = kNoCudnnTensor, y = kNoCudnnTensor;
  CudnnTensorId gamma = kNoCudnnTensor, beta = kNoCudnnTensor;
  CudnnTensorId mean = kNoCudnnTensor, variance = kNoCudnnTensor;
  CudnnTensorId next_mean = kNoCudnnTensor, next_variance = kNoCudnnTensor;
  /// Written in mode train but never read: fp32 [N*C] each, contiguous.
  CudnnTensorId saved_mean = kNoCudnnTensor, saved_inv_std = kNoCudnnTensor;
};
BatchnormCudnnGraph describe_batchnorm_cudnn(const BatchnormProblem& problem);

/// Bytes of each of the two, up to the next 256.
int64_t batchnorm_saved_bytes(const BatchnormProblem& problem);

/// Addresses for all of the graph's tensors in memory; `saved` for the two that are never read.
CudnnBindings bind_batchnorm_cudnn(const BatchnormCudnnGraph& graph,
                                   const BatchnormProblem& problem,
                                   const BatchnormArguments& arguments, void* saved);

/// The graph with its plan.
class BatchnormCudnn {
 public:
  /// By the configuration at `place`, as make_cudnn_plan() has it. Throws unsupported with the
  /// reason where cuDNN cannot run the problem, or is missing.
  BatchnormCudnn(const CudnnDevice& device, const BatchnormProblem& problem, int place = 0);

  /// Why it cannot run the problem's members one by one; empty where it may.
  static std::string member_reason(const BatchnormProblem& problem);
  /// Member n's operands, by address alone.
  static BatchnormArguments member_of(const BatchnormProblem& problem,
                                      const BatchnormArguments& arguments, int64_t n);

  int64_t workspace_bytes() const { return saved_bytes_ + plan_->workspace_bytes(); }
  const std::string& explain() const { return plan_->explain(); }
  /// For operands without an unsupported reason.
  void run(const BatchnormArguments& arguments, const Execution& execution) const;

 private:
  BatchnormProblem problem_;
  BatchnormCudnnGraph graph_;
  int64_t saved_bytes_ = 0;
  std::shared_ptr<const CudnnPlan> plan_;
};

}  // namespace wide
