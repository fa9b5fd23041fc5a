// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Registration, as nvcc's host code calls it, and launches. Registration runs before other static
// constructors: it only notes what there is.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "verify/simcuda/device.hpp"
#include "verify/simcuda/device_model.hpp"
#include "verify/simcuda/fatbin.hpp"
#include "verify/simcuda/report.hpp"
#include "verify/simt/cluster.hpp"

namespace wide::simcuda {

namespace {

constexpr size_t kMaxLaunches = 4096;  // remembered between two calls that clear them

simt::Dim3 extents(dim3 d) {
  return {d.x, d.y, d.z};
}

KernelEntry* entry_of(Device& d, const void* function) {
  const auto found = d.kernels.find(function);
  if (found != d.kernels.end()) return found->second.get();
  for (const auto& [stub, entry] : d.kernels) {
    if (entry.get() == function) return entry.get();  // a handle of cudaGetKernel
  }
  return nullptr;
}

cudaError_t load(Device& d, LoadedModule& module) {
  if (module.module != nullptr) return cudaSuccess;
  if (module.why_none.empty()) {
    ChosenText chosen = choose_ptx(module.fat_binary, d.architecture);
    if (!chosen.ptx.empty()) {
      module.module = std::make_unique<ptx::Module>(chosen.ptx, d.memory);
      return cudaSuccess;
    }
    module.why_none = chosen.why_none;
  }
  std::fprintf(stderr, "simulated CUDA: a module cannot run: %s\n", module.why_none.c_str());
  return cudaErrorNoKernelImageForDevice;
}

/// WIDE_SIM_MUTATE=index:kernel runs that kernel without its index-th synchroniser.
void apply_mutation(KernelEntry& entry, const ptx::Kernel& kernel) {
  const char* wanted = std::getenv("WIDE_SIM_MUTATE");
  if (wanted == nullptr || entry.mutant != nullptr) return;
  const std::string text = wanted;
  const size_t colon = text.find(':');
  if (colon == std::string::npos || text.substr(colon + 1) != entry.name) return;
  entry.mutant = kernel.without(std::atoi(text.c_str()));
  std::fprintf(stderr, "simulated CUDA: synchroniser deleted\n");
}

/// The kernel to run; null with the error where there is none.
const ptx::Kernel* resolve(Device& d, KernelEntry* entry, cudaError_t& error) {
  error = cudaErrorInvalidDeviceFunction;
  if (entry == nullptr) return nullptr;
  try {
    error = load(d, *entry->module);
    if (error != cudaSuccess) return nullptr;
    const ptx::Kernel& kernel = entry->module->module->kernel(entry->name);
    apply_mutation(*entry, kernel);
    return entry->mutant != nullptr ? entry->mutant.get() : &kernel;
  } catch (const simt::Unsupported& unknown) {
    d.findings.report(simt::FindingKind::launch, unknown.what());
    error = d.unsupported(unknown.what());
  } catch (const std::out_of_range&) {
    error = cudaErrorInvalidDeviceFunction;
  }
  return nullptr;
}

cudaError_t error_of(simt::Fault::Kind kind) {
  switch (kind) {
    case simt::Fault::Kind::illegal_address:
      return cudaErrorIllegalAddress;
    case simt::Fault::Kind::misaligned:
      return cudaErrorMisalignedAddress;
    case simt::Fault::Kind::trap:
      return cudaErrorAssert;
    case simt::Fault::Kind::illegal_instruction:
      return cudaErrorIllegalInstruction;
    case simt::Fault::Kind::launch_timeout:
      return cudaErrorLaunchTimeout;
  }
  return cudaErrorUnknown;
}

struct LaunchRequest {
  dim3 grid, block;
  size_t dynamic_shared_bytes = 0;
  cudaStream_t stream = nullptr;
  bool is_programmatic = false;
  dim3 cluster{1, 1, 1};
};

/// Clusters tile the grid, and are those that the kernel was compiled for, if it was for any.
cudaError_t check_cluster(const LaunchRequest& r, const ptx::Kernel& kernel,
                          const DeviceModel& model) {
  const simt::Dim3 cluster = extents(r.cluster);
  if (cluster.count() == 0 || cluster.count() > simt::kMaxClusterBlocks ||
      r.grid.x % cluster.x != 0 || r.grid.y % cluster.y != 0 || r.grid.z % cluster.z != 0) {
    return cudaErrorInvalidClusterSize;
  }
  if (cluster.count() > 1 && model.major < 9) return cudaErrorInvalidClusterSize;
  const auto required = kernel.required_cluster();
  const bool fits = !required || (required->x == cluster.x && required->y == cluster.y &&
                                  required->z == cluster.z);
  return fits ? cudaSuccess : cudaErrorInvalidClusterSize;
}

/// The limits that a device checks before it launches.
cudaError_t check(const LaunchRequest& r, const ptx::Kernel& kernel, const KernelEntry& entry,
                  const DeviceModel& model) {
  const int64_t threads = extents(r.block).count();
  const bool is_in_range = threads > 0 && threads <= 1024 && r.block.z <= 64 && r.grid.x > 0 &&
                           r.grid.y > 0 && r.grid.z > 0 && r.grid.x <= 0x7fffffff &&
                           r.grid.y <= 65535 && r.grid.z <= 65535;
  if (!is_in_range) return cudaErrorInvalidConfiguration;
  const int most = kernel.max_threads_per_block();
  if (most > 0 && threads > most) return cudaErrorLaunchOutOfResources;
  const auto dynamic = static_cast<int64_t>(r.dynamic_shared_bytes);
  if (dynamic > max_dynamic_shared_bytes(entry, kernel) ||
      dynamic + kernel.static_shared_bytes() > model.shared_bytes_opt_in) {
    return cudaErrorInvalidValue;
  }
  return check_cluster(r, kernel, model);
}

cudaError_t run(const Operation& operation, const ptx::Kernel& kernel, const LaunchRequest& r,
                const std::vector<std::byte>& parameters, const std::string& name) {
  Device& d = device();
  simt::LaunchConfig config;
  config.grid = extents(r.grid);
  config.block = extents(r.block);
  config.cluster = extents(r.cluster);
  config.dynamic_shared_bytes = static_cast<int64_t>(r.dynamic_shared_bytes);
  config.id = operation.id;
  config.is_ordered_after = [&](uint32_t earlier) {
    return d.operations.is_ordered(earlier, operation);
  };
  config.is_programmatic = r.is_programmatic;
  simt::Launch launch(d.memory, kernel, config, parameters, d.options, d.findings);
  cudaError_t error = cudaSuccess;
  try {
    launch.run();
  } catch (const simt::Fault& fault) {
    error = error_of(fault.kind);
  } catch (const simt::Unsupported& unknown) {
    d.findings.report(simt::FindingKind::launch, name + ": " + unknown.what());
    error = d.unsupported(unknown.what());
  }
  if (d.launches.size() < kMaxLaunches)
    d.launches.push_back({name, config.grid, config.block, launch.counters});
  return error;
}

cudaError_t launch(Device& d, KernelEntry* entry, LaunchRequest request, void** arguments) {
  cudaError_t error = cudaSuccess;
  const ptx::Kernel* kernel = resolve(d, entry, error);
  if (kernel == nullptr) return error;
  if (const auto required = kernel->required_cluster();
      required && extents(request.cluster).count() == 1)
    request.cluster = {required->x, required->y, required->z};
  error = check(request, *kernel, *entry, device_model(d.architecture));
  if (error != cudaSuccess) return error;
  entry->has_run = true;
  std::vector<std::byte> parameters;
  size_t index = 0;
  for (const ptx::Parameter& p : kernel->parameters()) {
    const auto offset = static_cast<size_t>(p.offset), bytes = static_cast<size_t>(p.bytes);
    parameters.resize(std::max(parameters.size(), offset + bytes));
    std::memcpy(parameters.data() + offset, arguments[index++], bytes);
  }
  error = d.enqueue(request.stream, [=, name = entry->name](const Operation& operation) {
    return run(operation, *kernel, request, parameters, name);
  });
  const CUstream_st* stream = d.stream(request.stream);
  if (error == cudaSuccess && stream->capture != nullptr) {
    cudaKernelNodeParams facts{};
    facts.func = entry;
    facts.gridDim = request.grid;
    facts.blockDim = request.block;
    facts.sharedMemBytes = static_cast<unsigned>(request.dynamic_shared_bytes);
    stream->capture->graph->nodes.back().kernel = facts;
  }
  return error;
}

struct PushedConfiguration {
  dim3 grid, block;
  size_t dynamic_shared_bytes;
  cudaStream_t stream;
};
thread_local std::vector<PushedConfiguration> pushed;

cudaError_t read_attributes(Device& d, const cudaLaunchConfig_t& config, LaunchRequest& request) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config.attrs[i];
    switch (attribute.id) {
      case cudaLaunchAttributeClusterDimension: {
        const auto& c = attribute.val.clusterDim;
        request.cluster = {c.x, c.y, c.z};
        break;
      }
      case cudaLaunchAttributeProgrammaticStreamSerialization:
        request.is_programmatic = attribute.val.programmaticStreamSerializationAllowed != 0;
        break;
      case cudaLaunchAttributeIgnore:
      case cudaLaunchAttributePriority:
      case cudaLaunchAttributeAccessPolicyWindow:
      case cudaLaunchAttributePreferredSharedMemoryCarveout:
        break;
      default:
        return d.unsupported("launch attribute " + std::to_string(static_cast<int>(attribute.id)));
    }
  }
  return cudaSuccess;
}

}  // namespace

