// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/nvml/clock_lock.hpp"

#include <charconv>

#include "wide/error.hpp"

namespace wide::bench {

namespace {

[[noreturn]] void refuse(ErrorCode code, const std::string& asked, const std::string& message) {
  throw Error(code, "--lock-clocks " + asked + ": " + message);
}

/// The largest clock of the multiprocessors, if the device reports it.
std::optional<nvml::Number> max_mhz(const nvml::Session& session) {
  nvml::Number mhz = 0;
  if (session.f.max_clock == nullptr ||
      session.f.max_clock(session.device, nvml::kClockSm, &mhz) != nvml::kSuccess || mhz == 0)
    return std::nullopt;
  return mhz;
}

/// The value for both ends of the range of clocks.
nvml::Number wanted(const nvml::Session& session, const std::string& asked) {
  if (asked == "base") return nvml::kLimitTdp;
  const std::optional<nvml::Number> most = max_mhz(session);
  if (asked == "max") {
    if (!most) refuse(ErrorCode::unsupported, asked, "the device does not say its largest clock");
    return *most;
  }
  const int64_t mhz = parse_lock_clocks(asked);
  if (most && mhz > int64_t{*most}) {
    refuse(ErrorCode::invalid_argument, asked,
           asked + " MHz, expected at most " + std::to_string(*most) + " on this device");
  }
  return static_cast<nvml::Number>(mhz);
}

}  // namespace

int64_t parse_lock_clocks(const std::string& asked) {
  if (asked == "base" || asked == "max") return 0;
  int64_t mhz = 0;
  const auto [end, error] = std::from_chars(asked.data(), asked.data() + asked.size(), mhz);
  if (error != std::errc() || end != asked.data() + asked.size() || mhz < 1 || mhz > 100'000) {
    throw Error(ErrorCode::invalid_argument,
                "--lock-clocks: \"" + asked + "\", expected base, max or a number of MHz");
  }
  return mhz;
}

ClockLock::ClockLock(const std::string& pci_bus_id, const std::string& asked) {
  nvml::Opened opened = nvml::open(pci_bus_id);
  if (!opened.session) refuse(ErrorCode::unsupported, asked, opened.reason);
  const nvml::Functions& f = opened.session->f;
  if (f.lock_clocks == nullptr || f.reset_clocks == nullptr)
    refuse(ErrorCode::unsupported, asked, "the driver is too old to lock clocks, expected 410");
  const nvml::Number mhz = wanted(*opened.session, asked);
  const int error = f.lock_clocks(opened.session->device, mhz, mhz);
  if (error != nvml::kSuccess) {
    const std::string way = error == nvml::kNoPermission
                                ? "; expected a user who may: run wbench as root, or without this "
                                  "option after `sudo nvidia-smi -i " +
                                      pci_bus_id + " --lock-gpu-clocks=MHZ`"
                                : "";
    refuse(
        ErrorCode::unsupported, asked,
        "the driver of device " + pci_bus_id + " answers \"" + f.error_string(error) + "\"" + way);
  }
  session_ = std::move(opened.session);
  locked_.asked = asked;
  if (mhz != nvml::kLimitTdp) locked_.sm_mhz = mhz;
}

ClockLock::~ClockLock() {
  (void)session_->f.reset_clocks(session_->device);
}

}  // namespace wide::bench
