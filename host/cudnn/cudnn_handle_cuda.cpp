// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include <cudnn_graph.h>

#include "host/core/beside_captures.hpp"
#include "host/core/cudnn_handle.hpp"
#include "host/core/current_device.hpp"
#include "wide/error.hpp"

namespace wide {

void* create_cudnn(int ordinal, std::string& reason) {
  const CurrentDevice current(ordinal);
  const BesideCaptures beside;  // it allocates
  cudnnHandle_t handle = nullptr;
  const cudnnStatus_t status = cudnnCreate(&handle);
  if (status == CUDNN_STATUS_SUCCESS) return handle;
  (void)cudaGetLastError();
  reason = std::string("cudnnCreate: ") + cudnnGetErrorString(status);
  return nullptr;
}

void destroy_cudnn(int ordinal, void* handle) noexcept {
  try {
    const CurrentDevice current(ordinal);
    (void)cudnnDestroy(static_cast<cudnnHandle_t>(handle));
  } catch (const Error&) {  // the runtime is gone already, and the handle with it
  }
}

}  // namespace wide