/// For cudaFuncSetAttribute and the like, which lie in another file.
cudaError_t kernel_facts(Device& d, const void* function, KernelEntry** entry,
                         const ptx::Kernel** kernel) {
  cudaError_t error = cudaSuccess;
  *entry = entry_of(d, function);
  *kernel = resolve(d, *entry, error);
  return error;
}

cudaError_t variable_of(Device& d, const void* shadow, ptx::Variable& variable) {
  const auto found = d.variables.find(shadow);
  if (found == d.variables.end()) return cudaErrorInvalidSymbol;
  if (const cudaError_t error = load(d, *found->second.module); error != cudaSuccess) return error;
  const auto placed = found->second.module->module->variable(found->second.name);
  if (!placed) return cudaErrorInvalidSymbol;
  variable = *placed;
  return cudaSuccess;
}

}  // namespace wide::simcuda

using namespace wide::simcuda;

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  Device& d = device();
  d.modules.push_back(std::make_unique<LoadedModule>());
  d.modules.back()->fat_binary = wrapper;
  return reinterpret_cast<void**>(d.modules.back().get());
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) {
  return 1;
}

void __cudaRegisterFunction(void** module, const char* stub, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  auto entry = std::make_unique<KernelEntry>();
  entry->module = reinterpret_cast<LoadedModule*>(module);
  entry->name = name;
  device().kernels[stub] = std::move(entry);
}

