// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The device's properties, functions' attributes, occupancy, errors, and what of the driver is
// reached through the runtime.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>

#include "verify/simcuda/device.hpp"
#include "verify/simcuda/device_model.hpp"
#include "verify/simcuda/tensor_map_encode.hpp"

namespace wide::simcuda {

cudaError_t kernel_facts(Device& d, const void* function, KernelEntry** entry,
                         const ptx::Kernel** kernel);

/// WIDE_SIM_MULTIPROCESSORS: so few that small problems keep persistent blocks busy.
/// WIDE_SIM_L2_BYTES: so few that it is flushed soon.
DeviceModel as_asked(DeviceModel model) {
  const auto replace = [](const char* variable, int& number) {
    const char* asked = std::getenv(variable);
    if (asked != nullptr && std::atoi(asked) > 0) number = std::atoi(asked);
  };
  replace("WIDE_SIM_MULTIPROCESSORS", model.multiprocessors);
  replace("WIDE_SIM_L2_BYTES", model.l2_bytes);
  return model;
}

/// WIDE_SIM_PERSISTING_L2=0: as a slice of a device by MIG, which sets nothing of its L2 aside.
bool has_persisting_l2() {
  const char* asked = std::getenv("WIDE_SIM_PERSISTING_L2");
  return asked == nullptr || std::atoi(asked) != 0;
}

const DeviceModel& device_model(int architecture) {
  static const std::array models{as_asked({"simulated sm_90a", 9, 0, 132, 2048, 32, 227 << 10,
                                           228 << 10, 60 << 20, 1980000, 3201000, 6144}),
                                 as_asked({"simulated sm_80", 8, 0, 108, 2048, 32, 163 << 10,
                                           164 << 10, 40 << 20, 1410000, 1593000, 5120}),
                                 as_asked({"simulated sm_89", 8, 9, 128, 1536, 24, 99 << 10,
                                           100 << 10, 72 << 20, 2520000, 10501000, 384}),
                                 as_asked({"simulated sm_120", 12, 0, 170, 1536, 24, 99 << 10,
                                           100 << 10, 96 << 20, 2407000, 14001000, 512})};
  return *std::find_if(models.begin(), models.end(), [&](const DeviceModel& m) {
    return 10 * m.major + m.minor == architecture;
  });
}

namespace {

constexpr int kSharedOfSystem = 1024;

const std::map<int, int>& attributes(int architecture) {
  const DeviceModel& m = device_model(architecture);
  static const std::map<int, int> all{
      {cudaDevAttrMaxThreadsPerBlock, 1024},
      {cudaDevAttrMaxBlockDimX, 1024},
      {cudaDevAttrMaxBlockDimY, 1024},
      {cudaDevAttrMaxBlockDimZ, 64},
      {cudaDevAttrMaxGridDimX, 0x7fffffff},
      {cudaDevAttrMaxGridDimY, 65535},
      {cudaDevAttrMaxGridDimZ, 65535},
      {cudaDevAttrMaxSharedMemoryPerBlock, 48 << 10},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, m.shared_bytes_opt_in},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, m.shared_bytes_of_multiprocessor},
      {cudaDevAttrReservedSharedMemoryPerBlock, kSharedOfSystem},
      {cudaDevAttrWarpSize, 32},
      {cudaDevAttrMaxPitch, kMaxPitch},
      {cudaDevAttrMultiProcessorCount, m.multiprocessors},
      {cudaDevAttrMaxThreadsPerMultiProcessor, m.threads_of_multiprocessor},
      {cudaDevAttrMaxBlocksPerMultiprocessor, m.blocks_of_multiprocessor},
      {cudaDevAttrMaxRegistersPerBlock, 65536},
      {cudaDevAttrMaxRegistersPerMultiprocessor, 65536},
      {cudaDevAttrL2CacheSize, m.l2_bytes},
      {cudaDevAttrMaxPersistingL2CacheSize, has_persisting_l2() ? m.l2_bytes / 8 * 5 : 0},
      {cudaDevAttrClockRate, m.clock_khz},
      {cudaDevAttrMemoryClockRate, m.memory_clock_khz},
      {cudaDevAttrGlobalMemoryBusWidth, m.memory_bus_bits},
      {cudaDevAttrConcurrentKernels, 1},
      {cudaDevAttrUnifiedAddressing, 1},
      {cudaDevAttrManagedMemory, 1},
      {cudaDevAttrCanMapHostMemory, 1},
      {cudaDevAttrStreamPrioritiesSupported, 1},
      {cudaDevAttrMemoryPoolsSupported, 1},
      {cudaDevAttrComputeCapabilityMajor, m.major},
      {cudaDevAttrComputeCapabilityMinor, m.minor},
      {cudaDevAttrCooperativeLaunch, 0},
      {cudaDevAttrClusterLaunch, m.major >= 9},
      {cudaDevAttrAsyncEngineCount, 3},
      {cudaDevAttrEccEnabled, 1},
      {cudaDevAttrIntegrated, 0},
      {cudaDevAttrComputeMode, cudaComputeModeDefault}};
  return all;
}

