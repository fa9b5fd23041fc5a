// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// For libraries that stand in for the vendors' (simvendors/): work of theirs on a stream, in its
// place among all other work, whose accesses to memory are checked like a kernel's.
#include "verify/simcuda/device.hpp"

namespace wide::simcuda {

namespace {

const Operation* current = nullptr;  ///< whose work is being done; under the device's lock

}  // namespace

}  // namespace wide::simcuda

using wide::simcuda::Device;
using wide::simcuda::device;
using wide::simcuda::Operation;

extern "C" {

/// Whether the calling thread has a context, for what a library does by the driver's functions.
int wide_simcuda_has_context() {
  return wide::simcuda::has_context() ? 1 : 0;
}

/// Frees what a library's handle kept, behind a cudaDeviceSynchronize(). The program's last error
/// stays: the library has a runtime of its own.
void wide_simcuda_give_back(void* memory) {
  const cudaError_t before = wide::simcuda::last_error();
  (void)wide::simcuda::release("a library's wait", [](Device& d) { return d.synchronize(); });
  (void)cudaFree(memory);
  wide::simcuda::last_error() = before;
}

/// Puts work(data) on the stream; drop(data) follows its last run, of which a graph may have many.
/// Work that returns other than cudaSuccess breaks the device, as a kernel that traps does.
cudaError_t wide_simcuda_enqueue(cudaStream_t stream, cudaError_t (*work)(void*),
                                 void (*drop)(void*), void* data) {
  const std::shared_ptr<void> owned(data, drop);
  return wide::simcuda::call("a library's work", [&](Device& d) {
    return d.enqueue(stream, [owned, work](const Operation& operation) {
      wide::simcuda::current = &operation;
      const cudaError_t error = work(owned.get());
      wide::simcuda::current = nullptr;
      return error;
    });
  });
}

/// Inside such work: where `bytes` of device memory lie for the host, checked and marked as read
/// (`how` 0), written (1) or left with what nobody may read (2); null where they are not wholly
/// inside one live buffer.
void* wide_simcuda_access(const void* address, int64_t bytes, int how, const char* what) {
  using Access = wide::simt::GlobalMemory::HostAccess;
  Device& d = device();
  const Operation& operation = *wide::simcuda::current;
  const auto is_ordered = [&](uint32_t earlier) {
    return d.operations.is_ordered(earlier, operation);
  };
  const auto at = reinterpret_cast<uint64_t>(address);
  const bool is_right = d.memory.host_access(at, bytes, static_cast<Access>(how), what,
                                             operation.id, is_ordered, d.findings);
  return is_right ? d.memory.data(at) : nullptr;
}

}  // extern "C"
