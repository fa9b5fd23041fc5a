// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/machine/host_load.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>

namespace wide::bench {

namespace {

double used_s(int whose) {
  rusage usage{};
  getrusage(whose, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

std::optional<HostLoad> host_load(const std::filesystem::path& root) {
  // "cpu user nice system idle iowait irq softirq steal ..", of all cores, in ticks.
  std::ifstream file(root / "proc/stat");
  std::string name;
  double ticks[8] = {};
  file >> name;
  for (double& of_kind : ticks) file >> of_kind;
  if (!file || name != "cpu") return std::nullopt;
  const double tick_s = 1 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto& [user, nice, system, idle, iowait, irq, softirq, steal] = ticks;
  const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
  return HostLoad{now.count(), (user + nice + system + irq + softirq) * tick_s, steal * tick_s,
                  used_s(RUSAGE_SELF) + used_s(RUSAGE_CHILDREN)};
}

std::vector<EnvironmentCheck> load_checks(const HostLoad& before, const HostLoad& after) {
  std::vector<EnvironmentCheck> checks;
  const double wall_s = after.at_s - before.at_s;
  const auto judge = [&](const char* code, double taken_s, const char* text) {
    const double pct = 100 * taken_s / wall_s;
    if (!(taken_s > kLeastLoad_s && pct > kLoaded_pct)) return;
    checks.push_back({code, "warn", fmt::format(fmt::runtime(text), pct)});
  };
  const double own_s = after.own_s - before.own_s;
  judge("E_LOAD", after.busy_s - before.busy_s - own_s,
        "others used {:.0f}% of a core while cases ran: what they take of cores, caches and memory "
        "is missing here");
  judge(
      "E_STEAL", after.stolen_s - before.stolen_s,
      "the hypervisor gave {:.0f}% of a core to others while cases ran (steal): times have holes");
  return checks;
}

}  // namespace wide::bench
