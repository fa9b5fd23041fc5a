// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CUDA runtime behind the seam. libcuda is never linked: everything goes through the runtime,
// which loads the driver itself and says so where there is none.
#include "host/core/runtime.hpp"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "host/core/beside_captures.hpp"
#include "host/core/cuda_check.hpp"
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "wide/error.hpp"

namespace wide::runtime {

namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// Why cudaGetDeviceCount failed, in words that say what to do.
std::string unavailable_reason(cudaError_t status) {
  int driver = 0, runtime = 0;
  (void)cudaDriverGetVersion(&driver);
  (void)cudaRuntimeGetVersion(&runtime);
  switch (status) {
    case cudaErrorInsufficientDriver:
      if (driver == 0) return "no NVIDIA driver is installed";
      return "the NVIDIA driver supports CUDA " + version_text(driver) +
             ", this build needs CUDA " + version_text(runtime);
    case cudaErrorStubLibrary:
      return "libcuda.so is the toolkit's stub, not a driver: take its folder out of the library "
             "path";
    case cudaErrorNoDevice:
      return "the NVIDIA driver finds no device (CUDA_VISIBLE_DEVICES, or none built in)";
    default:
      return std::string(cudaGetErrorName(status)) + ": " + cudaGetErrorString(status);
  }
}

int attribute(cudaDeviceAttr name, int ordinal) {
  int value = 0;
  WIDE_CHECK_CUDA(cudaDeviceGetAttribute(&value, name, ordinal));
  return value;
}

cudaMemcpyKind copy_kind(Direction direction) {
  return direction == Direction::host_to_device   ? cudaMemcpyHostToDevice
         : direction == Direction::device_to_host ? cudaMemcpyDeviceToHost
                                                  : cudaMemcpyDeviceToDevice;
}

void require_room(cudaError_t status, int ordinal, int64_t bytes, const char* what) {
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    throw Error(ErrorCode::out_of_memory, "cuda:" + std::to_string(ordinal) + ": no room for " +
                                              std::to_string(bytes) + " bytes" + what);
  }
  WIDE_CHECK_CUDA(status);
}

/// Whether one call may take a block's rows: steps are pitches to CUDA, which are limited
/// (cudaDevAttrMaxPitch, the same on all devices). A memory holds few rows that are further apart.
bool steps_are_pitches(const RowBlock& block) {
  constexpr int64_t kMaxPitch = INT32_MAX;
  return block.source_step <= kMaxPitch && block.destination_step <= kMaxPitch;
}

}  // namespace

CudaAvailability query_devices() {
  int count = 0;  // unchanged by the runtime where it fails
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    const std::string reason = unavailable_reason(status);
    (void)cudaGetLastError();
    return {0, reason};
  }
  return {count, count > 0 ? "" : unavailable_reason(cudaErrorNoDevice)};
}

DeviceInfo device_info(int ordinal) {
  cudaDeviceProp properties{};
  WIDE_CHECK_CUDA(cudaGetDeviceProperties(&properties, ordinal));
  DeviceInfo info;
  info.device = {DeviceType::cuda, ordinal};
  info.name = properties.name;
  info.compute_capability = properties.major * 10 + properties.minor;
  info.num_multiprocessors = properties.multiProcessorCount;
  info.last_level_cache_bytes = properties.l2CacheSize;
  info.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  info.shared_bytes_per_block = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal);
  info.shared_bytes_per_multiprocessor =
      attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, ordinal);
  WIDE_CHECK_CUDA(cudaDriverGetVersion(&info.driver_version));
  WIDE_CHECK_CUDA(cudaRuntimeGetVersion(&info.runtime_version));
  return info;
}

void* allocate(int ordinal, int64_t bytes) {
  const CurrentDevice current(ordinal);
  const BesideCaptures beside;
  void* data = nullptr;
  require_room(cudaMalloc(&data, static_cast<size_t>(bytes)), ordinal, bytes, "");
  return data;
}

void deallocate(int, void* data) noexcept {
  const BesideCaptures beside;
  forget_error(cudaFree(data));
}

void* allocate_pinned(int ordinal, int64_t bytes) {
  const CurrentDevice current(ordinal);
  const BesideCaptures beside;
  void* data = nullptr;
  require_room(cudaHostAlloc(&data, static_cast<size_t>(bytes), cudaHostAllocPortable), ordinal,
               bytes, " of page-locked memory of the host");
  return data;
}

