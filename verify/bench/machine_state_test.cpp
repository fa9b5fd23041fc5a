// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a GPU's driver says of its state, by a library that plays the driver; and what of it, and of
// a host's, costs belief.
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "bench/machine/calibrate.hpp"
#include "bench/machine/machine_checks.hpp"
#include "bench/nvml/device_state.hpp"
#include "verify/support/folder.hpp"

namespace wide::bench {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr const char* kBus = "0000:3b:00.0";

class FakeDriver {
 public:
  FakeDriver() {
    std::ofstream("script.txt") << "1980 70000 33 0 0\n";
    setenv("WIDE_NVML", WIDE_FAKE_NVML_LIBRARY, 1);
    setenv("WIDE_FAKE_NVML", "script.txt", 1);
  }
  ~FakeDriver() {
    for (const char* name :
         {"WIDE_NVML", "WIDE_FAKE_NVML", "WIDE_FAKE_NVML_STATE", "WIDE_FAKE_NVML_PIDS"})
      unsetenv(name);
  }
  FakeDriver(const FakeDriver&) = delete;

 private:
  test::TemporaryFolder folder_;
};

std::string own_pid() {
  return std::to_string(::getpid());
}

std::vector<std::string> codes_of(const RunResult& result) {
  std::vector<std::string> codes;
  for (const EnvironmentCheck& check : machine_checks(result)) {
    CHECK(check.severity == "warn");
    codes.push_back(check.code);
  }
  return codes;
}

RunResult result_on(DeviceType type) {
  RunResult result;
  result.devices.emplace_back();
  result.devices[0].device = {type, 0};
  return result;
}

using Codes = std::vector<std::string>;

TEST_CASE("a device's state is what its driver says") {
  const FakeDriver driver;
  setenv("WIDE_FAKE_NVML_PIDS", ("1 " + own_pid() + " 2").c_str(), 1);
  const DeviceState expected{false,  true,   true,   "exclusive_process", 700.0, 2,
                             1755.0, 1980.0, 3201.0, "580.95.05"};
  CHECK(device_state(kBus) == expected);
}

TEST_CASE("what a driver does not say is not known") {
  CHECK(device_state("ffff:00:00.0") == DeviceState());  // no driver knows it
  const FakeDriver driver;
  CHECK(device_state("0000:3c:00.0") == DeviceState());
  setenv("WIDE_FAKE_NVML_STATE", "3", 1);
  DeviceState clock_alone;
  clock_alone.driver = "580.95.05";
  clock_alone.sm_max_mhz = 1980;  // is no matter of how the device is set up
  CHECK(device_state(kBus) == clock_alone);
}

TEST_CASE("other processes are counted, however many there are") {
  const FakeDriver driver;
  CHECK(device_state(kBus).other_processes == 0);
  std::string many = own_pid();
  for (int pid = 1; pid <= 200; ++pid) many += " " + std::to_string(10'000'000 + pid);
  setenv("WIDE_FAKE_NVML_PIDS", many.c_str(), 1);
  CHECK(device_state(kBus).other_processes == 200);
}

TEST_CASE("one process is ours, by its number or by another") {
  const auto count = [](const std::vector<unsigned>& pids) { return count_others(pids, 7); };
  CHECK(count({}) == 0);
  CHECK(count({7}) == 0);
  CHECK(count({7, 8, 9}) == 2);
  CHECK(count({41}) == 0);
  CHECK(count({41, 42}) == 1);
}

TEST_CASE("a CPU's governor counts where the CPU is measured") {
  RunResult cpu = result_on(DeviceType::cpu), gpu = result_on(DeviceType::cuda);
  CHECK(codes_of(cpu).empty());
  cpu.host_state.governor = gpu.host_state.governor = "powersave";
  CHECK(codes_of(cpu) == Codes{"E_GOVERNOR"});
  CHECK_THAT(machine_checks(cpu)[0].text, ContainsSubstring("governor is powersave"));
  CHECK(codes_of(gpu).empty());
  cpu.host_state.governor = "performance";
  CHECK(codes_of(cpu).empty());
}

TEST_CASE("a GPU that others use, or a part of one, costs belief") {
  RunResult gpu = result_on(DeviceType::cuda);
  CHECK(codes_of(gpu).empty());
  gpu.devices[0].state.other_processes = 0;
  gpu.devices[0].state.mig = false;
  CHECK(codes_of(gpu).empty());
  gpu.devices[0].state.other_processes = 1;
  CHECK(codes_of(gpu) == Codes{"E_OTHER_PROCESSES"});
  CHECK_THAT(machine_checks(gpu)[0].text, ContainsSubstring("1 other process on cuda:0"));
  gpu.devices[0].state.mig = true;
  CHECK(codes_of(gpu) == Codes{"E_OTHER_PROCESSES", "E_MIG"});
}

TEST_CASE("ceilings that moved are said with both numbers") {
  const Calibration before{100e9, {{"fp32", 2e12}, {"bf16", 2e12}}, 100, 1, 20};
  CHECK_FALSE(ceilings_check(before, before));
  Calibration after = before;
  after.mem_bw_bytes_per_s = 88e9;  // 100 / 88 is 1.136
  CHECK_FALSE(ceilings_check(before, after));
  after.mem_bw_bytes_per_s = 86e9;  // 1.163
  const auto slower = ceilings_check(before, after);
  REQUIRE(slower);
  CHECK(slower->code == "E_CEILINGS_MOVED");
  CHECK(slower->severity == "warn");
  CHECK_THAT(slower->text, ContainsSubstring("15%") &&
                               ContainsSubstring("100 GB/s before, 86.0 GB/s after; \"of floor\""));
  CHECK(ceilings_check(after, before));  // faster is as far off
  after = before;
  after.flops_per_s = {{"fp32", 1e12}, {"bf16", 1e12}};
  CHECK_THAT(ceilings_check(before, after)->text,
             ContainsSubstring(": 2.00 TFLOP/s fp32 before, 1.00 TFLOP/s after; \"of"));
  after.flops_per_s = {{"bf16", 1e12}};
  CHECK_THAT(ceilings_check(before, after)->text,
             ContainsSubstring(": 2.00 TFLOP/s bf16 before, 1.00 TFLOP/s after; \"of"));
}

TEST_CASE("ceilings that could not be measured are named") {
  Calibration c{
      3e12, {{"fp32", 5e13}, {kTf32, 4e14}, {"fp16", 7e14}, {"bf16", 7e14}}, 900, 32, 700};
  CHECK_FALSE(missing_ceilings_check(c, 80));
  CHECK_THAT(missing_ceilings_check(c, 90)->text, ContainsSubstring("of any floor: fp8_e4m3"));
  c.mem_bw_bytes_per_s = c.timer_floor_ns = 0;
  c.flops_per_s = {{"fp32", 5e13}, {"fp16", 7e14}};
  const auto check = missing_ceilings_check(c, 75);
  REQUIRE(check);
  CHECK((check->code == "E_NO_CEILING" && check->severity == "warn"));
  CHECK_THAT(check->text, ContainsSubstring("of any floor: memory, the timer's floor"));
  CHECK_THAT(missing_ceilings_check(c, 80)->text, ContainsSubstring(": memory, tf32, bf16, the"));
  c = {3e12, {{"fp32", 5e13}, {"fp16", 7e14}}, 0, 32, 700};
  CHECK_THAT(missing_ceilings_check(c, 75)->text, ContainsSubstring("of any floor: launches"));
}

TEST_CASE("times far above their floor are counted, with the highest") {
  RunResult result;
  CHECK_FALSE(floors_check(result));
  RunnerResult runner;
  runner.measurements.resize(1);
  runner.measurements[0].regime = Regime::cpu;
  CaseResult& c = result.cases.emplace_back();
  c.strategies = c.baselines = {runner, runner};
  CHECK_FALSE(floors_check(result));  // none is known
  c.strategies[0].measurements[0].pct_of_floor = 150;
  CHECK_FALSE(floors_check(result));
  c.strategies[0].measurements[0].pct_of_floor = 151;
  c.baselines[0].measurements[0].pct_of_floor = 80;  // and of the fourth none is known
  c.baselines[1].measurements[0].pct_of_floor = 585.2;
  const auto check = floors_check(result);
  REQUIRE(check);
  CHECK((check->code == "E_ABOVE_FLOOR" && check->severity == "warn"));
  for (const Regime regime : {Regime::stream, Regime::graph, Regime::cold}) {
    RunResult other = result;
    for (auto* runners : {&other.cases[0].strategies, &other.cases[0].baselines}) {
      for (RunnerResult& r : *runners) r.measurements[0].regime = regime;
    }
    CHECK(floors_check(other).has_value() == (regime == Regime::cold));
  }
  CHECK_THAT(check->text, ContainsSubstring("2 of 3 times above 150% of floor, 585% at most: "));
}

TEST_CASE("a budget that was exceeded is said with both times") {
  RunResult result;
  result.duration_s = 3.5;
  CHECK_FALSE(budget_check(result));  // there is none
  result.config.budget_s = 3.5;
  CHECK_FALSE(budget_check(result));
  result.config.budget_s = 2;
  const auto check = budget_check(result);
  REQUIRE(check);
  CHECK((check->code == "E_BUDGET" && check->severity == "warn"));
  CHECK_THAT(check->text, ContainsSubstring("--budget 2 s was exceeded by 1.50 s: every case"));
  CHECK(budget_text(4, 3.5).empty());
  CHECK_THAT(budget_text(3600, 3952), ContainsSubstring("--budget 3600 s was exceeded by 352 s"));
  CHECK_THAT(budget_text(0.5, 0.52), ContainsSubstring("--budget 0.5 s was exceeded by 20.0 ms"));
  CHECK(budget_text(60, 60.00001).empty());
  CHECK(budget_text(60, 60.5).empty());
  CHECK_FALSE(budget_text(60, 60.7).empty());
}

TEST_CASE("a ceiling that was not measured has not moved") {
  const Calibration known{100e9, {{"fp32", 2e12}}, 100, 1, 20};
  CHECK_FALSE(ceilings_check(known, Calibration()));
  CHECK_FALSE(ceilings_check(Calibration(), known));
}

}  // namespace
}  // namespace wide::bench