void __cudaRegisterVar(void** module, char* shadow, char*, const char* name, int, size_t bytes, int,
                       int) {
  device().variables[shadow] = {reinterpret_cast<LoadedModule*>(module), name, bytes};
}

void __cudaRegisterManagedVar(void**, void**, char*, const char* name, int, size_t, int, int) {
  (void)device().unsupported(std::string("__managed__ variable ") + name);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  pushed.push_back({grid, block, shared, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  if (pushed.empty()) return cudaErrorMissingConfiguration;
  const PushedConfiguration top = pushed.back();
  pushed.pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared = top.dynamic_shared_bytes;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  Device& d = device();
  const std::lock_guard lock(d.mutex);
  *kernel = reinterpret_cast<cudaKernel_t>(entry_of(d, stub));
  return *kernel == nullptr ? cudaErrorInvalidDeviceFunction : cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             size_t shared, cudaStream_t stream) {
  return call("cudaLaunchKernel", [&](Device& d) {
    return launch(d, entry_of(d, function), {grid, block, shared, stream, false}, arguments);
  });
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared, cudaStream_t stream) {
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, arguments, shared,
                          stream);
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                    size_t shared, cudaStream_t stream) {
  return __cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  return call("cudaLaunchKernelExC", [&](Device& d) {
    LaunchRequest request{config->gridDim, config->blockDim, config->dynamicSmemBytes,
                          config->stream, false};
    if (const cudaError_t error = read_attributes(d, *config, request); error != cudaSuccess)
      return error;
    return launch(d, entry_of(d, function), request, arguments);
  });
}

cudaError_t cudaLaunchCooperativeKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t) {
  return call("cudaLaunchCooperativeKernel",
              [](Device& d) { return d.unsupported("cooperative launches"); });
}

}  // extern "C"
