// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/cudnn/cudnn_descriptor_cuda.hpp"

#include <cuda_runtime_api.h>

#include <array>
#include <string_view>

#include "wide/error.hpp"

namespace wide::cudnn {

// The library adds a page: how the innermost of its checks failed, then all that called it, then
// the same of the next engine. The first says why.
std::string failure(cudnnStatus_t status) {
  std::array<char, 4096> text{};
  cudnnGetLastErrorString(text.data(), text.size());
  std::string added = text.data();
  constexpr std::string_view kReason = "Reason: ";
  if (const size_t first = added.find(kReason); first != std::string::npos) {
    added.erase(0, first + kReason.size());
  }
  added.erase(std::min(added.find('\n'), added.size()));
  const std::string name = cudnnGetErrorString(status);
  return added.empty() ? name : name + ": " + added;
}

// What the problem or the library's version is to blame for has a category of its own.
void require(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  const auto category = CUDNN_STATUS_CATEGORY(status);
  const bool is_failure =
      category == CUDNN_STATUS_INTERNAL_ERROR || category == CUDNN_STATUS_EXECUTION_FAILED;
  if (!is_failure) throw Refused(failure(status));
  throw Failed(failure(status), status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                                    status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
}

void throw_error(const std::string& whose, const Refused& refused) {
  (void)cudaGetLastError();  // what cuDNN left must not be the next launch's
  const auto* const failed = dynamic_cast<const Failed*>(&refused);
  const bool lacks_memory = failed != nullptr && failed->lacks_memory;
  throw Error(lacks_memory ? ErrorCode::out_of_memory : ErrorCode::cudnn, whose + refused.what());
}

}  // namespace wide::cudnn
