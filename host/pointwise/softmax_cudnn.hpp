// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// softmax as one call of cuDNN's over the rows of all members: packed, these are [rows * N, D].
#pragma once

#include <memory>
#include <string>

#include "host/cudnn/cudnn_softmax.hpp"
#include "wide/softmax.hpp"

namespace wide {

/// Why cuDNN cannot express the problem; empty where it can.
std::string softmax_cudnn_unsupported_reason(const SoftmaxProblem& problem);
/// Why its call, which is planned without operands, cannot run on these; empty where it can.
std::string softmax_cudnn_unsupported_reason(const SoftmaxArguments& arguments);

/// The rows of a problem without an unsupported reason.
CudnnRows describe_softmax_cudnn(const SoftmaxProblem& problem);

class SoftmaxCudnn {
 public:
  /// Throws unsupported with the reason where cuDNN cannot run the problem, or is missing.
  SoftmaxCudnn(const CudnnDevice& device, const SoftmaxProblem& problem);

  /// Why it cannot run the problem's members one by one: never.
  static std::string member_reason(const SoftmaxProblem&) { return ""; }
  /// Member n's operands, by address alone.
  static SoftmaxArguments member_of(const SoftmaxProblem& problem,
                                    const SoftmaxArguments& arguments, int64_t n);

  int64_t workspace_bytes() const { return 0; }
  std::string explain() const { return "cudnnSoftmaxForward"; }
  /// For operands without an unsupported reason.
  void run(const SoftmaxArguments& arguments, const Execution& execution) const;

 private:
  std::unique_ptr<const CudnnSoftmax> softmax_;
};

}  // namespace wide
