// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/command/running.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <map>
#include <ostream>
#include <sstream>

#include "bench/command/isolated.hpp"
#include "bench/command/options.hpp"
#include "bench/compare/gate.hpp"
#include "bench/nvml/device_state.hpp"
#include "bench/process/interrupt.hpp"
#include "bench/process/simulation.hpp"
#include "bench/report/terminal.hpp"
#include "bench/timer/sampler.hpp"
#include "host/core/text.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

/// Rewrites one line repeatedly.
void show_progress(const Progress& progress, std::ostream& err) {
  if (progress.next.empty()) {
    err << "\r\033[K" << std::flush;
    return;
  }
  const double per_case =
      progress.done > 0 ? progress.elapsed_s / static_cast<double>(progress.done) : 0;
  const double left = per_case * static_cast<double>(progress.total - progress.done);
  err << fmt::format("\r\033[K[{}/{}] {:.0f} s{}  {}", progress.done + 1, progress.total,
                     progress.elapsed_s,
                     progress.done > 0 ? fmt::format(", {:.0f} s left", left) : "",
                     progress.next.substr(0, 50))
      << std::flush;
}

/// The same for -v: a line each, so that a log shows what ran when.
void log_progress(const Progress& progress, std::ostream& err) {
  if (progress.next.empty()) return;
  err << fmt::format("[{}/{}] {:.1f} s  {}\n", progress.done + 1, progress.total,
                     progress.elapsed_s, progress.next)
      << std::flush;
}

}  // namespace

RunDevice device_of(const Context& context) {
  RunDevice device = run_device(context);
  if (context.device().type == DeviceType::cuda && !is_simulated())
    device.state = device_state(device.pci_bus_id);
  return device;
}

double parse_percent(const std::string& option, const std::string& text, const std::string& words) {
  const std::string digits = text.ends_with('%') ? text.substr(0, text.size() - 1) : text;
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || !(value > 0 && value < 100)) {
    throw Error(ErrorCode::invalid_argument,
                option + ": \"" + text + "\", expected " + words + "a percentage such as 0.5%");
  }
  return value;
}

double parse_threshold(const std::string& text, const Metric& metric) {
  const std::string option = "--threshold";
  std::map<std::string, double> by_metric;  // "": of all
  std::istringstream list(text + ",");
  for (std::string item; std::getline(list, item, ',');) {
    const size_t equals = item.find('=');
    std::string name, percent = item;
    if (equals != std::string::npos) {
      name = item.substr(0, equals);
      percent = item.substr(equals + 1);
      try {
        (void)find_measured_metric(name);
      } catch (const Error& error) {
        throw Error(error.code(), option + ": " + error.what());
      }
    }
    const double value = parse_percent(option, percent, "METRIC=PERCENT or ");
    if (!by_metric.emplace(name, value).second) {
      throw Error(ErrorCode::invalid_argument,
                  option + ": \"" + text + "\" has two thresholds of " +
                      (name.empty() ? "all metrics" : name) + ", expected one");
    }
  }
  for (const std::string& name : {std::string(metric.name), std::string()}) {
    if (const auto found = by_metric.find(name); found != by_metric.end()) return found->second;
  }
  return kThreshold_pct;
}

void set_progress(const GlobalOptions& global, std::ostream& err, RunPlan& plan) {
  if (global.verbose) {
    plan.on_progress = [&err](const Progress& progress) { log_progress(progress, err); };
    plan.on_check_ended = [&err](const std::string& name) {
      err << "  checked " << name << "\n" << std::flush;
    };
  } else if (!global.quiet && ::isatty(STDERR_FILENO) != 0 && !is_dumb_terminal()) {
    plan.on_progress = [&err](const Progress& progress) { show_progress(progress, err); };
  }
}

bool run_guarded(const RunPlan& plan, RunResult& result, std::ostream& err) {
  try {
    install_interrupt_handler();
    plan.isolating_command.empty() ? run_plan(plan, result)
                                   : run_isolated(plan, plan.isolating_command, result);
    return true;
  } catch (const std::exception& error) {
    err << "wbench: the run failed: " << error.what() << "\n";
    return false;
  }
}

std::optional<Context> make_context(const Selection& selection, std::ostream& err) {
  try {
    return select_context(selection);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid_argument) throw;
    err << "wbench: " << error.what() << "\n";
    return std::nullopt;
  }
}

void report_nothing(const std::string& nothing, const RunResult& result, std::ostream& err) {
  err << "wbench: " << shown_message(nothing);
  for (const auto& [reason, count] : result.impossible_reasons)
    err << "\n  impossible: " << counted(count, "point") << ": " << shown_message(reason);
  err << "\n";
}

}  // namespace wide::bench
