// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Page-locked memory of the host, which copies to and from a CUDA device need to run by themselves:
//
//   const Context host = Context::cpu({.num_threads = 1, .allocator = pinned_allocator(cuda)});
//   Tensor y(host, Dtype::fp32, shape);
//   copy(y_on_device, y, stream);  // returns at once; a copy to other memory of the host waits
#pragma once

#include <memory>

#include "wide/context.hpp"

namespace wide {

/// For a context on the CPU whose tensors are copied to and from the device of `context`; for one
/// on the CPU it is null, which means the usual memory. To allocate and to free may wait for the
/// device, and neither is part of a capture. Allocations throw out_of_memory where the system locks
/// no more.
std::shared_ptr<Allocator> pinned_allocator(const Context& context);

}  // namespace wide
