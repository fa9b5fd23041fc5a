// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/self_check/run.hpp"

#include <algorithm>
#include <chrono>
#include <exception>

#include "bench/machine/calibrate.hpp"
#include "bench/nvml/throttle.hpp"
#include "bench/process/interrupt.hpp"
#include "bench/process/simulation.hpp"
#include "bench/run/contender.hpp"
#include "bench/run/runner.hpp"
#include "bench/timer/sampler.hpp"
#include "bench/timer/seconds.hpp"

namespace wide::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kInterruptedReason = "interrupted";

/// Runs baselines against themselves with the engine that measures everything else.
AaCells run_aa(const Context& context, const Calibration& calibration) {
  const bool is_cpu = context.device().type == DeviceType::cpu;
  RunPlan plan(context);
  plan.calibration = calibration;
  plan.config.aa = true;
  plan.config.verify = "off";
  plan.config.warmup_s = is_cpu ? 0.01 : 0.2;
  plan.config.regimes = default_regimes(context.device().type);
  plan.config.budget_s = is_cpu ? 0.8 : 30;
  plan.baselines = {Baseline::loop};
  if (!is_cpu) plan.baselines = {Baseline::loop, Baseline::streams, Baseline::graph};
  plan.strategies = {"sequential"};
  const catalog::PrimitiveSpec& linear = catalog::find_primitive("linear");
  std::vector<catalog::Case> cases;
  // Five cells each on a GPU: 55, of which 5 % are more than one.
  const int64_t num_cases = is_cpu ? 4 : 11;
  for (int64_t i = 0; i < num_cases; ++i) {
    const std::vector<std::pair<std::string, catalog::AxisValue>> axes{
        {"n", 2 + i}, {"batch", 4 + i}, {"d", 64 * (1 + i % 4)}};
    cases.push_back(catalog::make_case(linear, axes));
  }
  plan.work = {{&linear, cases}};
  RunResult result;
  run_plan(plan, result);
  return aa_cells(result.cases);
}

void check_host_clock(SelfChecks& checks, const Calibration& calibration) {
  checks.measure("clock_monotonic", [] {
    std::vector<double> readings(100'000);
    for (double& reading : readings)
      reading = std::chrono::duration<double, std::nano>(Clock::now().time_since_epoch()).count();
    return backward_steps(readings);
  });
  checks.measure("clock_quantum", [&] { return calibration.timer_quantum_ns; });
  checks.measure("clock_floor", [&] { return calibration.timer_floor_ns; });
  checks.measure("empty_launch", [&] { return calibration.empty_launch_ns; });
}

void check_aa(SelfChecks& checks, const Context& context, const Calibration& calibration) {
  const Limit& limit = checks.limit("aa");
  try {
    const AaCells cells = is_interrupted() ? AaCells() : run_aa(context, calibration);
    if (is_interrupted()) return checks.skip("aa", kInterruptedReason);
    checks.add(judge_aa(limit, checks.device(), cells));
  } catch (const std::exception& error) {
    checks.add(broken(limit, checks.device(), error.what()));
  }
}

/// Update period of the energy counter under load, over long enough to see several of 200 ms.
double energy_period_ms(Monitor& monitor, const std::function<void()>& load) {
  std::vector<double> times, joules;
  const auto start = Clock::now();
  do {
    load();
    times.push_back(1e3 * seconds_since(start));
    joules.push_back(monitor.total_energy_j().value_or(0));
  } while (times.back() < 1000);
  return period_of(times, joules);
}

double seconds_to_settle(Monitor& monitor, const std::function<void()>& load) {
  ClockStability clocks(RunConfig().clock_tol_pct);
  const auto start = Clock::now();
  while (!clocks.is_stable() && !is_interrupted() && seconds_since(start) <= kMaxClockWarmUp_s) {
    load();
    const std::optional<double> mhz = monitor.read_clock().sm_mhz;
    if (mhz) clocks.add(seconds_since(start), *mhz);
  }
  return clocks.is_stable() ? seconds_since(start) : kMaxClockWarmUp_s + 1;
}

}  // namespace

void SelfChecks::measure(std::string_view check, const std::function<double()>& number) {
  try {
    const double measured = is_interrupted() ? 0 : number();
    if (is_interrupted()) return skip(check, kInterruptedReason);
    add(judge(limit(check), name_, measured));
  } catch (const std::exception& error) {
    add(broken(limit(check), name_, error.what()));
  }
}

void SelfChecks::skip(std::string_view check, const std::string& reason) {
  add(skipped(limit(check), name_, reason));
}

void SelfChecks::skip_rest(const std::string& reason) {
  for (const Limit& limit : limits()) {
    const auto is_this = [&](const SelfCheck& check) { return check.name == limit.name; };
    if (limit.device == type_ && std::none_of(done_.begin(), done_.end(), is_this))
      add(skipped(limit, name_, reason));
  }
}

void SelfChecks::add(SelfCheck check) {
  done_.push_back(std::move(check));
  if (!on_checks_) return;
  SelfChecks so_far = *this;
  so_far.on_checks_ = nullptr;
  so_far.skip_rest("the process has ended before");
  on_checks_(so_far.in_order());
}

std::vector<SelfCheck> SelfChecks::in_order() const {
  std::vector<SelfCheck> ordered;
  for (const Limit& limit : limits()) {
    for (const SelfCheck& check : done_) {
      if (limit.device == type_ && check.name == limit.name) ordered.push_back(check);
    }
  }
  return ordered;
}

void check_nvml(SelfChecks& checks, const NvmlMonitor& nvml, const std::function<void()>& load) {
  if (!nvml.monitor) {
    for (const char* check : {"nvml_clock", "nvml_power", "energy_period", "clocks_settle"})
      checks.skip(check, nvml.reason);
    return;
  }
  Monitor& monitor = *nvml.monitor;
  checks.measure("clocks_settle", [&] { return seconds_to_settle(monitor, load); });
  const Reading reading = monitor.read_all();
  checks.measure("nvml_clock", [&] { return reading.sm_mhz.value_or(0); });
  checks.measure("nvml_power", [&] { return reading.power_w.value_or(0); });
  if (monitor.total_energy_j()) {
    checks.measure("energy_period", [&] { return energy_period_ms(monitor, load); });
  } else {
    checks.skip("energy_period", "the device does not count energy: its power is summed up");
  }
}

std::vector<SelfCheck> check_device(const Context& context, const OnChecks& on_checks) {
  SelfChecks checks(context.device(), on_checks);
  if (is_interrupted()) {
    checks.skip_rest(kInterruptedReason);
    return checks.in_order();
  }
  const ActiveDevice active(context);
  const bool is_cuda = context.device().type == DeviceType::cuda;
  if (is_cuda && is_simulated()) {
    check_blocker_time_out(checks, context, 1e-6);
    checks.skip_rest("the simulated GPU has no times");
    return checks.in_order();
  }
  const Calibration calibration = calibrate(context);
  if (is_cuda) {
    check_cuda_timing(checks, context, calibration);
    check_blocker_time_out(checks, context, 0.02);
    check_nvml(checks, open_nvml(pci_bus_id(context)), cuda_load(context));
  } else {
    check_host_clock(checks, calibration);
  }
  check_aa(checks, context, calibration);
  return checks.in_order();
}

std::vector<SelfCheck> skip_cuda(const std::string& reason) {
  SelfChecks checks(DeviceType::cuda, "cuda");
  checks.skip_rest(reason);
  return checks.in_order();
}

}  // namespace wide::bench
