// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A strategy or a baseline of one case, ready to be checked and timed.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "bench/document/result.hpp"
#include "bench/nvml/throttle.hpp"
#include "bench/run/calls.hpp"
#include "bench/statistics/stop_rule.hpp"
#include "host/compare.hpp"

namespace wide::bench {

/// The NVTX range around the calls that `run --profile` presents to a profiler, and its domain, the
/// one of host/core/nvtx.hpp.
inline constexpr const char* kProfiledRange = "profile";
inline constexpr const char* kNvtxDomain = "wide";

/// Whether a baseline is timed in a regime: `graph` in graph, `loop` in all others, `streams` in
/// all but cold, `peer` in all.
bool is_partner(Baseline baseline, Regime regime);

/// Whether a device has the regime; and the regimes that are timed by default.
bool has_regime(DeviceType device, Regime regime);
std::vector<Regime> default_regimes(DeviceType device);

/// How many checks of a strategy follow its timing at most: of one call, and of each graph that was
/// timed.
int num_checks_after(const std::vector<Regime>& regimes);

/// Numbers the samples of a case, over all its contenders: how many were begun, and since when.
struct SampleSequence {
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  int64_t next = 0;
};

/// A call that was compared with the reference.
struct CheckedCall {
  const catalog::Workload& workload;
  const catalog::ReferenceSample& reference;
  const catalog::MemberOutputs& outputs;
  std::string phase;    ///< "before" or "after" timing; "after-graph": of that regime's replays
  std::string finding;  ///< what is wrong; empty: nothing
};

/// Lets exceptions pass: the caller decides whose failure they are.
class Contender {
 public:
  /// Called `name` in results: a strategy or a baseline. A baseline's twin is the same baseline
  /// again, not shown in reports: the difference between the two is noise.
  Contender(std::string name, std::unique_ptr<Calls> calls, catalog::Workload& workload,
            std::optional<Baseline> baseline = std::nullopt, bool is_twin = false);

  RunnerResult result;
  /// Called with every checked call; may be empty. Returns the file that it wrote, or nothing.
  std::function<std::string(const CheckedCall&)> on_checked;
  bool is_twin() const { return is_twin_; }
  bool is_baseline() const { return baseline_.has_value(); }

  /// Poisons the outputs, runs once, compares. `phase` is result.verify.before or .after. After
  /// timing, captured graphs are replayed and compared as well, since they are what was timed. If
  /// infinities are not kept, NaN passes wherever infinities enter the result.
  void verify(const catalog::ReferenceSample& reference, std::string VerifyOutcome::*phase,
              bool keeps_infinities = true);
  /// Poisons the outputs, runs once, and reads them.
  catalog::MemberOutputs outputs() { return calls_->outputs(); }
  /// The same contender on another workload of the same case; null if not supported.
  std::unique_ptr<Contender> on(catalog::Workload& other) const;

  /// Finds what a call launches, by capturing one; on CUDA. Unknown if it cannot be captured.
  void describe_launches();
  /// Makes samplers for those of the regimes that this contender has. A regime whose calls cannot
  /// be captured, or kept out of the L2, is left out with a warning in result.reason; if no regime
  /// is left, the contender is skipped.
  void make_samplers(const Sampling& sampling);
  /// Runs once and waits.
  void run_once() { calls_->run(); }
  /// Takes an uncounted sample in every regime.
  void warm_up();
  /// From now on, profile() replays a CUDA graph of captured calls.
  void replay_from_now_on() { calls_->replay_from_now_on(); }
  /// Makes this many calls in an NVTX range of the contender's name, and waits.
  void profile(int64_t calls);
  /// From now on each sample's clock is read and judged; `monitor` may be null.
  void watch(Monitor* monitor, const ThrottleRule& rule);
  int64_t num_measurements() const { return static_cast<int64_t>(samplers_.size()); }
  /// Takes a block of samples in every regime; `measurements` share the rule's time limit.
  void sample_block(int64_t round, const StopRule& rule, int64_t measurements,
                    SampleSequence& sequence);
  /// Measures what a call costs the host, for the measurement of regime stream.
  void measure_enqueueing();
  /// Stores the clocks. A contender that was throttled beyond what the rule allows has failed.
  void finish_clocks();
  /// Fills `energy` of every measurement; takes a second for each.
  void measure_energy(std::optional<double> idle_w);

 private:
  void verify_call(Sampler* through, const catalog::ReferenceSample& reference,
                   std::string VerifyOutcome::*phase, bool keeps_infinities,
                   const std::string& phase_name);
  void report_checked(const CheckedCall& checked);
  void make_sampler(Regime regime, const Sampling& sampling);
  /// Takes one sample of measurement `i`, unless the device was throttled.
  void take_sample(size_t i, int64_t round, SampleSequence& sequence);

  std::unique_ptr<Calls> calls_;
  catalog::Workload* workload_;
  std::optional<uint64_t> first_bits_;  ///< hash of the outputs of the first checked call
  std::optional<Baseline> baseline_;
  bool is_twin_;
  std::vector<std::unique_ptr<Sampler>> samplers_;  ///< one per measurement
  std::vector<ClockRecord> clocks_;                 ///< one per measurement
  Monitor* monitor_ = nullptr;
  ThrottleRule throttle_;
};

}  // namespace wide::bench
