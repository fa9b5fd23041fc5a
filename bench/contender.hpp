// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A strategy or a baseline of one case, ready to be checked and timed.
#pragma once

#include <memory>
#include <vector>

#include "bench/result.hpp"
#include "bench/timer/sampler.hpp"
#include "host/compare.hpp"
#include "wide/tensor.hpp"

namespace wide::bench {

class Contender {
 public:
  /// A strategy. Throws what the primitive's prepare() throws.
  Contender(const Context& context, Stream stream, catalog::Workload& workload,
            const std::string& strategy);
  /// A baseline.
  Contender(const Context& context, Stream stream, catalog::Workload& workload, Baseline baseline);

  RunnerResult result;
  bool is_baseline() const { return output_ == catalog::OutputOf::baseline; }
  Baseline baseline() const { return baseline_; }
  const std::string& chosen_strategy() const { return chosen_; }

  /// Poisons the outputs, runs once, compares. `phase` is result.verify.before or .after.
  void verify(const catalog::ReferenceSample& reference, std::string VerifyOutcome::*phase);

  /// Makes samplers for those of `regimes` that this contender has; a regime that cannot be timed
  /// becomes a warning.
  void make_samplers(const std::vector<Regime>& regimes, double timer_quantum_ns);
  void run_once() const { call_(); }
  /// Takes `count` samples in every regime.
  void sample_block(int64_t round, int64_t count);
  bool has_samples_to_take() const { return !samplers_.empty(); }

 private:
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
