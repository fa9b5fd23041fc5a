// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The device that plans are made for and memory comes from, and what one execution needs: a
// stream, a workspace and, for the vendors' strategies, their handles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "wide/device.hpp"

namespace wide {

/// Where a Context takes tensor memory from. An engine passes its own to keep one memory budget.
class Allocator {
 public:
  virtual ~Allocator() = default;
  /// `bytes` > 0; the result is aligned to 256 bytes. Failure: null or Error{out_of_memory}.
  virtual void* allocate(int64_t bytes) = 0;
  /// The memory may be reused at once: before destroying its owner (a Tensor, the last copy of a
  /// Model or of a ragged plan), callers make sure that no queued work still uses it.
  virtual void deallocate(void* data, int64_t bytes) noexcept = 0;
};

/// A view of a stream: a cudaStream_t on CUDA (`Stream(cuda_stream)`), meaningless on the CPU,
/// where work is finished when a call returns. The default stream is never taken by accident:
/// integers do not convert, and CUDA plans refuse the null stream. Pass cudaStreamLegacy or
/// cudaStreamPerThread.
class Stream {
 public:
  static Stream cpu() { return Stream(); }
  explicit Stream(void* cuda_stream) : handle_(cuda_stream) {}
  Stream(int) = delete;
  Stream(std::nullptr_t) = delete;
  /// The cudaStream_t; null on the CPU.
  void* native() const { return handle_; }

 private:
  Stream() = default;
  void* handle_ = nullptr;
};

/// One device with its properties, its allocator and (CPU) its threads. Copies share them.
/// On the CPU a call takes up to 128 KiB of its caller's stack: 512 KiB are safe for a thread.
/// A context belongs to one owner thread at a time; plans made from it are shared freely.
///
/// While another stream is captured, in any mode and by any thread, tensors, streams, models and
/// replays may be made, changed, waited for and destroyed: these calls work, and leave the capture
/// valid. Contexts and vendors' handles are made and destroyed while nothing is captured: vendors'
/// libraries wait for the device before they give a handle back, which ends every capture. So are
/// plans, as these libraries allocate; an Allocator is responsible for its own calls. On the
/// captured stream only calls documented as "may be captured" are allowed.
class Context {
 public:
  struct CpuOptions {
    /// 0: as many as the main thread's affinity mask and cpu.max of the control group allow the
    /// process. The caller's is one of them; the others poll for the next call for 50 us before
    /// they sleep, where there are processors for all. They round, and flush denormal numbers, as
    /// the caller does. They work for one caller at a time: another thread that calls meanwhile
    /// runs its call alone. Give threads that serve concurrently a context each.
    int num_threads = 0;
    std::shared_ptr<Allocator> allocator{};  ///< null: operator new, in huge pages if it can be
  };
  struct CudaOptions {
    std::shared_ptr<Allocator> allocator{};  ///< null: cudaMalloc
  };

  /// Starts the threads, which end with the last copy and the last tensor: keep one. A process may
  /// fork while nothing runs: its child has none of the threads, and runs in the calling one. To be
  /// fast, the child makes a context of its own.
  static Context cpu() { return cpu(CpuOptions{}); }
  static Context cpu(CpuOptions options);
  /// Throws Error{cuda} with the reason where device `ordinal` cannot be used, as where this build
  /// has no code for its compute capability, which is 8.0 at least. Calls make the device current
  /// while they last. Restoring the thread's own device makes CUDA initialise that one if it was
  /// not, which takes memory there: a process for GPU 1 alone calls cudaSetDevice(1) in its
  /// threads, or hides the others (CUDA_VISIBLE_DEVICES).
  static Context cuda(int ordinal) { return cuda(ordinal, CudaOptions{}); }
  static Context cuda(int ordinal, CudaOptions options);

  const DeviceInfo& info() const;
  Device device() const { return info().device; }
  Allocator& allocator() const;

  /// Waits for the work put on `stream`; throws what that work failed with. Never called by plans.
  void synchronize(Stream stream) const;

  struct State;
  const State& state() const { return *state_; }
  const std::shared_ptr<const State>& shared_state() const { return state_; }

 private:
  explicit Context(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

/// An owned stream, for programs that have none. Destroyed without waiting.
class OwnedStream {
 public:
  explicit OwnedStream(const Context& context);
  ~OwnedStream();
  OwnedStream(OwnedStream&& other) noexcept;
  OwnedStream& operator=(OwnedStream&&) = delete;
  OwnedStream(const OwnedStream&) = delete;
  Stream get() const { return stream_; }

 private:
  Stream stream_;
  Device device_;
};

/// cuBLAS and cuDNN handles for one thread at a time.
class VendorHandles {
 public:
  /// Creates what the build and the machine have. A library that cannot start (no driver, say)
  /// leaves its handle null and says why.
  explicit VendorHandles(const Context& context);
  /// Uses the engine's cublasHandle_t and cudnnHandle_t; they stay the engine's. One may be null.
  /// Calls leave their streams and cuBLAS's modes as they found them; a workspace that the engine
  /// set in cuBLAS is lost, since cuBLAS has no call that returns it.
  static VendorHandles borrow(void* cublas, void* cudnn = nullptr);
  ~VendorHandles();
  VendorHandles(VendorHandles&& other) noexcept;
  VendorHandles& operator=(VendorHandles&&) = delete;
  VendorHandles(const VendorHandles&) = delete;

  /// What they were created for: plans of another device refuse them. Unknown if borrowed.
  const std::optional<Device>& device() const { return device_; }
  void* cublas() const { return cublas_; }  ///< cublasHandle_t or null
  /// Why cublas() is null; empty where it is not.
  const std::string& cublas_unavailable_reason() const { return cublas_reason_; }
  void* cudnn() const { return cudnn_; }  ///< cudnnHandle_t or null
  const std::string& cudnn_unavailable_reason() const { return cudnn_reason_; }

 private:
  VendorHandles() = default;
  void* cublas_ = nullptr;
  void* cudnn_ = nullptr;
  std::optional<Device> device_;  ///< of owned handles
  std::string cublas_reason_, cudnn_reason_;
};

inline constexpr int64_t kWorkspaceAlignment = 256;

/// The caller's scratch memory on the context's device, 256-byte aligned; where a plan needs 0
/// bytes it is not looked at.
struct Workspace {
  void* data = nullptr;
  int64_t bytes = 0;
};

/// What one call of a plan needs besides its operands. Belongs to one thread.
struct Execution {
  Stream stream;  ///< never null, as Stream::cpu() is, for a CUDA plan: invalid_argument
  Workspace workspace{};
  const VendorHandles* handles = nullptr;  ///< may be null where the strategy calls no vendor's
};

}  // namespace wide
