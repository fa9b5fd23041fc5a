// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Contexts, streams and vendor handles: ownership around the runtime seam.
#include "host/core/context.hpp"

#include <utility>

#include "host/core/check.hpp"
#include "host/core/cpu_device.hpp"
#include "host/core/cudnn_handle.hpp"
#include "host/core/device_code.hpp"
#include "host/core/host_allocator.hpp"
#include "host/core/parallel.hpp"
#include "host/core/runtime.hpp"
#include "wide/error.hpp"
#include "wide/pinned.hpp"

namespace wide {

namespace {

constexpr const char* kMovedFrom = "moved from";  // short: a string of it allocates nothing

class CudaAllocator final : public Allocator {
 public:
  explicit CudaAllocator(int ordinal) : ordinal_(ordinal) {}
  void* allocate(int64_t bytes) override { return runtime::allocate(ordinal_, bytes); }
  void deallocate(void* data, int64_t) noexcept override { runtime::deallocate(ordinal_, data); }

 private:
  int ordinal_;
};

class PinnedAllocator final : public Allocator {
 public:
  explicit PinnedAllocator(int ordinal) : ordinal_(ordinal) {}
  void* allocate(int64_t bytes) override { return runtime::allocate_pinned(ordinal_, bytes); }
  void deallocate(void* data, int64_t) noexcept override {
    runtime::deallocate_pinned(ordinal_, data);
  }

 private:
  int ordinal_;
};

}  // namespace

std::shared_ptr<Allocator> pinned_allocator(const Context& context) {
  if (context.device().type == DeviceType::cpu) return nullptr;
  return std::make_shared<PinnedAllocator>(context.device().ordinal);
}

std::string to_string(const Device& device) {
  return device.type == DeviceType::cpu ? "cpu" : "cuda:" + std::to_string(device.ordinal);
}

CudaAvailability query_cuda() {
  return runtime::query_devices();
}

Context::Context(std::shared_ptr<const State> state) : state_(std::move(state)) {}

Context Context::cpu(CpuOptions options) {
  constexpr int kMaxThreads = 4096;  // more than any machine runs; as many can be started
  WIDE_REQUIRE(options.num_threads >= 0 && options.num_threads <= kMaxThreads,
               "context: num_threads is " + std::to_string(options.num_threads) +
                   ", expected 0 to " + std::to_string(kMaxThreads));
  const int num_threads = options.num_threads == 0 ? usable_cpu_threads() : options.num_threads;
  auto state = std::make_shared<State>();
  state->info = cpu_device_info(num_threads);
  state->allocator = options.allocator ? options.allocator : make_host_allocator();
  state->threads = OwnedThreadPool(new ThreadPool(num_threads));
  return Context(std::move(state));
}

Context Context::cuda(int ordinal, CudaOptions options) {
  const CudaAvailability available = query_cuda();
  if (available.num_devices == 0) throw Error(ErrorCode::cuda, "cuda: " + available.reason);
  if (ordinal < 0 || ordinal >= available.num_devices) {
    throw Error(ErrorCode::cuda, "cuda: device " + std::to_string(ordinal) + ", expected 0 to " +
                                     std::to_string(available.num_devices - 1));
  }
  auto state = std::make_shared<State>();
  state->info = runtime::device_info(ordinal);
  const std::string reason = device_code_reason(state->info);
  if (!reason.empty()) throw Error(ErrorCode::cuda, "cuda: " + reason);
  state->allocator =
      options.allocator ? options.allocator : std::make_shared<CudaAllocator>(ordinal);
  state->cudnn_plans = make_cudnn_plan_cache();
  state->cublaslt = std::make_unique<CublasLtHandle>(ordinal);
  return Context(std::move(state));
}

CublasLtHandle::~CublasLtHandle() {
  if (handle_ != nullptr) runtime::destroy_cublaslt(ordinal_, handle_);
}

void* CublasLtHandle::get(std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (handle_ == nullptr) handle_ = runtime::create_cublaslt(ordinal_, reason);
  return handle_;
}

const DeviceInfo& Context::info() const {
  return state_->info;
}
Allocator& Context::allocator() const {
  return *state_->allocator;
}

void Context::synchronize(Stream stream) const {
  if (device().type == DeviceType::cuda) runtime::synchronize(device().ordinal, stream);
}

void run_tasks(const Context& context, int64_t num_tasks, const TaskBody& body) {
  ThreadPool* threads = context.state().threads.get();
  if (threads != nullptr) return threads->run(num_tasks, body);
  for (int64_t task = 0; task < num_tasks; ++task) body.call(body.body, task);
}

OwnedStream::OwnedStream(const Context& context)
    : stream_(context.device().type == DeviceType::cuda
                  ? runtime::create_stream(context.device().ordinal)
                  : Stream::cpu()),
      device_(context.device()) {}

OwnedStream::~OwnedStream() {
  if (stream_.native() != nullptr) runtime::destroy_stream(device_.ordinal, stream_);
}

OwnedStream::OwnedStream(OwnedStream&& other) noexcept
    : stream_(std::exchange(other.stream_, Stream::cpu())), device_(other.device_) {}

/// Delegates, so that the destructor runs where the second library throws.
VendorHandles::VendorHandles(const Context& context) : VendorHandles() {
  device_ = context.device();
  if (context.device().type == DeviceType::cpu) {
    cublas_reason_ = "the CPU device has no cuBLAS";
    cudnn_reason_ = "the CPU device has no cuDNN";
    return;
  }
  cublas_ = runtime::create_cublas(device_->ordinal, cublas_reason_);
  cudnn_ = create_cudnn(device_->ordinal, cudnn_reason_);
}

VendorHandles VendorHandles::borrow(void* cublas, void* cudnn) {
  WIDE_REQUIRE(cublas != nullptr || cudnn != nullptr,
               "vendor handles: cublas and cudnn are null, expected a cublasHandle_t, a "
               "cudnnHandle_t or both");
  VendorHandles handles;
  handles.cublas_ = cublas;
  handles.cudnn_ = cudnn;
  if (cublas == nullptr) handles.cublas_reason_ = "none was lent";
  if (cudnn == nullptr) handles.cudnn_reason_ = "none was lent";
  return handles;
}

VendorHandles::~VendorHandles() {
  if (!device_) return;
  if (cublas_ != nullptr) runtime::destroy_cublas(device_->ordinal, cublas_);
  if (cudnn_ != nullptr) destroy_cudnn(device_->ordinal, cudnn_);
}

VendorHandles::VendorHandles(VendorHandles&& other) noexcept
    : cublas_(std::exchange(other.cublas_, nullptr)),
      cudnn_(std::exchange(other.cudnn_, nullptr)),
      device_(std::exchange(other.device_, std::nullopt)),
      cublas_reason_(std::exchange(other.cublas_reason_, kMovedFrom)),
      cudnn_reason_(std::exchange(other.cudnn_reason_, kMovedFrom)) {}

}  // namespace wide
