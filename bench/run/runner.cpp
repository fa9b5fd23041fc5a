// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/run/runner.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

#include "bench/document/case_id.hpp"
#include "bench/machine/machine_checks.hpp"
#include "bench/nvml/nvml.hpp"
#include "bench/process/simulation.hpp"
#include "bench/run/case_runner.hpp"
#include "bench/run/sweep.hpp"
#include "bench/timer/sampler.hpp"

namespace wide::bench {

namespace {

/// ru_maxrss is in KiB on Linux.
int64_t peak_host_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

/// The monitor of the plan's device; none if nothing is timed or no clock can be known, which
/// the result reports.
std::unique_ptr<Monitor> monitor_of(const RunPlan& plan, RunResult& result) {
  const bool has_clocks = plan.context.device().type == DeviceType::cuda && !is_simulated();
  if (plan.verify_only || plan.monitor != nullptr || !has_clocks) return nullptr;
  NvmlMonitor nvml = open_nvml(pci_bus_id(plan.context));
  if (!nvml.monitor) {
    result.environment_checks.push_back(
        {"E_NO_NVML", "warn",
         "clocks, power and temperature are unknown, and throttling is not seen: " + nvml.reason});
  }
  return std::move(nvml.monitor);
}

}  // namespace

CaseResult case_not_run(const RunPlan& plan, const catalog::PrimitiveSpec& spec,
                        const catalog::Case& point, Status status, const std::string& reason) {
  CaseResult result;
  result.point = point;
  result.op_version = spec.version;
  result.case_id = case_id(spec, point);
  result.reproduce = reproduce_command(point, plan.command);
  result.status = status;
  result.reason = reason;
  return result;
}

void run_plan(const RunPlan& plan, RunResult& result) {
  Sweep sweep(plan, result);
  const ActiveDevice active(plan.context);
  if (!plan.verify_only) {
    if (!plan.calibration) sweep.report("calibration");
    result.calibration = plan.calibration ? *plan.calibration : sweep.first_ceilings();
  }
  const bool is_gpu = plan.context.device().type == DeviceType::cuda && !is_simulated();
  if (!plan.verify_only && is_gpu) {
    if (auto check =
            missing_ceilings_check(result.calibration, plan.context.info().compute_capability))
      result.environment_checks.push_back(std::move(*check));
  }
  const std::unique_ptr<Monitor> nvml = monitor_of(plan, result);
  Monitor* const monitor = plan.monitor != nullptr ? plan.monitor : nvml.get();
  std::string fatal;
  sweep.run([&](const Turn& turn) -> std::optional<CaseResult> {
    if (!fatal.empty()) {
      return case_not_run(plan, turn.spec, turn.point, Status::failed,
                          "not run: the device failed before: " + fatal);
    }
    const CaseRequest request{
        &plan, &turn.spec, turn.point, result.calibration, turn.budget_s.value_or(0), monitor, [&] {
          return sweep.judged_ceilings();
        }};
    return run_case(request, fatal);
  });
  if (fatal.empty()) sweep.check_ceilings();
  result.peak_host_bytes = peak_host_bytes();
}

PlanOptions plan_options(const std::string& name) {
  const size_t colon = name.find(':');
  PlanOptions options{.strategy = name.substr(0, colon)};
  if (colon != std::string::npos) options.policy = name.substr(colon + 1);
  return options;
}

std::string reproduce_command(const catalog::Case& point, const std::string& command) {
  std::string words = "wbench " + command + " --op " + point.op();
  for (const auto& entry : point.entries())
    words += " --" + entry.name + " " + catalog::to_string(entry.value);
  return words;
}

}  // namespace wide::bench
