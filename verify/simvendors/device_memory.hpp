// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The simulated GPU's memory and streams as a vendor's library sees them: what is enqueued is done
// in its stream's order, and every run of elements that it touches is checked like a kernel's.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>

#include "verify/support/strided_memory.hpp"

namespace wide::simvendors {

/// Whether the simulated CUDA runtime is in front of this process.
bool is_simulated();

/// Whether the calling thread has a context. A library that loads or starts kernels by the driver's
/// functions fails without.
bool has_context();

/// Memory that a library's handle keeps, as long as it lives: nothing else makes or frees memory.
/// Null where the runtime refuses, as beside a stream that is captured. Given back behind a wait
/// for the device, as documented of cublasDestroy(): no capture in any mode survives that.
using KeptMemory = std::unique_ptr<void, void (*)(void*)>;
KeptMemory keep_memory();

/// What a handle's first call loads, and its later ones find. False where the runtime refuses that.
class LoadedKernels {
 public:
  bool load() {
    if (memory_ == nullptr) memory_ = keep_memory();
    return memory_ != nullptr;
  }

 private:
  KeptMemory memory_{nullptr, [](void*) {}};
};

/// Does `work` when the stream comes to it, as often as a graph that captures it is launched. Where
/// it touches what it may not, the device is broken, as by a kernel.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

/// Inside such work. `what` names the access in findings.
test::Access device_access(const char* what);
/// Inside such work: the library has left anything in its workspace, all of which nobody may read.
void leave_anything(void* workspace, int64_t bytes);
/// Likewise: breaks the device.
[[noreturn]] void refuse_access(const char* what);

}  // namespace wide::simvendors
