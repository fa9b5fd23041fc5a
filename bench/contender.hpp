// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A strategy or a baseline of one case, ready to be checked and timed.
#pragma once

#include <memory>
#include <vector>

#include "bench/result.hpp"
#include "bench/statistics/stop_rule.hpp"
#include "bench/timer/sampler.hpp"
#include "host/compare.hpp"
#include "wide/tensor.hpp"

namespace wide::bench {

/// Whether a baseline is timed in a regime: `graph` in graph, the others in stream and cpu.
bool is_partner(Baseline baseline, Regime regime);

/// Throws on: whoever calls its members decides whose failure that is.
class Contender {
 public:
  /// A strategy, called `name` in results. Throws what the primitive's prepare() throws.
  Contender(const Context& context, Stream stream, catalog::Workload& workload,
            const std::string& name, const PlanOptions& options);
  /// A baseline.
  Contender(const Context& context, Stream stream, catalog::Workload& workload, Baseline baseline);
  Contender(const Contender&) = delete;  // its calls hold its address

  RunnerResult result;
  bool is_baseline() const { return output_ == catalog::OutputOf::baseline; }
  const std::string& chosen_strategy() const { return chosen_; }

  /// Poisons the outputs, runs once, compares. `phase` is result.verify.before or .after. After
  /// timing, captured graphs are replayed and compared as well: they are what was timed.
  void verify(const catalog::ReferenceSample& reference, std::string VerifyOutcome::*phase);

  /// Makes samplers for those of `regimes` that this contender has. Calls that cannot be captured
  /// leave out the regime graph with a warning in result.reason; without any regime left the
  /// contender is skipped.
  void make_samplers(const std::vector<Regime>& regimes, double timer_quantum_ns);
  /// Runs once and waits.
  void warm_up() const;
  int64_t num_measurements() const { return static_cast<int64_t>(samplers_.size()); }
  /// Takes a block of samples in every regime; `measurements` share the rule's time limit.
  void sample_block(int64_t round, const StopRule& rule, int64_t measurements);

 private:
  void verify_call(const Call& call, const catalog::ReferenceSample& reference,
                   std::string VerifyOutcome::*phase);

  Context context_;
  Stream stream_;
  catalog::Workload* workload_;
  catalog::OutputOf output_;
  Baseline baseline_ = Baseline::loop;
  std::string chosen_;
  Tensor workspace_;
  VendorHandles handles_;
  Execution execution_;
  std::unique_ptr<StreamLanes> lanes_;
  Call call_;
  std::vector<std::unique_ptr<Sampler>> samplers_;  ///< one per measurement
};

}  // namespace wide::bench
