// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/isolated.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "bench/cli.hpp"
#include "bench/interrupt.hpp"
#include "bench/result_json.hpp"
#include "bench/run_program.hpp"
#include "bench/summary.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

std::string how_it_ended(int code) {
  if (code <= 128) return fmt::format("the case's process left no result, exit code {}", code);
  return fmt::format("the case's process was ended by signal {} ({})", code - 128,
                     ::strsignal(code - 128));
}

/// A child's run is of one case; it knows the device, the calibration and what was wrong with both.
void take_over(RunResult& child, RunResult& result) {
  if (result.calibration == Calibration()) result.calibration = child.calibration;
  for (const EnvironmentCheck& check : child.environment_checks) {
    auto& known = result.environment_checks;
    if (std::find(known.begin(), known.end(), check) == known.end()) known.push_back(check);
  }
  result.peak_host_bytes = std::max(result.peak_host_bytes, child.peak_host_bytes);
  result.cases.push_back(std::move(child.cases.front()));
}

}  // namespace

void run_isolated(const RunPlan& plan, const std::vector<std::string>& command, RunResult& result) {
  using Clock = std::chrono::steady_clock;
  const TemporaryFolder folder;
  const auto start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  int64_t total = 0, done = 0;
  for (const auto& [spec, cases] : plan.work) total += static_cast<int64_t>(cases.size());
  const auto report = [&](const std::string& next) {
    if (plan.on_progress) plan.on_progress({done, total, elapsed(), next});
  };
  for (const auto& [spec, cases] : plan.work) {
    for (const catalog::Case& point : cases) {
      if (is_interrupted()) break;
      report(point.op() + " " + point.to_string());
      const std::string file = fmt::format("{}/{}.json", folder.path(), done);
      std::vector<std::string> words = command;
      for (const std::string& word :
           {std::string(kIsolatedCase), case_id(*spec, point), std::string(kIsolatedResult), file})
        words.push_back(word);
      const int code = run_program(words, true);
      if (code == kInterrupted) break;
      RunResult child;
      if (std::filesystem::exists(file)) child = load_result(file);
      if (child.cases.size() == 1) {
        take_over(child, result);
      } else {
        result.cases.push_back(case_not_run(*spec, point, Status::failed, how_it_ended(code)));
      }
      if (plan.on_case) plan.on_case(result, result.cases.back());
      ++done;
    }
  }
  report("");
  result.op_summaries = summarize(result.cases);
  result.complete = done == total && !is_interrupted();
  result.duration_s = elapsed();
}

void keep_case(RunPlan& plan, const std::string& id) {
  for (auto& [spec, cases] : plan.work) {
    const catalog::PrimitiveSpec& op = *spec;
    std::erase_if(cases, [&](const catalog::Case& point) { return case_id(op, point) != id; });
  }
}

}  // namespace wide::bench
