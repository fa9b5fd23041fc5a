// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/contender.hpp"

#include <algorithm>
#include <cmath>

#include "host/core/nvtx.hpp"
#include "host/core/verified.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

constexpr int64_t kMaxLanes = 8;  // streams of the baseline `streams`

/// Regimes in which a contender is timed on a device; a baseline only in its partner's.
bool takes_part(const Contender& contender, Regime regime, DeviceType device) {
  if ((regime == Regime::cpu) != (device == DeviceType::cpu)) return false;
  if (!contender.is_baseline()) return true;
  return (contender.baseline() == Baseline::graph) == (regime == Regime::graph);
}

}  // namespace

Contender::Contender(const Context& context, Stream stream, catalog::Workload& workload,
                     const std::string& strategy)
    : context_(context),
      stream_(stream),
      workload_(&workload),
      output_(catalog::OutputOf::strategy),
      handles_(context),
      execution_{stream} {
  const catalog::Prepared prepared = workload.prepare(strategy);
  chosen_ = prepared.strategy;
  result.name = strategy;
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
  VerifyOutcome& outcome = result.verify;
  workload_->poison_outputs(output_, stream_);
  call_();
  const catalog::Verdict verdict =
      catalog::compare(reference, workload_->read_outputs(output_, stream_));
  const std::string damage = workload_->damage(stream_);
  const bool passed = verdict.passed && damage.empty();
  outcome.*phase = passed ? "pass" : "fail";
  const double ratio = verdict.worst_error_ratio;
  if (std::isfinite(ratio))
    outcome.worst_error_ratio = std::max(ratio, outcome.worst_error_ratio.value_or(0));
  if (!std::isfinite(ratio)) outcome.worst_error_ratio.reset();
  outcome.worst_member = verdict.worst_member;
  outcome.mismatches += verdict.mismatches;
  outcome.nan_count += verdict.nan_count;
  outcome.elements_compared = verdict.elements_compared;
  outcome.elements = verdict.elements;
  if (passed) return;
  result.status = Status::verify_failed;
  outcome.message = !damage.empty() ? damage : verdict.message;
  result.reason = outcome.message;
}

void Contender::make_samplers(const std::vector<Regime>& regimes, double timer_quantum_ns) {
  for (const Regime regime : regimes) {
    if (!takes_part(*this, regime, context_.device().type)) continue;
    Measurement measurement;
    measurement.regime = regime;
    try {
      auto sampler = regime == Regime::cpu ? make_host_sampler(call_)
                     : regime == Regime::stream
                         ? make_stream_sampler(context_, stream_, call_)
                         : make_graph_sampler(context_, stream_, call_, timer_quantum_ns);
      measurement.timer = sampler->timer();
      measurement.iters_per_sample = sampler->iters_per_sample();
      samplers_.push_back(std::move(sampler));
      result.measurements.push_back(std::move(measurement));
    } catch (const Error& error) {
      if (regime != Regime::graph) throw;
      result.reason = std::string("regime graph: ") + error.what();
    }
  }
}

void Contender::sample_block(int64_t round, int64_t count) {
  const NvtxRange range(is_baseline() ? "baseline" : "sample");
  for (size_t i = 0; i < samplers_.size(); ++i) {
    Measurement& measurement = result.measurements[i];
    (void)samplers_[i]->sample_ns();  // the contender before left the caches to itself
    for (int64_t sample = 0; sample < count; ++sample) {
      measurement.samples_ns.push_back(samplers_[i]->sample_ns());
      measurement.samples_round.push_back(round);
    }
  }
}

}  // namespace wide::bench
