// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What contexts and VendorHandles hold of cuDNN (host/cudnn): a build without it has no handles and
// says so.
#pragma once

#include <memory>
#include <string>

namespace wide {

/// Of host/cudnn/cudnn_plan_cache.hpp.
class CudnnPlanCache;
std::shared_ptr<CudnnPlanCache> make_cudnn_plan_cache();

/// A cudnnHandle_t for the device, or null and the reason.
void* create_cudnn(int ordinal, std::string& reason);
void destroy_cudnn(int ordinal, void* handle) noexcept;

}  // namespace wide
