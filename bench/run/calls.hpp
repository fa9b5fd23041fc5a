// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a contender consists of: calls that this process makes (own_calls.hpp), or that another
// program makes on request (peer/peer_calls.hpp).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/document/result.hpp"
#include "bench/timer/sampler.hpp"

namespace wide::bench {

/// What samplers need besides calls.
struct Sampling {
  std::vector<Regime> regimes;
  double timer_quantum_ns = 0;
  ColdRule cold = {};
  std::vector<catalog::Workload*> copies = {};  ///< of the operands, for cold calls
};

class Calls {
 public:
  virtual ~Calls() = default;
  /// Fills in what results report: strategy, policy, explain, peer, workspace.
  virtual void describe(RunnerResult& result) const = 0;
  /// Calls once and waits.
  virtual void run() = 0;
  /// Poisons the outputs, calls once, or takes a sample `through` a sampler of its own, and reads
  /// them.
  virtual catalog::MemberOutputs outputs(Sampler* through = nullptr) = 0;
  /// Host time from the start of the first call until it was done; none if unknown.
  virtual std::optional<double> first_call_ns() const { return std::nullopt; }
  /// Errors of up to this many tolerances pass.
  virtual double slack() const { return 1; }
  /// Of the last outputs(); on the simulated GPU only.
  virtual std::vector<LaunchCounters> counters() const { return {}; }
  /// Describes writes outside the outputs; empty if there were none.
  virtual std::string damage() = 0;
  /// Throws if the regime cannot be timed. For regimes graph and cold this does not affect the
  /// other regimes once recover() has returned.
  virtual std::unique_ptr<Sampler> sampler(Regime regime, const Sampling& sampling) = 0;
  /// To be called after an error. Throws if no further call is possible.
  virtual void recover() = 0;
  /// Measures what a call costs the host that enqueues it; null if that cannot be measured.
  virtual std::unique_ptr<Sampler> enqueue_sampler() { return nullptr; }
  /// What a call launches; none if unknown.
  virtual std::optional<CallLaunches> launches() { return std::nullopt; }
  /// The same on another workload of the same case; null if not supported.
  virtual std::unique_ptr<Calls> on(catalog::Workload& /*other*/) const { return nullptr; }
  /// Returns once none of its work is running, before another contender is sampled.
  virtual void rest() {}
  /// For profilers: calls are captured in a CUDA graph, which profile() replays.
  virtual void replay_from_now_on() {}
  /// Makes this many calls in a row, and waits.
  virtual void profile(int64_t /*calls*/) {}
};

}  // namespace wide::bench
