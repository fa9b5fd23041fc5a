// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The one simulated device and everything that lives on it. Every entry point of the runtime passes
// through call(): one lock, the sticky error, the fault that a test asked for, the last error.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "verify/ptx/module.hpp"
#include "verify/simcuda/control.hpp"
#include "verify/simcuda/operations.hpp"
#include "verify/simt/global_memory.hpp"

namespace wide::simcuda {

/// One node of a captured graph; replayed as an operation.
struct GraphNode {
  Work work;
  std::vector<int> after;
  int stream_slot = 0;
  std::optional<cudaKernelNodeParams> kernel = {};  ///< where it is one; without its arguments
};

struct Capture {
  cudaGraph_t graph = nullptr;
  cudaStream_t origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread = std::this_thread::get_id();  ///< that began it
  bool is_invalid = false;
  std::set<cudaStream_t> streams;
  unsigned long long id = 0;
};

}  // namespace wide::simcuda

// CUDA's opaque handles.
struct CUstream_st {
  int slot = 0, priority = 0;
  unsigned flags = 0;
  bool is_blocking = true;  ///< ordered with the default stream
  wide::simcuda::OperationPointer last;
  std::vector<wide::simcuda::OperationPointer> waits;  ///< events that the next operation waits for
  std::shared_ptr<wide::simcuda::Capture> capture;
  std::vector<int> tail;  ///< nodes of the capture that the next one follows
};
struct CUevent_st {
  wide::simcuda::OperationPointer operation;
  bool has_timing = true;
  std::shared_ptr<wide::simcuda::Capture> capture;
  bool was_captured = false;  ///< recorded last in a capture: it stands for no work
  std::vector<int> tail;
};
struct CUgraph_st {
  std::vector<wide::simcuda::GraphNode> nodes;
};
struct CUgraphExec_st {
  std::vector<wide::simcuda::GraphNode> nodes;
  std::map<int, int> slots;              ///< by the captured stream's
  wide::simcuda::OperationPointer last;  ///< two launches of one graph never overlap
};

namespace wide::simcuda {

/// What nvcc registered: a fat binary, decoded when one of its kernels is wanted.
struct LoadedModule {
  const void* fat_binary = nullptr;
  std::unique_ptr<ptx::Module> module;
  std::string why_none;
};
struct KernelEntry {
  LoadedModule* module = nullptr;
  std::string name;
  std::optional<int> asked_shared_bytes;  ///< by cudaFuncSetAttribute, of dynamic memory
  bool has_run = false;
  std::unique_ptr<ptx::Kernel> mutant;  ///< in its place, where a mutation was asked for
};
/// Of the 48 KiB that a launch gets unasked, a kernel's own shared memory is a part.
inline int max_dynamic_shared_bytes(const KernelEntry& entry, const ptx::Kernel& kernel) {
  return entry.asked_shared_bytes.value_or(48 * 1024 -
                                           static_cast<int>(kernel.static_shared_bytes()));
}

struct VariableEntry {
  LoadedModule* module = nullptr;
  std::string name;
  size_t bytes = 0;
};

struct Faults {
  int64_t num_calls = 0, fail_at = 0;
  cudaError_t error = cudaErrorMemoryAllocation;
  bool is_sticky = false;
  std::string failed_call;
};

class Device {
 public:
  Device();

  std::recursive_mutex mutex;
  int architecture = 90;
  simt::GlobalMemory memory;
  simt::Findings findings;
  simt::Options options;
  Operations operations;
  Faults faults;
  cudaError_t sticky = cudaSuccess;
  std::vector<std::unique_ptr<LoadedModule>> modules;
  std::map<const void*, std::unique_ptr<KernelEntry>> kernels;  ///< by host stub
  std::map<const void*, VariableEntry> variables;               ///< by host shadow
  std::set<cudaStream_t> streams;
  std::set<cudaEvent_t> events;
  std::set<cudaGraph_t> graphs;
  std::set<cudaGraphExec_t> graph_execs;
  CUstream_st default_stream;
  std::vector<LaunchRecord> launches;
  int64_t num_allocations = 0;
  unsigned long long num_captures = 0;

  /// Misuse by host code: a finding, also told at once.
  void misuse(const std::string& text);
  /// What is not simulated: told once by name.
  cudaError_t unsupported(const std::string& what);
  /// The stream behind a handle; null where there is none.
  CUstream_st* stream(cudaStream_t handle);
  /// Enqueues on a stream, or adds to the graph that it captures.
  cudaError_t enqueue(cudaStream_t stream, Work work);
  /// What the next operation on a stream comes after; events it was told to wait for are used up.
  std::vector<OperationPointer> before(CUstream_st& stream);
  /// An error where a capture, by its mode and the calling thread's, forbids what may wait or not
  /// be ordered by a stream. That spoils the capture.
  cudaError_t forbid_while_capturing();
  /// The same for what is asked of one stream or event; in every mode where that itself is
  /// captured.
  cudaError_t forbid_while_capturing(const CUstream_st& stream);
  cudaError_t forbid_while_capturing(const CUevent_st& event);
  void wait_for(CUstream_st& stream);
  /// Waits for the whole device, of which a captured stream is a part: an error in every mode, and
  /// the end of all captures.
  cudaError_t synchronize();
  void reset();

 private:
  std::set<std::string> told_;
};

/// Made on first use, and never destroyed: streams may be destroyed by static objects.
Device& device();

/// The calling thread's last error.
cudaError_t& last_error();
/// Whether the calling thread has a context: every call that needs one gives it to it.
bool& has_context();
/// How the calling thread heeds captures (cudaThreadExchangeStreamCaptureMode).
cudaStreamCaptureMode& capture_mode();

/// Whether this call goes on; counts it, and makes it fail where a test asked for that. Calls that
/// release are not counted, so that what failed before can always be cleaned up.
cudaError_t begin_call(Device& d, const char* name, bool is_counted);

template <class Body>
cudaError_t call(const char* name, const Body& body, bool is_counted = true) {
  Device& d = device();
  const std::lock_guard lock(d.mutex);
  cudaError_t error = begin_call(d, name, is_counted);
  if (error == cudaSuccess) error = body(d);
  if (error != cudaSuccess) last_error() = error;
  return error;
}
template <class Body>
cudaError_t release(const char* name, const Body& body) {
  return call(name, body, false);
}

}  // namespace wide::simcuda