void deallocate_pinned(int, void* data) noexcept {
  const BesideCaptures beside;
  forget_error(cudaFreeHost(data));
}

void copy_async(int ordinal, void* destination, const void* source, int64_t bytes,
                Direction direction, Stream stream) {
  const CurrentDevice current(ordinal);
  WIDE_CHECK_CUDA(cudaMemcpyAsync(destination, source, static_cast<size_t>(bytes),
                                  copy_kind(direction), native_stream(stream)));
}

void copy_rows_async(int ordinal, const RowBlock& block, Direction direction, Stream stream) {
  if (block.num_rows == 1 || !steps_are_pitches(block)) {
    for (int64_t i = 0; i < block.num_rows; ++i) {
      copy_async(ordinal, block.destination + i * block.destination_step,
                 block.source + i * block.source_step, block.row_bytes, direction, stream);
    }
    return;
  }
  const CurrentDevice current(ordinal);
  WIDE_CHECK_CUDA(cudaMemcpy2DAsync(
      block.destination, static_cast<size_t>(block.destination_step), block.source,
      static_cast<size_t>(block.source_step), static_cast<size_t>(block.row_bytes),
      static_cast<size_t>(block.num_rows), copy_kind(direction), native_stream(stream)));
}

void fill_rows_async(int ordinal, const RowBlock& block, uint8_t byte, Stream stream) {
  const CurrentDevice current(ordinal);
  const auto width = static_cast<size_t>(block.row_bytes);
  if (block.num_rows == 1 || !steps_are_pitches(block)) {
    for (int64_t i = 0; i < block.num_rows; ++i) {
      WIDE_CHECK_CUDA(cudaMemsetAsync(block.destination + i * block.destination_step, byte, width,
                                      native_stream(stream)));
    }
    return;
  }
  WIDE_CHECK_CUDA(cudaMemset2DAsync(block.destination, static_cast<size_t>(block.destination_step),
                                    byte, width, static_cast<size_t>(block.num_rows),
                                    native_stream(stream)));
}

void synchronize(int ordinal, Stream stream) {
  const CurrentDevice current(ordinal);
  const BesideCaptures beside;
  WIDE_CHECK_CUDA(cudaStreamSynchronize(native_stream(stream)));
}

bool is_capturing(int ordinal, Stream stream) {
  const CurrentDevice current(ordinal);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t error = cudaStreamIsCapturing(native_stream(stream), &status);
  if (error == cudaErrorStreamCaptureImplicit) {  // of the default stream, beside another's capture
    (void)cudaGetLastError();
    return false;
  }
  WIDE_CHECK_CUDA(error);
  return status != cudaStreamCaptureStatusNone;
}

Stream create_stream(int ordinal) {
  const CurrentDevice current(ordinal);
  const BesideCaptures beside;
  cudaStream_t stream = nullptr;
  WIDE_CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return Stream(static_cast<void*>(stream));
}

void destroy_stream(int, Stream stream) noexcept {
  const BesideCaptures beside;
  forget_error(cudaStreamDestroy(native_stream(stream)));
}

namespace {

template <class Handle>
void* create_handle(int ordinal, const char* call, cublasStatus_t (*create)(Handle*),
                    std::string& reason) {
  const CurrentDevice current(ordinal);
  const BesideCaptures beside;  // it allocates
  Handle handle = nullptr;
  const cublasStatus_t status = create(&handle);
  if (status == CUBLAS_STATUS_SUCCESS) return handle;
  (void)cudaGetLastError();
  reason = std::string(call) + ": " + cublasGetStatusName(status);
  return nullptr;
}

template <class Handle>
void destroy_handle(int ordinal, void* handle, cublasStatus_t (*destroy)(Handle)) noexcept {
  try {
    const CurrentDevice current(ordinal);
    (void)destroy(static_cast<Handle>(handle));
  } catch (const Error&) {  // the runtime is gone already, and the handle with it
  }
}

}  // namespace

void* create_cublas(int ordinal, std::string& reason) {
  return create_handle(ordinal, "cublasCreate", cublasCreate, reason);
}
void destroy_cublas(int ordinal, void* handle) noexcept {
  destroy_handle(ordinal, handle, cublasDestroy);
}

void* create_cublaslt(int ordinal, std::string& reason) {
  return create_handle(ordinal, "cublasLtCreate", cublasLtCreate, reason);
}
void destroy_cublaslt(int ordinal, void* handle) noexcept {
  destroy_handle(ordinal, handle, cublasLtDestroy);
}

}  // namespace wide::runtime
