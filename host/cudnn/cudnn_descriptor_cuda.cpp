// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/cudnn/cudnn_descriptor_cuda.hpp"

#include <array>
#include <string_view>

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

void require(cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUCCESS) throw Refused(failure(status));
}

}  // namespace wide::cudnn
