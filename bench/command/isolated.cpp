// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/command/isolated.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "bench/command/repeated.hpp"
#include "bench/document/case_id.hpp"
#include "bench/document/result_json.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/process/interrupt.hpp"
#include "bench/process/run_program.hpp"
#include "bench/run/sweep.hpp"
#include "host/core/file.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

std::string how_it_ended(int code) {
  if (code <= 128) return fmt::format("the case's process left no result, exit code {}", code);
  return "the case's process was ended by " + signal_text(code - 128);
}

/// The parameters of a child: a result without cases.
std::string job_of(const RunPlan& plan, const Turn& turn, const RunResult& result) {
  RunResult job;
  job.devices = result.devices;
  job.config = plan.config;
  job.config.budget_s = turn.budget_s;
  job.calibration = plan.calibration ? *plan.calibration : result.calibration;
  return to_json(job).dump();
}

/// Takes the calibration from a child's run of one case, and its environment checks.
void take_over(const RunResult& child, RunResult& result) {
  if (result.calibration == Calibration()) result.calibration = child.calibration;
  for (const EnvironmentCheck& check : child.environment_checks) {
    auto& known = result.environment_checks;
    if (std::find(known.begin(), known.end(), check) == known.end()) known.push_back(check);
  }
  result.peak_host_bytes = std::max(result.peak_host_bytes, child.peak_host_bytes);
}

}  // namespace

void run_isolated(const RunPlan& plan, const std::vector<std::string>& command, RunResult& result) {
  const TemporaryFolder folder;
  Sweep sweep(plan, result);
  sweep.run([&](const Turn& turn) -> std::optional<CaseResult> {
    const std::string file = fmt::format("{}/{}.json", folder.path(), result.cases.size());
    write_file(file, job_of(plan, turn, result));
    std::vector<std::string> words = command;
    words.insert(words.end(),
                 {kIsolatedCase, case_id(turn.spec, turn.point), kIsolatedResult, file});
    for (const std::string& word : time_left_words()) words.push_back(word);
    const int code = run_program(words, true);
    // A signal may have ended it before its handler was installed.
    if (is_cut_short(code) || (code > 128 && is_interrupted())) return std::nullopt;
    try {
      RunResult child = load_result(file);
      if (child.cases.size() != 1)
        return case_not_run(plan, turn.spec, turn.point, Status::failed, how_it_ended(code));
      take_over(child, result);
      return std::move(child.cases.front());
    } catch (const Error& error) {  // what it left is no result, or contradicts itself
      return case_not_run(plan, turn.spec, turn.point, Status::failed, error.what());
    }
  });
  sweep.check_ceilings();
}

void take_job(RunPlan& plan, const std::string& id, const std::string& file) {
  for (auto& [spec, cases] : plan.work) {
    const catalog::PrimitiveSpec& op = *spec;
    std::erase_if(cases, [&](const catalog::Case& point) { return case_id(op, point) != id; });
  }
  const RunResult job = load_result(file);
  if (job.calibration != Calibration()) plan.calibration = job.calibration;
  plan.config.budget_s = job.config.budget_s;
  plan.ceilings_hold_s = std::numeric_limits<double>::infinity();  // its parent measures again
}

}  // namespace wide::bench
