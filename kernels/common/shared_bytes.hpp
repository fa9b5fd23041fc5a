// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace wide::kernels {

/// Shared memory that a block may have on every device that kernels run on, from compute capability
/// 8.0 on: 8.6, 8.9 and 12.x have no more. Source: CUDA C++ Programming Guide, "Technical
/// Specifications per Compute Capability".
inline constexpr int64_t kLeastSharedBytes = 99 * 1024;

}  // namespace wide::kernels