/// Blocks that fit a multiprocessor by threads and shared memory. Registers are ptxas' business and
/// not known here: real occupancy may be lower.
int blocks_that_fit(const DeviceModel& model, const ptx::Kernel& kernel, int threads,
                    size_t dynamic) {
  if (threads <= 0) return 0;
  const int warps = (threads + 31) / 32;
  const int64_t shared =
      kernel.static_shared_bytes() + static_cast<int64_t>(dynamic) + kSharedOfSystem;
  const int64_t by_shared = model.shared_bytes_of_multiprocessor / shared;
  return static_cast<int>(
      std::min({int64_t{model.blocks_of_multiprocessor},
                int64_t{model.threads_of_multiprocessor / (32 * warps)}, by_shared}));
}

/// The primary context is the only one.
CUresult current_context(CUcontext* context) {
  *context = has_context() ? reinterpret_cast<CUcontext>(&device()) : nullptr;
  return CUDA_SUCCESS;
}

cudaError_t entry_point(const char* symbol, void** function,
                        cudaDriverEntryPointQueryResult* status) {
  *function = nullptr;
  if (std::strcmp(symbol, "cuTensorMapEncodeTiled") == 0)
    *function = reinterpret_cast<void*>(encode_tiled);
  if (std::strcmp(symbol, "cuCtxGetCurrent") == 0)
    *function = reinterpret_cast<void*>(current_context);
  if (status != nullptr)
    *status =
        *function == nullptr ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
  return *function == nullptr ? device().unsupported(std::string("driver function ") + symbol)
                              : cudaSuccess;
}

