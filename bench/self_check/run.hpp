// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Measures the numbers that check.hpp judges. An exception fails its own check and no other.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bench/nvml/nvml.hpp"
#include "bench/self_check/check.hpp"
#include "wide/context.hpp"

namespace wide::bench {

/// Called with all of a device's checks whenever one has ended; pending ones are skipped so far.
using OnChecks = std::function<void(const std::vector<SelfCheck>&)>;

/// The checks of one device, each with its outcome.
class SelfChecks {
 public:
  explicit SelfChecks(const Device& device, OnChecks on_checks = {})
      : type_(device.type), name_(to_string(device)), on_checks_(std::move(on_checks)) {}
  SelfChecks(DeviceType type, std::string name) : type_(type), name_(std::move(name)) {}

  /// Judges what `number` returns; skipped after an interrupt, before or during the measurement.
  void measure(std::string_view check, const std::function<double()>& number);
  void skip(std::string_view check, const std::string& reason);
  /// All checks of the device that have no outcome yet.
  void skip_rest(const std::string& reason);
  void add(SelfCheck check);
  const Limit& limit(std::string_view check) const { return limit_of(check, type_); }
  const std::string& device() const { return name_; }
  /// In the order of limits().
  std::vector<SelfCheck> in_order() const;

 private:
  DeviceType type_;
  std::string name_;
  OnChecks on_checks_;
  std::vector<SelfCheck> done_;
};

/// All checks of the context's device. On the simulated GPU, which has no times, only those of
/// logic. After an interrupt the rest is skipped.
std::vector<SelfCheck> check_device(const Context& context, const OnChecks& on_checks = {});
/// The checks of a GPU if there is none.
std::vector<SelfCheck> skip_cuda(const std::string& reason);

/// Checks NVML's readings while `load`, called repeatedly, keeps the device busy for a moment each.
void check_nvml(SelfChecks& checks, const NvmlMonitor& nvml, const std::function<void()>& load);

/// Events, launches, stream blocking and L2 flushing of a GPU that has been calibrated.
void check_cuda_timing(SelfChecks& checks, const Context& context, const Calibration& calibration);
/// The only check of a GPU that needs no time measurement.
void check_blocker_time_out(SelfChecks& checks, const Context& context, double timeout_s);
/// Keeps a GPU busy for about a millisecond per call.
std::function<void()> cuda_load(const Context& context);

}  // namespace wide::bench
