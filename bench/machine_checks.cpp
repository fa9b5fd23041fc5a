// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/machine_checks.hpp"

#include <fmt/format.h>

namespace wide::bench {

std::vector<EnvironmentCheck> machine_checks(const RunResult& result) {
  std::vector<EnvironmentCheck> checks;
  const auto warn = [&](const char* code, const std::string& text) {
    checks.push_back({code, "warn", text});
  };
  const std::string& governor = result.host_state.governor;
  for (const RunDevice& d : result.devices) {
    const std::string name = to_string(d.device);
    if (d.device.type == DeviceType::cpu && !governor.empty() && governor != "performance") {
      warn("E_GOVERNOR",
           fmt::format("the CPU's governor is {}, not performance: its clock, and times with it, "
                       "follow the load",
                       governor));
    }
    const int64_t others = d.state.other_processes.value_or(0);
    if (others > 0) {
      warn("E_OTHER_PROCESSES",
           fmt::format("{} other process{} on {}: what {} of it is missing here", others,
                       others == 1 ? "" : "es", name, others == 1 ? "it takes" : "they take"));
    }
    if (d.state.mig.value_or(false)) {
      warn("E_MIG", fmt::format("{} is divided (MIG): this run has a part of it, and clocks, power "
                                "and energy are the whole's",
                                name));
    }
  }
  return checks;
}

}  // namespace wide::bench