struct ErrorText {
  cudaError_t error;
  const char *name, *text;
};
constexpr ErrorText kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
    {cudaErrorIllegalInstruction, "cudaErrorIllegalInstruction",
     "an illegal instruction was encountered"},
    {cudaErrorAssert, "cudaErrorAssert", "device-side assert triggered"},
    {cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources",
     "too many resources requested for launch"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection",
     "invalid copy direction for memcpy"},
    {cudaErrorInvalidPitchValue, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    {cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {cudaErrorMissingConfiguration, "cudaErrorMissingConfiguration",
     "missing launch configuration"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "capture was not joined to its origin stream"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorIllegalState, "cudaErrorIllegalState",
     "the operation cannot be performed in the present state"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"}};

const ErrorText* find_text(cudaError_t error) {
  for (const ErrorText& one : kErrors) {
    if (one.error == error) return &one;
  }
  return nullptr;
}

}  // namespace

}  // namespace wide::simcuda

using namespace wide::simcuda;

extern "C" {

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error();
  last_error() = device().sticky;
  return error != cudaSuccess ? error : device().sticky;
}
cudaError_t cudaPeekAtLastError() {
  return last_error() != cudaSuccess ? last_error() : device().sticky;
}
const char* cudaGetErrorString(cudaError_t error) {
  const ErrorText* text = find_text(error);
  return text == nullptr ? "unrecognized error code" : text->text;
}
const char* cudaGetErrorName(cudaError_t error) {
  const ErrorText* text = find_text(error);
  return text == nullptr ? "unrecognized error code" : text->name;
}

cudaError_t cudaGetDeviceCount(int* count) {
  return call("cudaGetDeviceCount", [&](Device&) { return *count = 1, cudaSuccess; });
}
cudaError_t cudaSetDevice(int ordinal) {
  return call("cudaSetDevice",
              [&](Device&) { return ordinal == 0 ? cudaSuccess : cudaErrorInvalidDevice; });
}
cudaError_t cudaGetDevice(int* ordinal) {
  return call("cudaGetDevice", [&](Device&) { return *ordinal = 0, cudaSuccess; });
}
cudaError_t cudaInitDevice(int, unsigned, unsigned) {
  return cudaSuccess;
}
cudaError_t cudaSetDeviceFlags(unsigned) {
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  return *version = CUDART_VERSION, cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  return *version = CUDART_VERSION, cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int ordinal) {
  return call("cudaDeviceGetAttribute", [&](Device& d) {
    if (ordinal != 0) return cudaErrorInvalidDevice;
    const auto found = attributes(d.architecture).find(attribute);
    if (found == attributes(d.architecture).end())
      return d.unsupported("device attribute " + std::to_string(static_cast<int>(attribute)));
    *value = found->second;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int ordinal) {
  return call("cudaGetDeviceProperties", [&](Device& d) {
    if (ordinal != 0) return cudaErrorInvalidDevice;
    const DeviceModel& m = device_model(d.architecture);
    *p = cudaDeviceProp{};
    std::strncpy(p->name, m.name, sizeof(p->name) - 1);
    std::memcpy(p->uuid.bytes, "simulated GPU 00", sizeof(p->uuid.bytes));
    p->totalGlobalMem = static_cast<size_t>(d.memory.capacity_bytes());
    p->sharedMemPerBlock = 48 << 10;
    p->sharedMemPerBlockOptin = static_cast<size_t>(m.shared_bytes_opt_in);
    p->sharedMemPerMultiprocessor = static_cast<size_t>(m.shared_bytes_of_multiprocessor);
    p->reservedSharedMemPerBlock = kSharedOfSystem;
    p->regsPerBlock = p->regsPerMultiprocessor = 65536;
    p->warpSize = 32;
    p->memPitch = kMaxPitch;
    p->maxThreadsPerBlock = 1024;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 0x7fffffff;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->major = m.major;
    p->minor = m.minor;
    p->multiProcessorCount = m.multiprocessors;
    p->maxThreadsPerMultiProcessor = m.threads_of_multiprocessor;
    p->maxBlocksPerMultiProcessor = m.blocks_of_multiprocessor;
    p->l2CacheSize = m.l2_bytes;
    p->memoryBusWidth = m.memory_bus_bits;
    p->unifiedAddressing = p->managedMemory = p->canMapHostMemory = 1;
    p->concurrentKernels = 1;
    p->asyncEngineCount = 3;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int ordinal) {
  return call("cudaDeviceGetPCIBusId", [&](Device&) {
    if (ordinal != 0 || bytes < 13) return cudaErrorInvalidValue;
    std::strcpy(text, "0000:00:00.0");
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", [](Device& d) { return d.synchronize(); });
}
cudaError_t cudaDeviceReset() {
  return release("cudaDeviceReset", [](Device& d) { return d.reset(), cudaSuccess; });
}
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t) {
  if (limit == cudaLimitPersistingL2CacheSize && !has_persisting_l2()) {
    return call("cudaDeviceSetLimit", [](Device&) { return cudaErrorUnsupportedLimit; });
  }
  return cudaSuccess;
}
cudaError_t cudaCtxResetPersistingL2Cache() {
  if (has_persisting_l2()) return cudaSuccess;
  return call("cudaCtxResetPersistingL2Cache", [](Device&) { return cudaErrorNotSupported; });
}
cudaError_t cudaProfilerStart() {
  return cudaSuccess;
}
cudaError_t cudaProfilerStop() {
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  return call("cudaFuncSetAttribute", [&](Device& d) {
    KernelEntry* entry = nullptr;
    const wide::ptx::Kernel* kernel = nullptr;
    if (const cudaError_t error = kernel_facts(d, function, &entry, &kernel); error != cudaSuccess)
      return error;
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize)
      return d.unsupported("function attribute " + std::to_string(static_cast<int>(attribute)));
    const int64_t most =
        device_model(d.architecture).shared_bytes_opt_in - kernel->static_shared_bytes();
    if (value < 0 || value > most) return cudaErrorInvalidValue;
    const int before = max_dynamic_shared_bytes(*entry, *kernel);
    if (value < before) {
      d.misuse("cudaFuncSetAttribute: " + entry->name + " had " + std::to_string(before) +
               " bytes of dynamic shared memory and gets " + std::to_string(value) +
               ": another thread's launch may need what is taken away");
    }
    entry->asked_shared_bytes = value;
    return cudaSuccess;
  });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes_of, const void* function) {
  return call("cudaFuncGetAttributes", [&](Device& d) {
    KernelEntry* entry = nullptr;
    const wide::ptx::Kernel* kernel = nullptr;
    if (const cudaError_t error = kernel_facts(d, function, &entry, &kernel); error != cudaSuccess)
      return error;
    *attributes_of = cudaFuncAttributes{};
    attributes_of->sharedSizeBytes = static_cast<size_t>(kernel->static_shared_bytes());
    attributes_of->localSizeBytes = static_cast<size_t>(kernel->local_bytes());
    const int most = kernel->max_threads_per_block();
    attributes_of->maxThreadsPerBlock = most > 0 ? most : 1024;
    attributes_of->maxDynamicSharedSizeBytes = max_dynamic_shared_bytes(*entry, *kernel);
    attributes_of->ptxVersion = attributes_of->binaryVersion = d.architecture;
    return cudaSuccess;
  });
}

cudaError_t cudaFuncGetName(const char** name, const void* function) {
  return call("cudaFuncGetName", [&](Device& d) {
    KernelEntry* entry = nullptr;
    const wide::ptx::Kernel* kernel = nullptr;
    const cudaError_t error = kernel_facts(d, function, &entry, &kernel);
    if (error == cudaSuccess) *name = entry->name.c_str();
    return error;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int threads, size_t dynamic) {
  return call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", [&](Device& d) {
    KernelEntry* entry = nullptr;
    const wide::ptx::Kernel* kernel = nullptr;
    if (const cudaError_t error = kernel_facts(d, function, &entry, &kernel); error != cudaSuccess)
      return error;
    *blocks = blocks_that_fit(device_model(d.architecture), *kernel, threads, dynamic);
    return cudaSuccess;
  });
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                   const void* function,
                                                                   int threads, size_t dynamic,
                                                                   unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, dynamic);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
  return call("cudaGetDriverEntryPointByVersion",
              [&](Device&) { return entry_point(symbol, function, status); });
}

}  // extern "C"
