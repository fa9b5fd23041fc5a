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
  /// `bytes` > 0; the result is aligned to 256 bytes. None: null, or Error{out_of_memory}.
  virtual void* allocate(int64_t bytes) = 0;
  /// The memory may be handed out again at once: whoever destroys what it belongs to (a Tensor, the
  /// last copy of a Model or of a ragged plan) has seen to it that no queued work still uses it.
  virtual void deallocate(void* data, int64_t bytes) noexcept = 0;
};

/// A view of a stream: a cudaStream_t on CUDA (`Stream(cuda_stream)`), meaningless on the CPU,
/// where work is finished when a call returns. No default stream is taken by accident: integers do
/// not convert, and CUDA plans refuse the null stream. Name it as cudaStreamLegacy or
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
/// A context belongs to one owner thread at a time; plans made from it are shared freely.
///
/// Beside a capture of another stream, of whatever mode and thread, tensors, streams, models and
/// replays may be made, changed, waited for and destroyed: these calls do not mind captures, and
/// leave them whole. Plans and vendors' handles are made and destroyed while nothing is captured,
/// as vendors' libraries allocate; an Allocator sees to its own calls. On the stream that is
/// captured comes only what says that it may be.
class Context {
 public:
  struct CpuOptions {
    /// 0: as many as the process may run on: by its main thread's affinity mask and by cpu.max of
    /// its control group. The caller's is one of them; the others look for the next call for 50 us
    /// before they sleep, where there are processors for all. They round, and flush denormal
    /// numbers, as the caller does. They work for one caller at a time: what another thread runs
    /// meanwhile it runs alone. Threads that serve at the same time have a context each.
    int num_threads = 0;
    std::shared_ptr<Allocator> allocator;  ///< null: aligned operator new
  };
  struct CudaOptions {
    std::shared_ptr<Allocator> allocator;  ///< null: cudaMalloc
  };

  /// Starts the threads, which end with the last copy and the last tensor: keep one. A process may
  /// fork while nothing runs: its child has none of the threads, and runs in the one that calls. A
  /// child that is to be quick makes a context of its own.
  static Context cpu() { return cpu(CpuOptions{}); }
  static Context cpu(CpuOptions options);
  /// Throws Error{cuda} with the reason where device `ordinal` cannot be used. Calls make the
  /// device the thread's current one while they last. Going back to the thread's own, CUDA sets
  /// that up if it was not, with memory on it: a process for GPU 1 alone calls
  /// cudaSetDevice(1) in its threads, or sees no other (CUDA_VISIBLE_DEVICES).
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

/// A stream of one's own, for programs that have none. Destroyed without waiting.
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
  /// gave cuBLAS is forgotten, since cuBLAS cannot be asked which it was.
  static VendorHandles borrow(void* cublas, void* cudnn = nullptr);
  ~VendorHandles();
  VendorHandles(VendorHandles&& other) noexcept;
  VendorHandles& operator=(VendorHandles&&) = delete;
  VendorHandles(const VendorHandles&) = delete;

  /// What they were created for: plans of another device refuse them. Lent ones do not say.
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

/// The caller's scratch memory on the context's device, 256-byte aligned.
struct Workspace {
  void* data = nullptr;
  int64_t bytes = 0;
};

/// What one call of a plan needs besides its operands. Belongs to one thread.
struct Execution {
  Stream stream;  ///< never Stream::cpu() for a CUDA plan: invalid_argument
  Workspace workspace{};
  const VendorHandles* handles =
      nullptr;  ///< may be null where the strategy uses no vendor library
};

}  // namespace wide
