// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/nvml/nvml.hpp"

#include <utility>

#include "bench/nvml/session.hpp"

namespace wide::bench {

namespace {

/// nvmlClocksEventReason*: those that slow a measurement below the device's capability.
constexpr std::pair<nvml::LongNumber, ThrottleReason> kReasons[] = {{0x04, kSwPowerCap},
                                                                    {0x08, kHwSlowdown},
                                                                    {0x20, kSwThermal},
                                                                    {0x40, kHwThermal},
                                                                    {0x80, kHwPowerBrake}};

class Nvml final : public Monitor {
 public:
  explicit Nvml(std::unique_ptr<nvml::Session> session) : session_(std::move(session)) {}

  Reading read_clock() override {
    const auto& [f, device] = parts();
    Reading reading;
    nvml::Number mhz = 0;
    if (f.clock(device, nvml::kClockSm, &mhz) == nvml::kSuccess && mhz > 0) reading.sm_mhz = mhz;
    nvml::LongNumber bits = 0;
    if (f.reasons != nullptr && f.reasons(device, &bits) == nvml::kSuccess) {
      for (const auto& [bit, reason] : kReasons) {
        if ((bits & bit) != 0) reading.reasons |= reason;
      }
    }
    return reading;
  }

  Reading read_all() override {
    const auto& [f, device] = parts();
    Reading reading = read_clock();
    nvml::Number value = 0;
    if (const auto milliwatts = instant_power()) {
      reading.power_w = *milliwatts * 1e-3;
    } else if (f.power != nullptr && f.power(device, &value) == nvml::kSuccess) {
      reading.power_w = value * 1e-3;
      reading.is_power_mean = true;
    }
    if (f.temperature != nullptr &&
        f.temperature(device, nvml::kTemperatureGpu, &value) == nvml::kSuccess)
      reading.temp_c = value;
    return reading;
  }

  std::optional<nvml::Number> instant_power() const {
    const auto& [f, device] = parts();
    nvml::FieldValue power;
    power.field = nvml::kPowerInstant;
    const bool is_said = f.fields != nullptr && f.fields(device, 1, &power) == nvml::kSuccess &&
                         power.error == nvml::kSuccess && power.type == nvml::kUnsignedInt;
    return is_said ? std::optional(power.number) : std::nullopt;
  }

  std::optional<double> total_energy_j() override {
    const auto& [f, device] = parts();
    nvml::LongNumber millijoules = 0;
    if (f.energy == nullptr || f.energy(device, &millijoules) != nvml::kSuccess)
      return std::nullopt;
    return static_cast<double>(millijoules) * 1e-3;
  }

 private:
  std::pair<const nvml::Functions&, nvml::Device> parts() const {
    return {session_->f, session_->device};
  }
  std::unique_ptr<nvml::Session> session_;
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
  nvml::Opened opened = nvml::open(pci_bus_id);
  if (!opened.session) return {nullptr, opened.reason};
  return {std::make_unique<Nvml>(std::move(opened.session)), ""};
}

}  // namespace wide::bench
