// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/contender.hpp"

#include <algorithm>
#include <cmath>

#include "bench/simulation.hpp"
#include "host/core/nvtx.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

constexpr int64_t kMaxLanes = 8;  // streams of the baseline `streams`

/// A block begins with a sample that does not count, because the contender before left the caches
/// to itself; a sample as long as this refills them on its own.
constexpr double kRefills_s = 5e-3;

}  // namespace

bool is_partner(Baseline baseline, Regime regime) {
  return (baseline == Baseline::graph) == (regime == Regime::graph);
}

Contender::Contender(const Context& context, Stream stream, catalog::Workload& workload,
                     const std::string& name, const PlanOptions& options)
    : context_(context),
      stream_(stream),
      workload_(&workload),
      output_(catalog::OutputOf::strategy),
      handles_(context),
      execution_{stream} {
  const catalog::Prepared prepared = workload.prepare(options);
  chosen_ = prepared.strategy;
  result.name = name;
  result.strategy = prepared.strategy;
  result.policy = prepared.policy;
  result.explain = prepared.explain;
  result.workspace_bytes = prepared.workspace_bytes;
  workspace_ = Tensor(context, Dtype::fp8_e4m3, {prepared.workspace_bytes});
  execution_ = {stream, {workspace_.data(), workspace_.bytes()}, &handles_};
  call_ = [run = prepared.run, this] { run(execution_); };
}

Contender::Contender(const Context& context, Stream stream, catalog::Workload& workload,
                     Baseline baseline)
    : context_(context),
      stream_(stream),
      workload_(&workload),
      output_(catalog::OutputOf::baseline),
      baseline_(baseline),
      handles_(context),
      execution_{stream} {
  const catalog::PreparedMembers members = workload.prepare_members();
  const int64_t count = workload.num_members();
  result.name = to_string(baseline);
  result.workspace_bytes = members.workspace_bytes;
  workspace_ = Tensor(context, Dtype::fp8_e4m3, {members.workspace_bytes});
  execution_ = {stream, {workspace_.data(), workspace_.bytes()}, &handles_};
  if (baseline == Baseline::streams) {
    lanes_ = std::make_unique<StreamLanes>(context, stream, std::min(count, kMaxLanes),
                                           members.workspace_bytes);
    call_ = [members, count, this] { lanes_->run(members, count); };
  } else {
    call_ = [members, count, this] {
      for (int64_t i = 0; i < count; ++i) members.run(i, execution_);
    };
  }
}

void Contender::verify(const catalog::ReferenceSample& reference,
                       std::string VerifyOutcome::*phase) {
  const NvtxRange range("verify");
  verify_call(call_, reference, phase);
  for (const auto& sampler : samplers_) {
    const bool replays = sampler->timer() == "graph" && phase == &VerifyOutcome::after;
    if (!replays || result.status != Status::ok) continue;
    verify_call([&] { (void)sampler->sample_ns(); }, reference, phase);
  }
}

void Contender::verify_call(const Call& call, const catalog::ReferenceSample& reference,
                            std::string VerifyOutcome::*phase) {
  VerifyOutcome& outcome = result.verify;
  workload_->poison_outputs(output_, stream_);
  if (is_simulated()) {
    context_.synchronize(stream_);
    forget_launches();
  }
  call();
  if (is_simulated()) {
    context_.synchronize(stream_);
    result.launches = counted_launches();
  }
  const catalog::Verdict verdict =
      catalog::compare(reference, workload_->read_outputs(output_, stream_));
  const std::string damage = workload_->damage(stream_);
  const bool passed = verdict.passed && damage.empty();
  const double ratio = verdict.worst_error_ratio;
  if (outcome.worst_member < 0 || !(ratio <= outcome.worst_error_ratio.value_or(0)))
    outcome.worst_member = verdict.worst_member;
  if (std::isfinite(ratio)) {
    outcome.worst_error_ratio = std::max(ratio, outcome.worst_error_ratio.value_or(0));
  } else {
    outcome.worst_error_ratio.reset();
  }
  outcome.*phase = passed ? "pass" : "fail";
  outcome.mismatches += verdict.mismatches;
  outcome.nan_count += verdict.nan_count;
  outcome.elements_compared = verdict.elements_compared;
  outcome.elements = verdict.elements;
  if (passed) return;
  result.status = Status::verify_failed;
  outcome.message = damage.empty() ? verdict.message : damage;
  result.reason = outcome.message;
}

void Contender::make_samplers(const std::vector<Regime>& regimes, double timer_quantum_ns) {
  for (const Regime regime : regimes) {
    if (is_baseline() && !is_partner(baseline_, regime)) continue;
    Measurement measurement;
    measurement.regime = regime;
    std::unique_ptr<Sampler> sampler;
    if (regime == Regime::cpu) {
      sampler = make_host_sampler(call_);
    } else if (regime == Regime::stream) {
      sampler = make_stream_sampler(context_, stream_, call_);
    } else {
      try {
        sampler = make_graph_sampler(context_, stream_, call_, timer_quantum_ns);
      } catch (const Error& error) {
        context_.synchronize(stream_);  // throws where more than the capture has failed
        result.reason = std::string("regime graph: ") + error.what();
        continue;
      }
    }
    measurement.timer = sampler->timer();
    measurement.iters_per_sample = sampler->iters_per_sample();
    samplers_.push_back(std::move(sampler));
    result.measurements.push_back(std::move(measurement));
  }
  if (samplers_.empty() && !result.reason.empty()) result.status = Status::skipped;
}

void Contender::warm_up() const {
  call_();
  context_.synchronize(stream_);
}

void Contender::sample_block(int64_t round, const StopRule& rule, int64_t measurements) {
  const NvtxRange range(is_baseline() ? "baseline" : "sample");
  for (size_t i = 0; i < samplers_.size(); ++i) {
    Measurement& measurement = result.measurements[i];
    Sampler& sampler = *samplers_[i];
    const double expected_s = sampler.expected_sample_s();
    if (expected_s < kRefills_s) (void)sampler.sample_ns();
    const int64_t room = rule.max_samples - static_cast<int64_t>(measurement.samples_ns.size());
    const int64_t count = std::min(room, samples_per_block(rule, expected_s, measurements));
    for (int64_t sample = 0; sample < count; ++sample) {
      measurement.samples_ns.push_back(sampler.sample_ns());
      measurement.samples_round.push_back(round);
    }
  }
}

}  // namespace wide::bench
