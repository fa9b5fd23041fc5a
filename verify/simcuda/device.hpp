// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The one simulated device and everything that lives on it. Every entry point of the runtime passes
// through call(): one lock, the sticky error, the fault that a test asked for, the last error.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "verify/ptx/module.hpp"
#include "verify/simcuda/control.hpp"
#include "verify/simcuda/operations.hpp"
#include "verify/simcuda/streams.hpp"
#include "verify/simt/global_memory.hpp"

namespace wide::simcuda {

/// What nvcc registered: a fat binary, decoded when one of its kernels is wanted.
struct LoadedModule {
  const void* fat_binary = nullptr;
  std::unique_ptr<ptx::Module> module;
  bool has_variables = false;
  std::string why_none;
};
struct KernelEntry {
  LoadedModule* module = nullptr;
  std::string name;
  int max_dynamic_shared_bytes = -1;  ///< cudaFuncSetAttribute; -1: not said
  bool has_run = false;
  std::unique_ptr<ptx::Kernel> mutant;  ///< in its place, where a mutation was asked for
};
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
  std::vector<OperationPointer> orphans;  ///< the last ones of blocking streams that are gone
  std::set<uint64_t> freed_later;         ///< by a cudaFreeAsync that was not carried out yet
  std::vector<LaunchRecord> launches;
  int64_t num_launches_not_kept = 0;
  int64_t num_allocations = 0;
  unsigned long long num_captures = 0;

  /// Misuse by host code: a finding, also told at once.
  cudaError_t misuse(cudaError_t error, const std::string& text);
  /// What is not simulated: told once by name.
  cudaError_t unsupported(const std::string& what);
  /// The stream behind a handle; null where there is none.
  CUstream_st* stream(cudaStream_t handle);
  /// "device#3(4096)+16", for messages.
  std::string describe(const void* pointer) const;
  /// Enqueues on a stream, or adds to the graph that it captures.
  cudaError_t enqueue(cudaStream_t stream, Work work, cudaGraphNodeType type,
                      bool is_programmatic = false);
  /// What the next operation on a stream comes after.
  std::vector<OperationPointer> before(const CUstream_st& stream);
  void wait_for(CUstream_st& stream);
  void reset();

 private:
  std::set<std::string> told_;
  /// Of modules that were loaded anew: what was found names lines in their text.
  std::vector<std::unique_ptr<ptx::Module>> retired_;
};

/// Made on first use, and never destroyed: streams may be destroyed by static objects.
Device& device();

/// The calling thread's last error.
cudaError_t& last_error();

/// Whether the calling thread is inside a function of cudaLaunchHostFunc, which may not call the
/// runtime.
bool& is_host_function();

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
