// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A strategy or a baseline of one case, ready to be checked and timed.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "bench/calls.hpp"
#include "bench/nvml/throttle.hpp"
#include "bench/result.hpp"
#include "bench/statistics/stop_rule.hpp"
#include "host/compare.hpp"

namespace wide::bench {

/// The NVTX range around the calls that `run --profile` shows a profiler, and its domain, which is
/// that of host/core/nvtx.hpp.
inline constexpr const char* kProfiledRange = "profile";
inline constexpr const char* kNvtxDomain = "wide";

/// Whether a baseline is timed in a regime: `graph` in graph, `loop` in all others, `streams` in
/// stream and cpu, `peer` in all.
bool is_partner(Baseline baseline, Regime regime);

/// Whether a device has the regime; and those that are timed where none is asked for.
bool has_regime(DeviceType device, Regime regime);
std::vector<Regime> default_regimes(DeviceType device);

/// Of a case's samples, over all its contenders: how many were begun, and since when.
struct SampleSequence {
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  int64_t next = 0;
};

/// A call that was compared with the reference.
struct CheckedCall {
  const catalog::Workload& workload;
  const catalog::ReferenceSample& reference;
  const catalog::MemberOutputs& outputs;
  std::string phase;    ///< "before" or "after" times; "after-graph": of that regime's replays
  std::string finding;  ///< what is wrong; empty: nothing
};

/// Throws on: whoever calls its members decides whose failure that is.
class Contender {
 public:
  /// Called `name` in results: a strategy, or a baseline. A baseline's twin is the same once more,
  /// and shown by nobody: what differs between the two is noise.
  Contender(std::string name, std::unique_ptr<Calls> calls, catalog::Workload& workload,
            std::optional<Baseline> baseline = std::nullopt, bool is_twin = false);

  RunnerResult result;
  /// Gets every call that is checked, may be empty. The file that it wrote of the call, or nothing.
  std::function<std::string(const CheckedCall&)> on_checked;
  bool is_twin() const { return is_twin_; }
  bool is_baseline() const { return baseline_.has_value(); }

  /// Poisons the outputs, runs once, compares. `phase` is result.verify.before or .after. After
  /// timing, captured graphs are replayed and compared as well: they are what was timed. Where
  /// infinities are not kept, NaN passes for what they go into.
  void verify(const catalog::ReferenceSample& reference, std::string VerifyOutcome::*phase,
              bool keeps_infinities = true);
  /// Poisons the outputs, runs once, and reads them.
  catalog::MemberOutputs outputs() { return calls_->outputs(); }
  /// The same contender on another workload of the same case; null where there is no such thing.
  std::unique_ptr<Contender> on(catalog::Workload& other) const;

  /// What a call launches, by capturing one; on CUDA. Unknown where that cannot be done.
  void describe_launches();
  /// Makes samplers for those of the regimes that this contender has. What cannot be captured, or
  /// not be kept out of the L2, leaves out its regime with a warning in result.reason; without any
  /// regime left the contender is skipped.
  void make_samplers(const Sampling& sampling);
  /// Runs once and waits.
  void run_once() { calls_->run(); }
  /// Takes a sample in every regime, which does not count.
  void warm_up();
  /// Its calls are captured in a CUDA graph, which profile() replays.
  void replay_from_now_on() { calls_->replay_from_now_on(); }
  /// Runs so many times in a range of the contender's name, and waits.
  void profile(int64_t calls);
  /// From now on each sample's clock is read and judged; `monitor` may be null.
  void watch(Monitor* monitor, const ThrottleRule& rule);
  int64_t num_measurements() const { return static_cast<int64_t>(samplers_.size()); }
  /// Takes a block of samples in every regime; `measurements` share the rule's time limit.
  void sample_block(int64_t round, const StopRule& rule, int64_t measurements,
                    SampleSequence& sequence);
  /// What a call costs the host, into the measurement of regime stream.
  void measure_enqueueing();
  /// What the clocks were. A contender that was throttled beyond what the rule allows has failed.
  void finish_clocks();
  /// Fills `energy` of every measurement, at a second each.
  void measure_energy(std::optional<double> idle_w);

 private:
  void verify_call(Sampler* through, const catalog::ReferenceSample& reference,
                   std::string VerifyOutcome::*phase, bool keeps_infinities,
                   const std::string& phase_name);
  void report_checked(const CheckedCall& checked);
  void make_sampler(Regime regime, const Sampling& sampling);
  /// One sample of measurement `i`, unless the device was throttled.
  void take_sample(size_t i, int64_t round, SampleSequence& sequence);

  std::unique_ptr<Calls> calls_;
  catalog::Workload* workload_;
  std::optional<uint64_t> first_bits_;  ///< a hash of the first call's that was checked
  std::optional<Baseline> baseline_;
  bool is_twin_;
  std::vector<std::unique_ptr<Sampler>> samplers_;  ///< one per measurement
  std::vector<ClockRecord> clocks_;                 ///< one per measurement
  Monitor* monitor_ = nullptr;
  ThrottleRule throttle_;
};

}  // namespace wide::bench
