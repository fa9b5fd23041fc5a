// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Takes the numbers that check.hpp judges. What throws is that check's failure and no other's.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bench/nvml/nvml.hpp"
#include "bench/self_check/check.hpp"
#include "wide/context.hpp"

namespace wide::bench {

/// Told of all of a device's checks whenever one has ended; those to come are skipped until then.
using OnChecks = std::function<void(const std::vector<SelfCheck>&)>;

/// The checks of one device, each with its outcome.
class SelfChecks {
 public:
  explicit SelfChecks(const Device& device, OnChecks on_checks = {})
      : type_(device.type), name_(to_string(device)), on_checks_(std::move(on_checks)) {}
  SelfChecks(DeviceType type, std::string name) : type_(type), name_(std::move(name)) {}

  /// Judges what `number` returns; skipped where an interrupt comes before or meanwhile.
  void measure(std::string_view check, const std::function<double()>& number);
  void skip(std::string_view check, const std::string& reason);
  /// All of the device that have no outcome yet.
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

/// All checks of the context's device. On the simulated GPU, which has no times, those of logic.
/// After an interrupt the rest is skipped.
std::vector<SelfCheck> check_device(const Context& context, const OnChecks& on_checks = {});
/// Those of a GPU where there is none.
std::vector<SelfCheck> skip_cuda(const std::string& reason);

/// What NVML says while `load` keeps the device busy for a moment, over and over.
void check_nvml(SelfChecks& checks, const NvmlMonitor& nvml, const std::function<void()>& load);

/// Events, launches, holding back and emptying of a GPU; its calibration has been measured.
void check_cuda_timing(SelfChecks& checks, const Context& context, const Calibration& calibration);
/// The one check of a GPU that needs no time.
void check_blocker_time_out(SelfChecks& checks, const Context& context, double timeout_s);
/// Keeps a GPU busy for about a millisecond, again and again.
std::function<void()> cuda_load(const Context& context);

}  // namespace wide::bench
