// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The few functions that are called are declared here, as the driver's documentation has them: the
// header comes with a toolkit, and a build without one measures clocks, too.
#include "bench/nvml/nvml.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <utility>

namespace wide::bench {

namespace {

constexpr const char* kLibrary = "libnvidia-ml.so.1";
constexpr int kSuccess = 0;
constexpr unsigned kClockSm = 1, kTemperatureGpu = 0;  // nvmlClockType_t, nvmlTemperatureSensors_t

using Device = void*;
using Number = unsigned int;
using LongNumber = unsigned long long;

/// nvmlClocksEventReason*, those that make a measurement slower than the device can.
constexpr std::pair<LongNumber, ThrottleReason> kReasons[] = {{0x04, kSwPowerCap},
                                                              {0x08, kHwSlowdown},
                                                              {0x20, kSwThermal},
                                                              {0x40, kHwThermal},
                                                              {0x80, kHwPowerBrake}};

struct Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*device)(const char*, Device*) = nullptr;
  int (*clock)(Device, unsigned, Number*) = nullptr;
  int (*power)(Device, Number*) = nullptr;                  // milliwatts
  int (*temperature)(Device, unsigned, Number*) = nullptr;  // degrees Celsius
  int (*reasons)(Device, LongNumber*) = nullptr;
  int (*energy)(Device, LongNumber*) = nullptr;  // millijoules since the driver was loaded
};

class Library {
 public:
  explicit Library(const char* path) : handle_(::dlopen(path, RTLD_NOW | RTLD_LOCAL)) {}
  ~Library() {
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  Library(Library&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  explicit operator bool() const { return handle_ != nullptr; }

  template <class Function>
  bool find(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(::dlsym(handle_, name));
    return function != nullptr;
  }

 private:
  void* handle_;
};

/// The name of a function that is needed and not there; null where all are.
const char* missing_function(const Library& library, Functions& f) {
  if (!library.find(f.init, "nvmlInit_v2")) return "nvmlInit_v2";
  if (!library.find(f.shutdown, "nvmlShutdown")) return "nvmlShutdown";
  if (!library.find(f.error_string, "nvmlErrorString")) return "nvmlErrorString";
  if (!library.find(f.device, "nvmlDeviceGetHandleByPciBusId_v2"))
    return "nvmlDeviceGetHandleByPciBusId_v2";
  if (!library.find(f.clock, "nvmlDeviceGetClockInfo")) return "nvmlDeviceGetClockInfo";
  // What these would say stays unknown without them. The third has two names, the newer first.
  (void)library.find(f.power, "nvmlDeviceGetPowerUsage");
  (void)library.find(f.temperature, "nvmlDeviceGetTemperature");
  if (!library.find(f.reasons, "nvmlDeviceGetCurrentClocksEventReasons"))
    (void)library.find(f.reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  (void)library.find(f.energy, "nvmlDeviceGetTotalEnergyConsumption");
  return nullptr;
}

class Nvml final : public Monitor {
 public:
  Nvml(Library library, const Functions& functions, Device device)
      : library_(std::move(library)), f_(functions), device_(device) {}
  ~Nvml() override { (void)f_.shutdown(); }

  Reading read_clock() override {
    Reading reading;
    Number mhz = 0;
    if (f_.clock(device_, kClockSm, &mhz) == kSuccess && mhz > 0) reading.sm_mhz = mhz;
    LongNumber bits = 0;
    if (f_.reasons != nullptr && f_.reasons(device_, &bits) == kSuccess) {
      for (const auto& [bit, reason] : kReasons) {
        if ((bits & bit) != 0) reading.reasons |= reason;
      }
    }
    return reading;
  }

  Reading read_all() override {
    Reading reading = read_clock();
    Number value = 0;
    if (f_.power != nullptr && f_.power(device_, &value) == kSuccess)
      reading.power_w = value * 1e-3;
    if (f_.temperature != nullptr && f_.temperature(device_, kTemperatureGpu, &value) == kSuccess)
      reading.temp_c = value;
    return reading;
  }

  std::optional<double> total_energy_j() override {
    LongNumber millijoules = 0;
    if (f_.energy == nullptr || f_.energy(device_, &millijoules) != kSuccess) return std::nullopt;
    return static_cast<double>(millijoules) * 1e-3;
  }

 private:
  Library library_;  // outlives the calls of f_
  Functions f_;
  Device device_;
};

}  // namespace

std::vector<std::string> names_of_reasons(uint32_t reasons) {
  constexpr std::pair<ThrottleReason, const char*> kNames[] = {{kSwPowerCap, "sw_power_cap"},
                                                               {kHwSlowdown, "hw_slowdown"},
                                                               {kSwThermal, "sw_thermal"},
                                                               {kHwThermal, "hw_thermal"},
                                                               {kHwPowerBrake, "hw_power_brake"}};
  std::vector<std::string> names;
  for (const auto& [reason, name] : kNames) {
    if ((reasons & reason) != 0) names.emplace_back(name);
  }
  return names;
}

NvmlMonitor open_nvml(const std::string& pci_bus_id) {
  const char* asked = std::getenv("WIDE_NVML");
  const char* path = asked != nullptr ? asked : kLibrary;
  Library library(path);
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
  return {std::make_unique<Nvml>(std::move(library), functions, device), ""};
}

}  // namespace wide::bench
