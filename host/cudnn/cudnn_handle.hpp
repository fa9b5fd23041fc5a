// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// cuDNN's handles, for VendorHandles: a build without cuDNN has none and says so.
#pragma once

#include <string>

namespace wide {

/// A cudnnHandle_t for the device, or null and the reason.
void* create_cudnn(int ordinal, std::string& reason);
void destroy_cudnn(int ordinal, void* handle) noexcept;

}  // namespace wide
