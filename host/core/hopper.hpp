// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What kernels of compute capability 9.0 require of a device and of operands, for the strategies
// that run them: pure functions.
#pragma once

#include <string>

#include "wide/device.hpp"
#include "wide/strides.hpp"

namespace wide {

/// Whether this build has code for compute capability 9.0a. One without CUDA says yes: it chooses
/// for devices that it will not run on.
extern const bool kHasWgmmaCode;

/// Why the device has no warpgroup products, or the build no code for them; empty where both have.
std::string wgmma_device_reason(const DeviceInfo& device, bool has_code = kHasWgmmaCode);

/// Why no tensor map describes rows of this many features of an operand; empty where one does.
/// Strides must be whole vectors of 16 bytes where anything steps along them.
std::string tensor_map_reason(const char* what, const RowStrides& strides, int64_t rows,
                              int64_t members, int64_t features, int64_t vector);

}  // namespace wide
