// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/pointwise/softmax_cudnn.hpp"

#include <limits>

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/cudnn/cudnn_wide_plan.hpp"

namespace wide {

namespace {

/// From row to row of all members, where it is the same between all of them.
int64_t row_stride(const SoftmaxProblem& p, const RowStrides& strides) {
  if (p.num_members == 1) return p.rows > 1 ? strides.row : p.features;
  return strides.member;
}

bool are_joined(const SoftmaxProblem& p, const RowStrides& strides) {
  return p.num_members == 1 || p.rows == 1 || strides.row == p.num_members * strides.member;
}

}  // namespace

std::string softmax_cudnn_unsupported_reason(const SoftmaxProblem& p) {
  if (!are_joined(p, p.x) || !are_joined(p, p.y)) {
    return "the rows of all members do not lie at one distance";
  }
  // "cuDNN Backend API", cudnnSetTensor4dDescriptorEx: up to 2 Giga-elements, padding included.
  constexpr int64_t kMaxElements = std::numeric_limits<int32_t>::max();
  const int64_t rows = p.rows * p.num_members;
  for (const RowStrides& strides : {p.x, p.y}) {
    const int64_t stride = row_stride(p, strides);
    if (stride < p.features) return "rows overlap, and cuDNN's do not";
    if (rows > kMaxElements / stride) return "cuDNN takes up to 2^31 - 1 elements";
  }
  return "";
}

std::string softmax_cudnn_unsupported_reason(const SoftmaxArguments& a) {
  return may_overlap(a.x, a.y) ? "y is x itself, which cuDNN's documentation does not allow" : "";
}

CudnnRows describe_softmax_cudnn(const SoftmaxProblem& p) {
  const auto narrow = [](int64_t value) { return static_cast<int32_t>(value); };
  return {cudnn_type(p.dtype), narrow(p.rows * p.num_members), narrow(p.features),
          narrow(row_stride(p, p.x)), narrow(row_stride(p, p.y))};
}

SoftmaxCudnn::SoftmaxCudnn(const CudnnDevice& device, const SoftmaxProblem& problem) {
  const std::string reason = softmax_cudnn_unsupported_reason(problem);
  if (!reason.empty()) throw_unsupported("softmax: cudnn: " + reason);
  softmax_ = make_cudnn_softmax(device, describe_softmax_cudnn(problem), problem.is_log);
}

SoftmaxArguments SoftmaxCudnn::member_of(const SoftmaxProblem& p, const SoftmaxArguments& a,
                                         int64_t n) {
  return member_operands(p, a, n);
}

void SoftmaxCudnn::run(const SoftmaxArguments& arguments, const Execution& execution) const {
  softmax_->run(require_cudnn("softmax", execution, arguments.x.device), arguments.x.data,
                arguments.y.data, execution.stream);
}

}  // namespace wide
