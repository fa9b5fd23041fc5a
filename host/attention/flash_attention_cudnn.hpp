// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// flash_attention as one call of cuDNN's. Members side by side in a row act as more heads; members
// one after another act as more batch rows.
#pragma once

#include "host/cudnn/cudnn_plan.hpp"
#include "wide/flash_attention.hpp"

namespace wide {

/// Why cuDNN cannot express the (completed, not empty) problem; empty where it can.
std::string flash_attention_cudnn_unsupported_reason(const FlashAttentionProblem& problem);
/// Why a plan of cuDNN's, which is made without operands, cannot run on these; empty where it can.
std::string flash_attention_cudnn_unsupported_reason(const FlashAttentionArguments& arguments);

/// Why cuDNN cannot express each member's problem alone; empty where it can.
std::string flash_attention_cudnn_member_reason(const FlashAttentionProblem& problem);

struct FlashAttentionCudnnGraph {
  CudnnGraph graph;
  CudnnTensorId q = kNoCudnnTensor, k = kNoCudnnTensor, v = kNoCudnnTensor, y = kNoCudnnTensor;
};
FlashAttentionCudnnGraph describe_flash_attention_cudnn(const FlashAttentionProblem& problem);

CudnnBindings bind_flash_attention_cudnn(const FlashAttentionCudnnGraph& graph,
                                         const FlashAttentionArguments& arguments);

/// The graph with its plan: all members in one call, or one call per member. Immutable.
class FlashAttentionCudnn {
 public:
  enum class Calls : uint8_t { one, one_per_member };
  /// By the configuration at `place`, as make_cudnn_plan() has it. Throws unsupported with the
  /// reason where cuDNN cannot run the problem, or is missing.
  FlashAttentionCudnn(const CudnnDevice& device, const FlashAttentionProblem& problem, Calls calls,
                      int place = 0);

  int64_t workspace_bytes() const { return plan_->workspace_bytes(); }
  const std::string& explain() const { return plan_->explain(); }
  /// For operands without an unsupported reason.
  void run(const FlashAttentionArguments& arguments, const Execution& execution) const;

 private:
  FlashAttentionProblem problem_;
  Calls calls_;
  FlashAttentionCudnnGraph graph_;
  std::shared_ptr<const CudnnPlan> plan_;
};

}  // namespace wide
