// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// cuDNN's twin in builds that found none.
#include "host/core/check.hpp"
#include "host/core/cudnn_handle.hpp"
#include "host/cudnn/cudnn_plan.hpp"
#include "host/cudnn/cudnn_softmax.hpp"

namespace wide {

namespace {

constexpr const char* kReason = "this build of wide has no cuDNN (WIDE_CUDNN)";

}  // namespace

void* create_cudnn(int, std::string& reason) {
  reason = kReason;
  return nullptr;
}
void destroy_cudnn(int, void*) noexcept {}

std::string cudnn_unavailable_reason(const CudnnDevice&) {
  return kReason;
}

std::shared_ptr<const CudnnPlan> find_cudnn_engine(std::string_view primitive, const CudnnDevice&,
                                                   const CudnnGraph&, const CudnnNumerics&,
                                                   const CudnnPlan*) {
  throw_unsupported(std::string(primitive) + ": " + kReason);
}

std::unique_ptr<const CudnnSoftmax> make_cudnn_softmax(const CudnnDevice&, const CudnnRows&, bool) {
  throw_unsupported(std::string("softmax: ") + kReason);
}

}  // namespace wide
