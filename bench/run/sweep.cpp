// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/run/sweep.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

#include "bench/machine/machine_checks.hpp"
#include "bench/process/interrupt.hpp"
#include "bench/run/summary.hpp"
#include "bench/timer/seconds.hpp"

namespace wide::bench {

bool is_error(const CaseResult& result) {
  return result.status != Status::ok && result.status != Status::skipped;
}

void pause_for(double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end && !is_interrupted()) {
    const std::chrono::duration<double> left = end - Clock::now();
    std::this_thread::sleep_for(std::min(left, std::chrono::duration<double>(0.05)));
  }
}

Sweep::Sweep(const RunPlan& plan, RunResult& result)
    : plan_(plan), result_(result), total_(plan.num_cases()) {
  for (const auto& [spec, cases] : plan.work)
    result.tolerances.emplace_back(spec->name, spec->tolerance_formula);
}

void Sweep::report(const std::string& next) const {
  if (plan_.on_progress) plan_.on_progress({done_, total_, elapsed_s(), next});
}

void Sweep::run(const std::function<std::optional<CaseResult>(const Turn&)>& run_turn) {
  bool has_ended = false;
  if (plan_.on_start) plan_.on_start(result_);
  for (const auto& [spec, cases] : plan_.work) {
    for (const catalog::Case& point : cases) {
      if (done_ > 0 && !has_ended) cool_down();
      if (has_ended || is_interrupted()) break;
      report(point.op() + " " + point.to_string());
      const std::string impossible = spec->impossible_reason(point);
      std::optional<CaseResult> ran =
          impossible.empty() ? run_turn({*spec, point, budget_s()})
                             : case_not_run(plan_, *spec, point, Status::skipped, impossible);
      has_ended = !ran;
      if (has_ended) break;
      result_.cases.push_back(std::move(*ran));
      if (plan_.on_case) plan_.on_case(result_, result_.cases.back());
      ++done_;
      has_ended = plan_.exits_on_error && is_error(result_.cases.back());
    }
  }
  report("");
  result_.op_summaries = summarize(result_.cases);
  result_.complete = done_ == total_ && !is_interrupted();
  result_.duration_s = elapsed_s();
}

bool Sweep::has_own_ceilings() const {
  return !plan_.verify_only && !plan_.calibration && std::isfinite(plan_.ceilings_hold_s);
}

bool Sweep::has_time_to_measure() const {
  return !plan_.config.budget_s || elapsed_s() + measuring_s_ <= *plan_.config.budget_s;
}

Calibration Sweep::measure_ceilings() {
  const double begin_s = elapsed_s();
  Calibration ceilings;
  if (plan_.measure_ceilings) {
    ceilings = plan_.measure_ceilings(plan_.config.l2_factor);
  } else if (has_windows_) {
    if (!windows_) windows_ = std::make_unique<CpuCeilings>(plan_.context);
    ceilings = windows_->measure();
  } else {
    ceilings = calibrate(plan_.context, plan_.config.l2_factor);
  }
  ++num_windows_;
  last_window_s_ = elapsed_s();
  measuring_s_ = last_window_s_ - begin_s;
  return ceilings;
}

Calibration Sweep::first_ceilings() {
  has_windows_ = has_own_ceilings() && plan_.context.device().type == DeviceType::cpu;
  return measure_ceilings();
}

const Calibration& Sweep::judged_ceilings() {
  constexpr double kWindowsApart_s = 10;  // then they take a sixtieth of a sweep's time
  const bool is_due = num_windows_ < 2 || elapsed_s() - last_window_s_ > kWindowsApart_s;
  if (has_windows_ && is_due && has_time_to_measure())
    raise_ceilings(result_.calibration, measure_ceilings());
  return result_.calibration;
}

void Sweep::check_ceilings() {
  const bool is_short = elapsed_s() < plan_.ceilings_hold_s;
  const bool is_wanted = has_windows_ || (result_.complete && !is_short);
  if (!has_own_ceilings() || !is_wanted || !has_time_to_measure()) return;
  const Calibration again = measure_ceilings();
  if (auto check = ceilings_check(result_.calibration, again))
    result_.environment_checks.push_back(std::move(*check));
  raise_ceilings(result_.calibration, again);
}

double Sweep::elapsed_s() const {
  return seconds_since(start_);
}

/// Not before the first case, and not if nothing is timed.
void Sweep::cool_down() const {
  if (!plan_.verify_only) pause_for(plan_.config.cooldown_s);
}

/// An equal share of the remaining budget for every remaining case. A little is reserved for
/// starting, summing up and writing, and pauses count for no case.
std::optional<double> Sweep::budget_s() const {
  if (!plan_.config.budget_s) return std::nullopt;
  const double pauses_s = plan_.config.cooldown_s * static_cast<double>(total_ - done_ - 1);
  const double left = std::max(0.0, 0.95 * *plan_.config.budget_s - elapsed_s() - pauses_s);
  return std::max(0.1, left / static_cast<double>(total_ - done_));
}

}  // namespace wide::bench
