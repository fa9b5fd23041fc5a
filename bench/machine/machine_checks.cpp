// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/machine/machine_checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "bench/machine/calibrate.hpp"
#include "bench/report/report.hpp"
#include "host/core/text.hpp"

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
      warn("E_OTHER_PROCESSES", fmt::format("{} on {}: what {} of it is missing here",
                                            counted(others, "other process", "other processes"),
                                            name, others == 1 ? "it takes" : "they take"));
    }
    if (d.state.mig.value_or(false)) {
      warn("E_MIG", fmt::format("{} is divided (MIG): this run has a part of it, and clocks, power "
                                "and energy are the whole's",
                                name));
    }
  }
  return checks;
}

std::optional<EnvironmentCheck> ceilings_check(const Calibration& before,
                                               const Calibration& after) {
  std::string moved;
  const auto compare = [&](double was, double is, const char* unit, const std::string& of) {
    if (was <= 0 || is <= 0) return;  // unmeasured ceilings have not moved
    if (std::max(was / is, is / was) <= 1 + kCeilingsMovedPct / 100) return;
    moved += fmt::format("{}{} before, {} after", moved.empty() ? "" : "; ",
                         format_rate(was, unit) + of, format_rate(is, unit));
  };
  compare(before.mem_bw_bytes_per_s, after.mem_bw_bytes_per_s, "B/s", "");
  std::vector<std::pair<double, double>> said;  // on the CPU one rate applies to all dtypes
  for (const auto& [dtype, was] : before.flops_per_s) {
    for (const auto& [name, is] : after.flops_per_s) {
      if (name != dtype || std::find(said.begin(), said.end(), std::pair(was, is)) != said.end())
        continue;
      said.emplace_back(was, is);
      compare(was, is, "FLOP/s", " " + dtype);
    }
  }
  if (moved.empty()) return std::nullopt;
  return EnvironmentCheck{
      "E_CEILINGS_MOVED", "warn",
      fmt::format("ceilings moved by more than {:g}% while cases ran: {}; \"of floor\" is of those "
                  "before, and as far off: another load, or the clock",
                  kCeilingsMovedPct, moved)};
}

std::optional<EnvironmentCheck> missing_ceilings_check(const Calibration& c,
                                                       int compute_capability) {
  std::vector<std::string> missing;
  if (c.mem_bw_bytes_per_s <= 0) missing.emplace_back("memory");
  const std::pair<std::string_view, int> products[] = {
      {"fp32", 0}, {kTf32, 80}, {"fp16", 0}, {"bf16", 80}, {"fp8_e4m3", 89}};
  for (const auto& [name, since] : products) {
    const auto is_it = [&](const auto& rate) { return rate.first == name; };
    if (compute_capability >= since &&
        std::none_of(c.flops_per_s.begin(), c.flops_per_s.end(), is_it))
      missing.emplace_back(name);
  }
  if (c.empty_launch_ns <= 0) missing.emplace_back("launches");
  if (c.timer_floor_ns <= 0)
    missing.emplace_back("the timer's floor, so that no time is too short");
  if (missing.empty()) return std::nullopt;
  return EnvironmentCheck{"E_NO_CEILING", "warn",
                          fmt::format("could not be measured, and are not part of any floor: {}",
                                      fmt::join(missing, ", "))};
}

std::optional<EnvironmentCheck> floors_check(const RunResult& result) {
  int64_t above = 0, all = 0;
  double highest = 0;
  for (const CaseResult& c : result.cases) {
    for (const auto* runners : {&c.strategies, &c.baselines}) {
      for (const RunnerResult& r : *runners) {
        for (const Measurement& m : r.measurements) {
          if (m.regime == Regime::stream || m.regime == Regime::graph) continue;
          const double pct = m.pct_of_floor.value_or(0);
          all += m.pct_of_floor ? 1 : 0;
          above += pct > kAboveFloor_pct ? 1 : 0;
          highest = std::max(highest, pct);
        }
      }
    }
  }
  if (above == 0) return std::nullopt;
  return EnvironmentCheck{
      "E_ABOVE_FLOOR", "warn",
      fmt::format("{} of {} above {:g}% of floor, {:.0f}% at most: a cache served them, or others "
                  "used this machine whenever its ceilings were measured",
                  above, counted(all, "time"), kAboveFloor_pct, highest)};
}

std::string budget_text(double budget_s, double taken_s) {
  constexpr double kInTime = 1.01;  // runs that exceed their budget by less have kept it
  if (taken_s <= kInTime * budget_s) return "";
  return fmt::format(
      "--budget {:g} s was exceeded by {}: every case is still checked and measured for its first "
      "rounds",
      budget_s, format_time((taken_s - budget_s) * 1e9));
}

std::optional<EnvironmentCheck> budget_check(const RunResult& result) {
  if (!result.config.budget_s) return std::nullopt;
  std::string text = budget_text(*result.config.budget_s, result.duration_s);
  if (text.empty()) return std::nullopt;
  return EnvironmentCheck{"E_BUDGET", "warn", std::move(text)};
}

}  // namespace wide::bench
