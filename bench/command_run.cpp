// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `run` and `verify`: select, run, write, judge.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <ostream>

#include "bench/cli.hpp"
#include "bench/commands.hpp"
#include "bench/environment.hpp"
#include "bench/interrupt.hpp"
#include "bench/report/report.hpp"
#include "bench/result_json.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

double parse_percent(const std::string& text) {
  const std::string digits = text.ends_with('%') ? text.substr(0, text.size() - 1) : text;
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || !(value > 0 && value < 100)) {
    throw Error(ErrorCode::invalid_argument,
                "--target-ci: \"" + text + "\", expected a percentage such as 0.5%");
  }
  return value;
}

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
                     progress.next.substr(0, 60))
      << std::flush;
}

int exit_code_of(const RunResult& result) {
  bool is_wrong = false, has_failed = false;
  for (const CaseResult& c : result.cases) {
    is_wrong = is_wrong || c.status == Status::verify_failed || c.status == Status::implausible;
    has_failed = has_failed || c.status == Status::failed || c.status == Status::oom ||
                 c.status == Status::timeout;
    for (const auto* group : {&c.strategies, &c.baselines}) {
      for (const RunnerResult& r : *group) {
        is_wrong = is_wrong || r.status == Status::verify_failed || r.status == Status::implausible;
      }
    }
  }
  if (is_interrupted()) return kInterrupted;
  return has_failed ? kRuntimeError : is_wrong ? kWrong : kSuccess;
}

/// A run in which every strategy of every case was skipped has shown nothing.
bool ran_anything(const RunResult& result) {
  for (const CaseResult& c : result.cases) {
    if (c.status != Status::ok && c.status != Status::skipped) return true;
    for (const RunnerResult& r : c.strategies) {
      if (r.status != Status::skipped) return true;
    }
  }
  return false;
}

void print_cases(const RunPlan& plan, const RunResult& result, std::ostream& out) {
  int64_t count = 0;
  for (const auto& [spec, cases] : plan.work) {
    for (const catalog::Case& point : cases) {
      out << spec->name << " " << point.to_string() << "\n  " << reproduce_command(point) << "\n";
      ++count;
    }
  }
  out << count << " cases\n";
  for (const auto& [reason, number] : result.impossible_reasons)
    out << "impossible: " << number << " points: " << reason << "\n";
}

/// Writes every format asked for. A file that cannot be written is reported and makes the exit code
/// 1; the other outputs are written all the same.
bool write_outputs(const RunResult& result, const OutputOptions& output, const std::string& saved,
                   std::ostream& out, std::ostream& err) {
  bool all_written = true;
  const auto write = [&](const std::string& path, const std::string& text) {
    if (path == "-") {
      out << text;
      return;
    }
    try {
      write_file(path, text);
    } catch (const Error& error) {
      err << "wbench: " << error.what() << "\n";
      all_written = false;
    }
  };
  const std::string json =
      to_json(result).dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  for (const std::string& path : output.json) write(path, json);
  if (!saved.empty()) write(saved, json);
  for (const std::string& path : output.csv) write(path, report_csv(result));
  for (const std::string& path : output.md) write(path, report_markdown(result));
  return all_written;
}

/// results/<time>-<ops>.json; op names come from the catalogue, so they are safe in a file name.
std::string saved_path(const Selection& selection) {
  std::string ops = selection.ops;
  std::replace(ops.begin(), ops.end(), ',', '+');
  std::filesystem::create_directories("results");
  return "results/" + compact_time() + "-" + ops + ".json";
}

}  // namespace

int output_width() {
  int width = 120;
  winsize size{};
  if (::isatty(STDOUT_FILENO) != 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
      size.ws_col > 0)
    width = size.ws_col;
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr) {
    int value = 0;
    const std::string_view text(columns);
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc())
      width = value;
  }
  return std::clamp(width, 80, 200);
}

bool wants_color(const std::string& when) {
  if (when != "auto") return when == "always";
  const char* no_color = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == 0);
}

int command_run(const GlobalOptions& global, RunOptions options, std::ostream& out,
                std::ostream& err) {
  RunPlan plan(select_context(options.selection));
  plan.config = options.config;
  plan.verify_only = options.verify_only;
  RunResult result;
  result.argv = global.argv;
  plan.config.preset = options.selection.preset;
  plan.config.target_ci_pct = parse_percent(options.target_ci);
  plan.config.regimes = select_regimes(options.selection.regimes, plan.context.device().type);
  if (options.budget_s >= 0) plan.config.budget_s = options.budget_s;
  if (options.budget_s < 0 && options.selection.preset == "ci") plan.config.budget_s = 60;
  select_work(options.selection, plan, result);
  if (options.dry_run) {
    print_cases(plan, result, out);
    return kSuccess;
  }
  int64_t num_cases = 0;
  for (const auto& [spec, cases] : plan.work) num_cases += static_cast<int64_t>(cases.size());
  if (num_cases == 0) {
    err << "wbench: no case matches";
    for (const auto& [reason, count] : result.impossible_reasons)
      err << "; " << count << " points: " << reason;
    err << "\n";
    return kNothingRan;
  }
  result.config = plan.config;
  result.devices = {plan.context.info()};
  describe_environment(result);
  if (!global.quiet && ::isatty(STDERR_FILENO) != 0) {
    plan.on_progress = [&err](const Progress& progress) { show_progress(progress, err); };
  }
  const std::string saved = options.output.save ? saved_path(options.selection) : "";
  install_interrupt_handler();
  run_plan(plan, result);
  int code = exit_code_of(result);
  if (code == kSuccess && !ran_anything(result)) code = kNothingRan;
  result.exit_code = code;
  if (!write_outputs(result, options.output, saved, out, err) && code != kInterrupted)
    code = kRuntimeError;
  const auto goes_to_stdout = [](const std::vector<std::string>& paths) {
    return std::find(paths.begin(), paths.end(), "-") != paths.end();
  };
  const OutputOptions& o = options.output;
  if (!goes_to_stdout(o.json) && !goes_to_stdout(o.csv) && !goes_to_stdout(o.md)) {
    out << report_text(
        result, {output_width(), wants_color(global.color), o.top, o.explain, options.verify_only});
  }
  if (!saved.empty() && !global.quiet) err << "saved " << saved << "\n";
  return code;
}

int command_show(const GlobalOptions& global, const std::vector<std::string>& files,
                 const OutputOptions& output, std::ostream& out) {
  for (const std::string& file : files) {
    const RunResult result = load_result(file);
    bool was_timed = false;
    for (const CaseResult& c : result.cases) {
      for (const RunnerResult& r : c.strategies) was_timed = was_timed || !r.measurements.empty();
    }
    if (files.size() > 1) out << file << "\n";
    out << report_text(result, {output_width(), wants_color(global.color), output.top,
                                output.explain, !was_timed});
  }
  return kSuccess;
}

}  // namespace wide::bench
