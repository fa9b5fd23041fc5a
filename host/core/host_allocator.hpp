// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU's memory, unless an engine brings its own.
#pragma once

#include <memory>

#include "wide/context.hpp"

namespace wide {

/// Memory of operator new, aligned to kWorkspaceAlignment. From kHugePageBytes on it begins at a
/// multiple of them, and Linux is asked (madvise) for huge pages where whole ones fit: of pages of
/// 4 KiB, weights need more entries than a processor's translation buffers have. Throws
/// Error{out_of_memory} with the bytes asked for.
std::shared_ptr<Allocator> make_host_allocator();

inline constexpr int64_t kHugePageBytes = int64_t{1} << 21;  // of x86-64, and of AArch64 with 4 KiB

}  // namespace wide
