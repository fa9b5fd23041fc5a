// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/run/own_calls.hpp"

#include <algorithm>
#include <chrono>

#include "bench/process/simulation.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

constexpr int64_t kMaxLanes = 8;  // streams of the baseline `streams`

/// For a call that cannot be captured and counted. It is enqueued alone, and on no blocked stream;
/// in regime cold, where its launch would have to be hidden, it is not timed.
constexpr int64_t kManyLaunches = 1 << 20;

/// None on the simulated GPU, whose times are meaningless.
template <class Work>
std::optional<double> host_time_ns(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
  return is_simulated() ? std::nullopt : std::optional(taken.count());
}

}  // namespace

OwnCalls::OwnCalls(const Context& context, Stream stream, catalog::Workload& workload,
                   const PlanOptions& options)
    : context_(context),
      stream_(stream),
      workload_(&workload),
      output_(catalog::OutputOf::strategy),
      options_(options),
      handles_(context),
      execution_{stream} {
  const auto prepare = [&] { prepared_ = workload.prepare(options); };
  plan_ns_ = host_time_ns(prepare);
  workspace_ = Tensor(context, Dtype::uint8, {prepared_.workspace_bytes});
  execution_ = {stream, {workspace_.data(), workspace_.bytes()}, &handles_};
  call_ = [run = prepared_.run, this] { run(execution_); };
  bind_ = [options, this](catalog::Workload& copy) -> Call {
    return [run = copy.prepare(options).run, this] { run(execution_); };
  };
}

OwnCalls::OwnCalls(const Context& context, Stream stream, catalog::Workload& workload,
                   Baseline baseline)
    : context_(context),
      stream_(stream),
      workload_(&workload),
      output_(catalog::OutputOf::baseline),
      baseline_(baseline),
      handles_(context),
      execution_{stream} {
  catalog::PreparedMembers members;
  plan_ns_ = host_time_ns([&] { members = workload.prepare_members(); });
  prepared_.strategy = members.strategy, prepared_.policy = members.policy;
  prepared_.explain = members.explain;
  const int64_t count = workload.num_members();
  workspace_ = Tensor(context, Dtype::uint8, {members.workspace_bytes});
  execution_ = {stream, {workspace_.data(), workspace_.bytes()}, &handles_};
  if (baseline == Baseline::streams) {
    lanes_ = std::make_unique<StreamLanes>(context, stream, std::min(count, kMaxLanes),
                                           members.workspace_bytes);
    call_ = [members, count, this] {
      members.run_before(execution_);
      lanes_->run(members, count);
      members.run_after(execution_);
    };
  } else {
    bind_ = [count, this](catalog::Workload& copy) -> Call {
      return
          [members = copy.prepare_members(), count, this] { members.run_all(count, execution_); };
    };
    call_ = [members, count, this] { members.run_all(count, execution_); };
  }
}

void OwnCalls::describe(RunnerResult& result) const {
  result.strategy = prepared_.strategy;
  result.policy = prepared_.policy;
  result.explain = prepared_.explain;
  result.workspace_bytes = workspace_.bytes();
  result.plan_ns = plan_ns_;
}

void OwnCalls::run() {
  call_();
  context_.synchronize(stream_);
}

catalog::MemberOutputs OwnCalls::outputs(Sampler* through) {
  workload_->poison_outputs(output_, stream_);
  if (is_simulated()) {
    context_.synchronize(stream_);
    forget_launches();
  }
  if (through == nullptr && !first_call_ns_) {
    context_.synchronize(stream_);
    first_call_ns_ = host_time_ns([&] { run(); });
  } else if (through == nullptr) {
    call_();
  } else {
    (void)through->sample_ns();
  }
  if (is_simulated()) {
    context_.synchronize(stream_);
    counters_ = counted_launches();
  }
  return workload_->read_outputs(output_, stream_);
}

std::string OwnCalls::damage() {
  return workload_->damage(stream_);
}

std::unique_ptr<Sampler> OwnCalls::sampler(Regime regime, const Sampling& sampling) {
  const int64_t launches = num_launches_.value_or(kManyLaunches);
  switch (regime) {
    case Regime::cpu:
      if (context_.device().type == DeviceType::cpu) return make_host_sampler(call_);
      return make_enqueue_sampler(context_, stream_, call_, launches);
    case Regime::stream:
      return make_stream_sampler(context_, stream_, call_);
    case Regime::graph:
      return make_graph_sampler(context_, stream_, call_, sampling.timer_quantum_ns);
    case Regime::cold:
      (void)copies_of(sampling.cold);  // throws if not possible
      rotated_calls_ = {call_};
      for (catalog::Workload* copy : sampling.copies) rotated_calls_.push_back(bind_(*copy));
      return make_cold_sampler(context_, stream_, rotated_calls_, sampling.cold,
                               sampling.timer_quantum_ns, launches);
  }
  return nullptr;
}

void OwnCalls::recover() {
  context_.synchronize(stream_);
}

std::unique_ptr<Sampler> OwnCalls::enqueue_sampler() {
  if (context_.device().type != DeviceType::cuda) return nullptr;
  return make_enqueue_sampler(context_, stream_, call_, num_launches_.value_or(kManyLaunches));
}

std::optional<CallLaunches> OwnCalls::launches() {
  if (context_.device().type != DeviceType::cuda) return std::nullopt;
  try {
    CallLaunches launches = launches_of(context_, stream_, call_);
    num_launches_ = launches.count;
    return launches;
  } catch (const Error&) {
    recover();
    return std::nullopt;
  }
}

std::unique_ptr<Calls> OwnCalls::on(catalog::Workload& other) const {
  if (output_ == catalog::OutputOf::baseline)
    return std::make_unique<OwnCalls>(context_, stream_, other, baseline_);
  return std::make_unique<OwnCalls>(context_, stream_, other, options_);
}

void OwnCalls::replay_from_now_on() {
  replay_ = captured_call(context_, stream_, call_);
  replay_();  // keeps late uploads out of the profile
  context_.synchronize(stream_);
}

void OwnCalls::profile(int64_t calls) {
  const Call& call = replay_ ? replay_ : call_;
  for (int64_t i = 0; i < calls; ++i) call();
  context_.synchronize(stream_);
}

}  // namespace wide::bench
