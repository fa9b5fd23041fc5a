// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/nvml/session.hpp"

#include <dlfcn.h>

#include <cstdlib>

namespace wide::bench::nvml {

namespace {

constexpr const char* kLibrary = "libnvidia-ml.so.1";

struct CloseLibrary {
  void operator()(void* library) const { ::dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

template <class Function>
bool find(const Library& library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(library.get(), name));
  return function != nullptr;
}

/// The name of a required function that is missing; null if there is none.
const char* missing_function(const Library& library, Functions& f) {
  if (!find(library, f.init, "nvmlInit_v2")) return "nvmlInit_v2";
  if (!find(library, f.shutdown, "nvmlShutdown")) return "nvmlShutdown";
  if (!find(library, f.error_string, "nvmlErrorString")) return "nvmlErrorString";
  if (!find(library, f.device, "nvmlDeviceGetHandleByPciBusId_v2"))
    return "nvmlDeviceGetHandleByPciBusId_v2";
  if (!find(library, f.clock, "nvmlDeviceGetClockInfo")) return "nvmlDeviceGetClockInfo";
  // Optional: what these would do stays unknown without them. The reasons have two names, the newer
  // first.
  (void)find(library, f.driver_version, "nvmlSystemGetDriverVersion");
  (void)find(library, f.power, "nvmlDeviceGetPowerUsage");
  (void)find(library, f.fields, "nvmlDeviceGetFieldValues");
  (void)find(library, f.temperature, "nvmlDeviceGetTemperature");
  if (!find(library, f.reasons, "nvmlDeviceGetCurrentClocksEventReasons"))
    (void)find(library, f.reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  (void)find(library, f.energy, "nvmlDeviceGetTotalEnergyConsumption");
  (void)find(library, f.max_clock, "nvmlDeviceGetMaxClockInfo");
  (void)find(library, f.lock_clocks, "nvmlDeviceSetGpuLockedClocks");
  (void)find(library, f.reset_clocks, "nvmlDeviceResetGpuLockedClocks");
  (void)find(library, f.mig, "nvmlDeviceGetMigMode");
  (void)find(library, f.ecc, "nvmlDeviceGetEccMode");
  (void)find(library, f.persistence, "nvmlDeviceGetPersistenceMode");
  (void)find(library, f.compute_mode, "nvmlDeviceGetComputeMode");
  (void)find(library, f.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  (void)find(library, f.default_clock, "nvmlDeviceGetDefaultApplicationsClock");
  (void)find(library, f.processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  return nullptr;
}

}  // namespace

Session::~Session() {
  (void)f.shutdown();
  ::dlclose(library_);
}

Opened open(const std::string& pci_bus_id) {
  const char* asked = std::getenv("WIDE_NVML");
  const char* path = asked != nullptr ? asked : kLibrary;
  Library library(::dlopen(path, RTLD_NOW | RTLD_LOCAL));
  if (!library) return {nullptr, ::dlerror()};
  Functions functions;
  if (const char* name = missing_function(library, functions))
    return {nullptr, std::string(path) + " has no " + name};
  if (const int error = functions.init(); error != kSuccess)
    return {nullptr, std::string("nvmlInit: ") + functions.error_string(error)};
  Device device = nullptr;
  if (const int error = functions.device(pci_bus_id.c_str(), &device); error != kSuccess) {
    const std::string reason = "device " + pci_bus_id + ": " + functions.error_string(error);
    (void)functions.shutdown();
    return {nullptr, reason};
  }
  return {std::make_unique<Session>(library.release(), functions, device), ""};
}

}  // namespace wide::bench::nvml
