// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/process/exit_code.hpp"

#include <algorithm>
#include <iterator>

#include "bench/process/interrupt.hpp"

namespace wide::bench {

namespace {

/// A run in which every strategy of every case was skipped has measured nothing.
bool ran_anything(const RunResult& result) {
  for (const CaseResult& c : result.cases) {
    if (c.status != Status::ok && c.status != Status::skipped) return true;
    for (const RunnerResult& r : c.strategies) {
      if (r.status != Status::skipped) return true;
    }
  }
  return false;
}

}  // namespace

int exit_code_of(const RunResult& result, bool was_interrupted) {
  bool is_wrong = false, has_failed = false;
  const auto judge = [&](Status status) {
    is_wrong = is_wrong || status == Status::verify_failed || status == Status::implausible;
    has_failed = has_failed || status == Status::failed || status == Status::oom ||
                 status == Status::timeout;
  };
  for (const CaseResult& c : result.cases) {
    judge(c.status);
    for (const RunnerResult& r : c.strategies) judge(r.status);
    for (const RunnerResult& r : c.baselines) {
      if (r.peer.empty()) judge(r.status);  // another program's errors are not our failure
    }
  }
  if (was_interrupted) return is_out_of_time() ? kTimedOut : kInterrupted;
  if (has_failed) return kRuntimeError;
  if (is_wrong) return kWrong;
  return ran_anything(result) ? kSuccess : kNothingRan;
}

int worse_code(int a, int b) {
  constexpr int kWorstFirst[] = {kInterrupted, kTimedOut, kUsage,      kRuntimeError,
                                 kEnvironment, kWrong,    kRegression, kInconclusive,
                                 kNothingRan,  kSuccess};
  const auto rank = [&](int code) {
    return std::find(std::begin(kWorstFirst), std::end(kWorstFirst), code);
  };
  return rank(a) < rank(b) ? a : b;
}

bool is_cut_short(int code) {
  return code == kInterrupted || code == kTimedOut;
}

}  // namespace wide::bench
