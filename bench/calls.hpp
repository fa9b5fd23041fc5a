// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a contender consists of: calls that this process makes (own_calls.hpp), or that another
// program makes when it is told to (peer/peer_calls.hpp).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/result.hpp"
#include "bench/timer/sampler.hpp"

namespace wide::bench {

/// What samplers are made of besides calls.
struct Sampling {
  std::vector<Regime> regimes;
  double timer_quantum_ns = 0;
  ColdRule cold = {};
  std::vector<catalog::Workload*> copies = {};  ///< of the operands, where calls rotate over them
};

class Calls {
 public:
  virtual ~Calls() = default;
  /// What results say of it: strategy, policy, explain, peer, workspace.
  virtual void describe(RunnerResult& result) const = 0;
  /// Calls once and waits.
  virtual void run() = 0;
  /// Poisons the outputs, calls once, or takes a sample `through` a sampler of its own, and reads
  /// them.
  virtual catalog::MemberOutputs outputs(Sampler* through = nullptr) = 0;
  /// What the first of them took the host until it was done; none where that cannot be told.
  virtual std::optional<double> first_call_ns() const { return std::nullopt; }
  /// Errors of so many tolerances pass.
  virtual double slack() const { return 1; }
  /// Of the last outputs(), on the simulated GPU.
  virtual std::vector<LaunchCounters> counters() const { return {}; }
  /// What was written to that is no output; empty where nothing was.
  virtual std::string damage() = 0;
  /// Throws what keeps the regime from being timed. Of regimes graph and cold that does no harm to
  /// the others, once recover() has returned.
  virtual std::unique_ptr<Sampler> sampler(Regime regime, const Sampling& sampling) = 0;
  /// After an error. Throws where nothing can be called any more.
  virtual void recover() = 0;
  /// What a call costs the host that enqueues it; null where that cannot be told.
  virtual std::unique_ptr<Sampler> enqueue_sampler() { return nullptr; }
  /// What a call launches; none where that cannot be told.
  virtual std::optional<CallLaunches> launches() { return std::nullopt; }
  /// The same on another workload of the same case; null where there is no such thing.
  virtual std::unique_ptr<Calls> on(catalog::Workload& /*other*/) const { return nullptr; }
  /// Returns when nothing of it is busy any more, before another's samples.
  virtual void rest() {}
  /// For profilers: calls are captured in a CUDA graph, which profile() replays.
  virtual void replay_from_now_on() {}
  /// Calls so many times in a row, and waits.
  virtual void profile(int64_t /*calls*/) {}
};

}  // namespace wide::bench
