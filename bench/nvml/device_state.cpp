// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/nvml/device_state.hpp"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "bench/nvml/session.hpp"

namespace wide::bench {

namespace {

using nvml::Number;

/// A number that a function returns; none if the function is missing or fails.
template <class Function, class... Before>
std::optional<Number> ask(Function function, nvml::Device device, Before... before) {
  Number value = 0;
  if (function == nullptr || function(device, before..., &value) != nvml::kSuccess)
    return std::nullopt;
  return value;
}

/// The same for a mode that also has a pending value.
std::optional<bool> ask_mode(int (*function)(nvml::Device, Number*, Number*), nvml::Device device) {
  Number present = 0, pending = 0;
  if (function == nullptr || function(device, &present, &pending) != nvml::kSuccess)
    return std::nullopt;
  return present != 0;
}

std::string driver_version(const nvml::Functions& f) {
  char text[80] = {};  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
  const bool is_known =
      f.driver_version != nullptr && f.driver_version(text, sizeof(text)) == nvml::kSuccess;
  return is_known ? text : "";
}

/// 0 means unknown.
std::optional<double> megahertz(const std::optional<Number>& value) {
  return value && *value > 0 ? std::optional<double>(*value) : std::nullopt;
}

/// nvmlComputeMode_t.
std::string compute_mode(const std::optional<Number>& mode) {
  constexpr const char* kNames[] = {"default", "exclusive_thread", "prohibited",
                                    "exclusive_process"};
  return mode && *mode < std::size(kNames) ? kNames[*mode] : "";
}

std::optional<int64_t> other_processes(const nvml::Session& session) {
  if (session.f.processes == nullptr) return std::nullopt;
  std::vector<nvml::Process> processes(64);
  for (int tries = 0; tries < 3; ++tries) {  // processes may start between two calls
    auto count = static_cast<Number>(processes.size());
    const int error = session.f.processes(session.device, &count, processes.data());
    if (error == nvml::kInsufficientSize) {
      processes.resize(2 * static_cast<size_t>(count) + 1);
      continue;
    }
    if (error != nvml::kSuccess || count > processes.size()) return std::nullopt;
    std::vector<unsigned> numbers;
    for (size_t i = 0; i < count; ++i) numbers.push_back(processes[i].pid);
    return count_others(numbers, static_cast<unsigned>(::getpid()));
  }
  return std::nullopt;
}

}  // namespace

int64_t count_others(std::span<const unsigned> processes, unsigned own) {
  const auto others = std::count_if(processes.begin(), processes.end(),
                                    [&](unsigned process) { return process != own; });
  const bool has_own = others < std::ssize(processes);
  return has_own || others == 0 ? others : others - 1;
}

DeviceState device_state(const std::string& pci_bus_id) {
  const nvml::Opened opened = nvml::open(pci_bus_id);
  if (!opened.session) return {};
  const nvml::Functions& f = opened.session->f;
  const nvml::Device device = opened.session->device;
  DeviceState state;
  state.driver = driver_version(f);
  state.mig = ask_mode(f.mig, device);
  state.ecc = ask_mode(f.ecc, device);
  if (const auto mode = ask(f.persistence, device)) state.persistence = *mode != 0;
  state.compute_mode = compute_mode(ask(f.compute_mode, device));
  if (const auto milliwatts = ask(f.power_limit, device)) state.power_limit_w = *milliwatts * 1e-3;
  state.other_processes = other_processes(*opened.session);
  state.sm_default_mhz = megahertz(ask(f.default_clock, device, nvml::kClockSm));
  state.sm_max_mhz = megahertz(ask(f.max_clock, device, nvml::kClockSm));
  state.mem_mhz = megahertz(ask(f.clock, device, nvml::kClockMemory));
  return state;
}

}  // namespace wide::bench
