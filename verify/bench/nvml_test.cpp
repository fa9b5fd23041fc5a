// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Clocks: NVML by a library that says what a script has, when a device is warm, which samples it
// was throttled in, what a run makes of it, and energy.
#include "bench/nvml/nvml.hpp"

#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "bench/nvml/energy.hpp"
#include "bench/nvml/throttle.hpp"
#include "bench/timer/seconds.hpp"
#include "verify/bench/hand_made_monitor.hpp"
#include "verify/bench/runner_case.hpp"
#include "verify/support/folder.hpp"

namespace wide::bench {
namespace {

using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
using Policy = ThrottleRule::Policy;

constexpr const char* kBus = "0000:3b:00.0";

/// A monitor by the fake library, which says `script`.
NvmlMonitor scripted(const std::string& script, const char* bus = kBus) {
  std::ofstream("script.txt") << script;
  setenv("WIDE_NVML", WIDE_FAKE_NVML_LIBRARY, 1);
  setenv("WIDE_FAKE_NVML", "script.txt", 1);
  return open_nvml(bus);
}

TEST_CASE("NVML's clocks, power, temperature, reasons and energy in our units") {
  const test::TemporaryFolder folder;
  const NvmlMonitor nvml = scripted("1980 412500 61 36 7000\n345 70000 33 0 8500\n");
  REQUIRE(nvml.monitor != nullptr);
  const Reading first = nvml.monitor->read_all();
  CHECK(first.sm_mhz == 1980);
  CHECK(*first.power_w == Approx(412.5));
  CHECK(first.temp_c == 61);
  CHECK(names_of_reasons(first.reasons) == std::vector<std::string>{"sw_power_cap", "sw_thermal"});
  CHECK(*nvml.monitor->total_energy_j() == Approx(7));
  CHECK(nvml.monitor->read_clock().sm_mhz == 345);
  CHECK(names_of_reasons(nvml.monitor->read_clock().reasons).empty());
  CHECK(*nvml.monitor->total_energy_j() == Approx(8.5));
}

TEST_CASE(
    "power is that of the moment where NVML has it, and else may be of others, which is said") {
  const test::TemporaryFolder folder;
  const NvmlMonitor nvml = scripted("1980 412500 61 0 7000\n");
  setenv("WIDE_FAKE_NVML_INSTANT", "650250", 1);
  const Reading instant = nvml.monitor->read_all();
  unsetenv("WIDE_FAKE_NVML_INSTANT");
  const Reading mean = nvml.monitor->read_all();
  CHECK(*instant.power_w == Approx(650.25));
  CHECK_FALSE(instant.is_power_mean);
  CHECK(*mean.power_w == Approx(412.5));
  CHECK(mean.is_power_mean);
  const auto warnings_of = [](const Reading& reading) {
    ClockRecord record;
    record.add_block(reading);
    Measurement m;
    m.samples_sm_mhz = {1980};
    CHECK(record.finish({}, m).empty());
    CHECK(m.clocks->power_w == reading.power_w);
    return m.warnings;
  };
  CHECK(warnings_of(instant).empty());
  REQUIRE(warnings_of(mean).size() == 1);
  CHECK_THAT(warnings_of(mean)[0], ContainsSubstring("mean of a second"));
}

TEST_CASE("what NVML does not say is unknown, and why there is none is said") {
  const test::TemporaryFolder folder;
  const NvmlMonitor nvml = scripted("0 1 1 0 0\n");
  CHECK_FALSE(nvml.monitor->read_clock().sm_mhz);
  CHECK_FALSE(nvml.monitor->total_energy_j());
  const NvmlMonitor other = scripted("1 1 1 1 1\n", "0000:99:00.0");
  CHECK(other.monitor == nullptr);
  CHECK(other.reason == "device 0000:99:00.0: Not Found");
  CHECK(scripted("").reason == "nvmlInit: Not Found");
  setenv("WIDE_NVML", "libno-such-nvml.so", 1);
  CHECK_THAT(open_nvml(kBus).reason, ContainsSubstring("libno-such-nvml.so"));
  setenv("WIDE_NVML", "libm.so.6", 1);
  CHECK_THAT(open_nvml(kBus).reason, ContainsSubstring("libm.so.6 has no nvmlInit_v2"));
  unsetenv("WIDE_NVML");
}

/// Readings every 10 ms.
ClockStability after(const std::vector<double>& mhz) {
  ClockStability clocks(1);
  for (size_t i = 0; i < mhz.size(); ++i) clocks.add(0.01 * static_cast<double>(i), mhz[i]);
  return clocks;
}

TEST_CASE("clocks are stable when three windows of 50 ms agree") {
  CHECK_FALSE(after(std::vector<double>(15, 1980)).is_stable());  // the third has not ended
  CHECK(after(std::vector<double>(20, 1980)).stable_mhz() == 1980);
  std::vector<double> ramp;
  for (int i = 0; i < 40; ++i) ramp.push_back(345 + 30 * i);
  CHECK_FALSE(after(ramp).is_stable());
  ramp.insert(ramp.end(), 25, 1500);
  CHECK(after(ramp).stable_mhz() == 1500);
  std::vector<double> noisy(20, 1000);
  for (size_t i = 0; i < 5; ++i) noisy[i] = 1009;
  CHECK(after(noisy).is_stable());  // within 1 %
  for (size_t i = 0; i < 5; ++i) noisy[i] = 1012;
  CHECK_FALSE(after(noisy).is_stable());
  // Of long samples a window has three readings, however long they take.
  ClockStability slow(1);
  for (int i = 0; i < 9; ++i) slow.add(0.03 * i, 1500);
  CHECK_FALSE(slow.is_stable());
  slow.add(0.27, 1500);
  CHECK(slow.stable_mhz() == 1500);
}

TEST_CASE(
    "a sample is throttled by its clock against the stable one, or by what no load explains") {
  const ThrottleRule rule{Policy::discard, 75, 1600};
  CHECK_FALSE(is_throttled(rule, clock_of(1201)));
  CHECK(is_throttled(rule, clock_of(1199)));
  CHECK_FALSE(is_throttled(rule, clock_of(1600, kSwPowerCap)));
  CHECK(is_throttled(rule, clock_of(1600, kHwThermal)));
  CHECK(is_throttled(rule, clock_of(1600, kHwSlowdown)));
  CHECK_FALSE(is_throttled(rule, Reading{}));
  // Never seen stable: still ramping, and no sample is judged by its clock.
  CHECK_FALSE(is_throttled({Policy::discard, 75, std::nullopt}, clock_of(345)));
}

/// A run on the CPU, with a device's clocks.
RunnerResult run_watched(HandMadeMonitor& monitor, const RunConfig& config) {
  FakePrimitive fake = fake_with({{"good"}});
  const catalog::PrimitiveSpec spec = fake.spec();
  RunPlan plan = fake_plan(spec, config);
  plan.baselines.clear();
  plan.monitor = &monitor;
  RunResult result;
  run_plan(plan, result);
  return strategy(result.cases.at(0), "good");
}

TEST_CASE("each sample has its clock, and throttled ones are discarded and counted") {
  HandMadeMonitor monitor;
  monitor.readings.assign(40, clock_of(1980, kSwPowerCap));
  for (const size_t i : {5u, 9u}) monitor.readings[i] = clock_of(900, kHwThermal);
  const RunnerResult r = run_watched(monitor, short_config());
  CHECK(r.status == Status::ok);
  const Measurement& m = r.measurements.at(0);
  CHECK((m.discarded_throttle == 2 && m.kept_throttle == 0));
  CHECK(m.samples_sm_mhz == std::vector<double>(m.samples_ns.size(), 1980));
  // The order has gaps where samples were discarded.
  CHECK(m.samples_order.back() == static_cast<int64_t>(m.samples_ns.size()) + 1);
  CHECK((m.samples_order[4] == 4 && m.samples_order[5] == 6 && m.samples_order[8] == 10));
  for (const int64_t flags : m.samples_flags) CHECK((flags & kThrottledSample) == 0);
  REQUIRE(m.clocks);
  CHECK(m.clocks->sm_mhz_median == 1980);
  CHECK(m.clocks->throttle_reasons == std::vector<std::string>{"sw_power_cap", "hw_thermal"});
  CHECK(m.clocks->temp_c == 60);
  REQUIRE(m.warnings.size() == 1);
  CHECK_THAT(m.warnings[0], ContainsSubstring("throttled: 2 of"));
}

TEST_CASE("a device that is throttled all the time is no measurement, and ends") {
  HandMadeMonitor monitor;
  monitor.readings = {clock_of(1980, kHwThermal)};
  RunConfig config = short_config();
  const RunnerResult none = run_watched(monitor, config);
  CHECK(none.status == Status::failed);
  CHECK_THAT(none.reason, ContainsSubstring("samples discarded"));
  config.throttle = "warn";
  const RunnerResult warned = run_watched(monitor, config);
  CHECK(warned.status == Status::ok);
  CHECK(warned.measurements.at(0).discarded_throttle == 0);
  CHECK(warned.measurements.at(0).kept_throttle > 0);
  for (const int64_t flags : warned.measurements.at(0).samples_flags)
    CHECK((flags & kThrottledSample) != 0);
  CHECK(warned.measurements.at(0).warnings.size() == 1);
  config.throttle = "fail";
  CHECK(run_watched(monitor, config).status == Status::failed);
  config.throttle = "off";
  CHECK(run_watched(monitor, config).measurements.at(0).warnings.empty());
}

TEST_CASE("one clock that is unknown leaves out the column") {
  HandMadeMonitor monitor;
  monitor.readings.assign(8, clock_of(1980));
  monitor.readings[4].sm_mhz.reset();
  const RunnerResult r = run_watched(monitor, short_config());
  CHECK(r.measurements.at(0).samples_sm_mhz.empty());
  CHECK_FALSE(r.measurements.at(0).clocks);
}

TEST_CASE("warming up waits for clocks, and then judges by them") {
  HandMadeMonitor monitor;
  for (int i = 0; i < 100; ++i) monitor.readings.push_back(clock_of(300 + 12 * i));
  monitor.readings.push_back(clock_of(1500));
  RunConfig config = short_config();
  config.warmup_s = 1e-3;
  const auto start = Clock::now();
  const RunnerResult r = run_watched(monitor, config);
  CHECK(seconds_since(start) > 0.15);  // three windows of 50 ms
  CHECK(monitor.next > 100);
  CHECK(r.measurements.at(0).warmup_s > 0.15);
  CHECK(r.measurements.at(0).discarded_throttle == 0);
  CHECK(r.measurements.at(0).clocks->sm_mhz_min == 1500);
  CHECK(r.measurements.at(0).clocks->sm_mhz_stable == 1500);
}

TEST_CASE(
    "a case of little time waits until clocks can be seen stable, or sees it in its samples") {
  const auto is_unsettled = [](const RunnerResult& r) {
    const std::vector<std::string> doubts = r.measurements.at(0).stats.doubts.value();
    return std::find(doubts.begin(), doubts.end(), "unsettled_clock") != doubts.end();
  };
  RunConfig config = short_config();
  config.warmup_s = 1e-3;
  config.timeout_s = 0.8;  // a fifth of it is less than three windows and what ends them
  HandMadeMonitor steady;
  steady.readings = {clock_of(1500)};
  const RunnerResult seen = run_watched(steady, config);
  CHECK(seen.measurements.at(0).clocks->sm_mhz_stable == 1500);
  CHECK_FALSE(is_unsettled(seen));
  struct Falling final : HandMadeMonitor {
    Reading read_clock() override { return clock_of(mhz *= 0.99); }
    double mhz = 2000;
    Clock::time_point start = Clock::now();
  } falling;
  const RunnerResult never = run_watched(falling, config);
  CHECK(seconds_since(falling.start) > 0.3);
  CHECK_FALSE(never.measurements.at(0).clocks->sm_mhz_stable);
  CHECK(is_unsettled(never));
  // Of hardly any time half is left to the samples, whose own clocks then show it.
  config.timeout_s = 0.1;
  HandMadeMonitor unseen;
  unseen.readings = {clock_of(1500)};
  const RunnerResult shown = run_watched(unseen, config);
  CHECK_FALSE(shown.measurements.at(0).clocks->sm_mhz_stable);
  CHECK_FALSE(is_unsettled(shown));
  Falling droops;
  CHECK(is_unsettled(run_watched(droops, config)));
  config.clock_tol_pct = 60;  // a hundredth a sample, and a dozen samples
  const RunnerResult allowed = run_watched(droops, config);
  CHECK_FALSE(allowed.measurements.at(0).clocks->sm_mhz_stable);
  CHECK_FALSE(is_unsettled(allowed));
}

TEST_CASE("idle power is read after a rest") {
  struct Watched final : HandMadeMonitor {
    Reading read_all() override {
      read = std::chrono::steady_clock::now();
      return clock_of(345);
    }
    std::chrono::steady_clock::time_point read;
  } monitor;
  const auto start = std::chrono::steady_clock::now();
  CHECK(idle_power_w(monitor, 0.05) == 300);
  CHECK(std::chrono::duration<double>(monitor.read - start).count() >= 0.05);
}

/// 100 W by a counter that moves every 20 ms.
struct SteppedMonitor : HandMadeMonitor {
  std::optional<double> total_energy_j() override {
    return 2 * std::floor(seconds_since(start) / 0.02);
  }
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

TEST_CASE("energy is counted from a step of the counter to another") {
  SteppedMonitor monitor;
  // Of 50 ms two or three steps would be 80 or 120 W.
  const Energy energy = measure_energy(
      &monitor, std::nullopt,
      [] {
        spin_us(200)();
        return int64_t{1};
      },
      0.05);
  CHECK(*energy.avg_w == Approx(100).epsilon(0.1));
}

TEST_CASE("energy by the counter, by power, and not at all") {
  HandMadeMonitor monitor;
  monitor.readings = {clock_of(1980)};
  int64_t made = 0;
  const auto calls = [&] {
    spin_us(500)();
    made += 10;
    return int64_t{10};
  };
  const Energy counted = measure_energy(&monitor, 70.0, calls, 0.01);
  CHECK(counted.method == "nvml_total_energy");
  CHECK(*counted.joules == Approx(10));  // read twice after the first step
  CHECK(*counted.joules_per_call == Approx(10.0 / static_cast<double>(made - 10)));
  CHECK(counted.window_s >= 0.01);
  CHECK(*counted.avg_w == Approx(10 / counted.window_s));
  CHECK((counted.idle_w == 70 && counted.invalid_reason.empty()));
  monitor.counts = false;
  const Energy integral = measure_energy(&monitor, std::nullopt, calls, 0.01);
  CHECK(integral.method == "nvml_power_integral");
  CHECK(*integral.avg_w == Approx(300));
  monitor.readings = {Reading{}};
  CHECK(measure_energy(&monitor, std::nullopt, calls, 0.01).invalid_reason ==
        "the device stopped saying");
  CHECK_FALSE(measure_energy(nullptr, std::nullopt, calls, 0.01).invalid_reason.empty());
}

}  // namespace
}  // namespace wide::bench
