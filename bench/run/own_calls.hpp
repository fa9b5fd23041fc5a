// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Calls made by this process: a strategy's, or those of a baseline's N separate members.
#pragma once

#include "bench/run/calls.hpp"
#include "wide/tensor.hpp"

namespace wide::bench {

class OwnCalls final : public Calls {
 public:
  /// A strategy's. Throws what the primitive's prepare() throws.
  OwnCalls(const Context& context, Stream stream, catalog::Workload& workload,
           const PlanOptions& options);
  /// A baseline's: loop, streams or graph.
  OwnCalls(const Context& context, Stream stream, catalog::Workload& workload, Baseline baseline);
  OwnCalls(const OwnCalls&) = delete;  // its calls hold its address

  void describe(RunnerResult& result) const override;
  void run() override;
  catalog::MemberOutputs outputs(Sampler* through = nullptr) override;
  std::optional<double> first_call_ns() const override { return first_call_ns_; }
  std::vector<LaunchCounters> counters() const override { return counters_; }
  std::string damage() override;
  std::unique_ptr<Sampler> sampler(Regime regime, const Sampling& sampling) override;
  void recover() override;
  std::unique_ptr<Sampler> enqueue_sampler() override;
  std::optional<CallLaunches> launches() override;
  std::unique_ptr<Calls> on(catalog::Workload& other) const override;
  void replay_from_now_on() override;
  void profile(int64_t calls) override;

 private:
  Context context_;
  Stream stream_;
  catalog::Workload* workload_;
  catalog::OutputOf output_;
  Baseline baseline_ = Baseline::loop;
  PlanOptions options_;         ///< for a strategy
  catalog::Prepared prepared_;  ///< for a strategy
  Tensor workspace_;
  VendorHandles handles_;
  Execution execution_;
  std::unique_ptr<StreamLanes> lanes_;
  /// A call on another workload of the same case.
  std::function<Call(catalog::Workload&)> bind_;
  Call call_, replay_;  ///< the latter may be empty
  std::vector<Call> rotated_calls_;
  std::vector<LaunchCounters> counters_;           ///< on the simulated GPU
  std::optional<int64_t> num_launches_;            ///< once launches() was called
  std::optional<double> plan_ns_, first_call_ns_;  ///< none if times are not measured
};

}  // namespace wide::bench
