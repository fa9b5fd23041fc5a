// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From a plan of cases to the fastest of their strategies: all measured in full, or those that a
// search finds.
#pragma once

#include <chrono>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/command/options.hpp"
#include "bench/run/runner.hpp"
#include "bench/timer/seconds.hpp"
#include "bench/tune/tune.hpp"
#include "host/model/step_workload.hpp"

namespace wide::bench {

/// The measurements of one primitive.
struct Tuned {
  RunResult result;
  std::vector<std::pair<catalog::Case, TunedCase>> cases;
  bool has_run = true;
  std::optional<Calibration> calibration;  ///< measured once
};

/// What was found for one problem.
struct TunedRow {
  std::string name;  ///< in the table
  TuningKey key;
  TunedCase found;
  std::string request_hash;
};

/// The same of all cases of a primitive, or of all steps of a model.
struct TunedOp {
  std::vector<TunedRow> rows;
  std::vector<catalog::FixedSteps> fixed{};  ///< of a model: what was not tuned
  RunResult result{};
  std::string nothing{};  ///< why nothing was selected
  int64_t num_known = 0;  ///< cases or steps that were not measured again
  bool has_run = true;
};

/// What all primitives and models of a command are tuned by.
struct TuneRequest {
  const GlobalOptions& global;
  const TuneOptions& options;
  const Context& context;
  std::vector<const catalog::PrimitiveSpec*> ops;  ///< that strategies may be of
  const TuningCache* applied = nullptr;            ///< what auto reads, if anything
  const TuningCache& kept;                         ///< what the file had before
  const TuningCache& tuned;                        ///< what this command has found by now
  std::ostream& out;
  std::ostream& err;
};

/// Seconds that several measurements share: those of the command, of an op, of a case.
class Budget {
 public:
  /// 0 or less: none.
  explicit Budget(double seconds) : seconds_(seconds), start_(Clock::now()) {}

  bool is_set() const { return seconds_ > 0; }
  double passed_s() const { return seconds_since(start_); }
  /// Of what is left, for the next of so many that are to come; 0: none.
  double share_s(size_t num_left) const;
  bool has_passed(double share) const { return is_set() && passed_s() > share * seconds_; }

 private:
  using Clock = std::chrono::steady_clock;
  double seconds_;
  Clock::time_point start_;
};

/// A plan without cases.
RunPlan tuning_plan(const TuneRequest& request);

/// Of the plan's strategies and of how they are to be measured.
std::string request_hash(const RunPlan& plan, const TuneOptions& options);

/// Whether the file has what the same request found for this problem, by the kernels of this build.
bool is_known(const TuneRequest& request, const TuningKey& key, const std::string& request_hash);

/// Measures the plan's strategies in all its cases, which are the primitive's.
void tune_cases(const RunPlan& plan, const catalog::PrimitiveSpec& spec, const TuneOptions& options,
                double budget_s, Tuned& tuned, std::ostream& err);

}  // namespace wide::bench
