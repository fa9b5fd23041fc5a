// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "bench/self_check/check.hpp"
#include "bench/statistics/order.hpp"
#include "bench/statistics/statistics.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

constexpr DeviceType kCpu = DeviceType::cpu, kCuda = DeviceType::cuda;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// "a few us" of a launch are wide ranges on purpose: a number outside is a fault, not a slow host.
constexpr Limit kLimits[] = {
    {"clock_monotonic", kCpu, 0, 0, "steps back", "a clock that is set back makes times negative"},
    {"clock_quantum", kCpu, 1, 1000, "ns", "a sample lasts 100 us: 1 % of it"},
    {"clock_floor", kCpu, 1, 1000, "ns", "reading the clock is part of every sample"},
    {"empty_launch", kCpu, 1, 100e3, "ns", "what a loop over all threads costs, part of a floor"},
    {"aa", kCpu, 0, 1, "told apart", "baselines that a verdict tells apart from themselves"},
    {"l2_size", kCuda, 1, 1024, "MiB", "what a flush reads is a multiple of it"},
    {"memory_ceiling", kCuda, 70, 102, "% of peak", "copies or reads, against the memory's clock"},
    {"product_ceiling", kCuda, 40, 102, "% of peak",
     "a product in bf16, against the highest clock"},
    {"event_quantum", kCuda, 1, 1000, "ns", "the step of the device's clock; documented as 500 ns"},
    {"event_floor", kCuda, 1, 2000, "ns",
     "an empty pair of events on a held stream; a cold call below five of them is refused"},
    {"empty_kernel", kCuda, 50, 20e3, "ns", "what the device needs for a launch in a graph"},
    {"host_launch", kCuda, 50, 100e3, "ns", "what the host needs for a launch"},
    {"graph_launch", kCuda, 50, 200e3, "ns", "a graph of one empty kernel, from event to event"},
    {"graph_growth", kCuda, 0.8, 1.2, "x", "a graph of eight times the launches: time / 8"},
    {"graph_replay", kCuda, 0, 1, "% apart", "a replay alone, and what a second one adds to it"},
    {"event_clock", kCuda, 0, 1, "% apart", "events against the host's clock, over 100 ms"},
    {"blocker_holds", kCuda, 0, 0, "early ends", "a blocked stream ends when it is released"},
    {"blocker_times_out", kCuda, 1, 1, "noticed", "an unreleased blocker times out and reports it"},
    {"cold_flush", kCuda, 1.5, 100, "x warm", "loads that wait for each other, after a flush"},
    {"cold_dirty", kCuda, 0.9, 3, "x flushed", "a read of the L2's size when it has all to write"},
    {"cold_rotate", kCuda, 1.5, 100, "x warm", "the same in a graph that rotates over copies"},
    {"nvml_clock", kCuda, 100, 10e3, "MHz", "the clock of the multiprocessors under load"},
    {"nvml_power", kCuda, 1, 5000, "W", "the device's power under load"},
    {"energy_period", kCuda, 0.01, 200, "ms",
     "between steps of the counter of energy; windows are 1 s"},
    {"clocks_settle", kCuda, 0, 3, "s", "until the clock keeps within 1 % under load"},
    {"aa", kCuda, 0, 1, "told apart", "baselines that a verdict tells apart from themselves"},
};

std::string range_text(const Limit& limit) {
  return limit.least == limit.most
             ? fmt::format("{:g} {}", limit.least, limit.unit)
             : fmt::format("{:g} to {:g} {}", limit.least, limit.most, limit.unit);
}

SelfCheck check_of(const Limit& limit, const std::string& device, CheckStatus status,
                   std::string_view text) {
  return {std::string(limit.name), device,           status, std::nullopt, std::string(limit.unit),
          range_text(limit),       std::string(text)};
}

}  // namespace

std::string_view to_string(CheckStatus status) {
  return status == CheckStatus::passed   ? "passed"
         : status == CheckStatus::failed ? "failed"
                                         : "skipped";
}

std::span<const Limit> limits() {
  return kLimits;
}

const Limit& limit_of(std::string_view name, DeviceType device) {
  for (const Limit& limit : kLimits) {
    if (limit.name == name && limit.device == device) return limit;
  }
  throw Error(ErrorCode::invalid_argument, "self-check: no limits of " + std::string(name));
}

SelfCheck judge(const Limit& limit, const std::string& device, double measured) {
  const bool is_right = measured >= limit.least && measured <= limit.most;
  SelfCheck check =
      check_of(limit, device, is_right ? CheckStatus::passed : CheckStatus::failed, limit.why);
  if (std::isfinite(measured)) check.measured = measured;
  return check;
}

SelfCheck skipped(const Limit& limit, const std::string& device, const std::string& reason) {
  return check_of(limit, device, CheckStatus::skipped, reason);
}

SelfCheck broken(const Limit& limit, const std::string& device, const std::string& reason) {
  return check_of(limit, device, CheckStatus::failed, reason);
}

double disagreement_pct(double one_ns, double other_ns) {
  return 100 * std::fabs(one_ns / other_ns - 1);
}

double growth(double few_ns, int64_t few, double many_ns, int64_t many) {
  return many_ns / few_ns * static_cast<double>(few) / static_cast<double>(many);
}

double backward_steps(std::span<const double> readings) {
  int64_t steps = 0;
  for (size_t i = 1; i < readings.size(); ++i) steps += readings[i] < readings[i - 1] ? 1 : 0;
  return static_cast<double>(steps);
}

double period_of(std::span<const double> times, std::span<const double> readings) {
  std::vector<double> changes;
  for (size_t i = 1; i < readings.size(); ++i) {
    if (readings[i] != readings[i - 1]) changes.push_back(times[i]);
  }
  if (changes.size() < 3) return kNan;
  std::vector<double> periods;
  for (size_t i = 1; i < changes.size(); ++i) periods.push_back(changes[i] - changes[i - 1]);
  return median(periods);
}

AaCells aa_cells(std::span<const CaseResult> cases) {
  AaCells aa;
  for (const CaseResult& c : cases) {
    for (const NoiseFloor& floor : c.noise_floors) {
      if (floor.pairs < kMinPairs) continue;  // no verdict, so none that is wrong
      const std::string_view verdict =
          verdict_of({floor.ratio, {floor.ci_lo, floor.ci_hi}, floor.pairs});
      ++aa.cells;
      aa.told_apart += verdict == "faster" || verdict == "slower" ? 1 : 0;
    }
  }
  return aa;
}

SelfCheck judge_aa(const Limit& limit, const std::string& device, const AaCells& aa) {
  if (aa.cells == 0) return broken(limit, device, "no baseline could be compared with itself");
  Limit of_all = limit;
  of_all.most = std::ceil(0.05 * static_cast<double>(aa.cells));
  SelfCheck check = judge(of_all, device, static_cast<double>(aa.told_apart));
  check.expected += fmt::format(", of {}", aa.cells);
  return check;
}

}  // namespace wide::bench
