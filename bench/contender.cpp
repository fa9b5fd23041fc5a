// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/contender.hpp"

#include <algorithm>
#include <cmath>

#include "bench/nvml/energy.hpp"
#include "bench/simulation.hpp"
#include "bench/statistics/order.hpp"
#include "host/core/nvtx.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

constexpr int64_t kMaxLanes = 8;  // streams of the baseline `streams`

/// A block begins with a sample that does not count, because the contender before left the caches
/// to itself; a sample as long as this refills them on its own.
constexpr double kRefills_s = 5e-3;

/// Of a call that cannot be captured and counted: it is enqueued alone, and on no blocked stream.
constexpr int64_t kManyLaunches = 1 << 20;

}  // namespace

bool is_partner(Baseline baseline, Regime regime) {
  if (baseline == Baseline::streams) return regime == Regime::stream || regime == Regime::cpu;
  return (baseline == Baseline::graph) == (regime == Regime::graph);
}

bool has_regime(DeviceType device, Regime regime) {
  return device == DeviceType::cuda || regime == Regime::cpu;
}

std::vector<Regime> default_regimes(DeviceType device) {
  if (device == DeviceType::cpu) return {Regime::cpu};
  return {Regime::stream, Regime::graph, Regime::cold};
}

Contender::Contender(const Context& context, Stream stream, catalog::Workload& workload,
                     const std::string& name, const PlanOptions& options)
    : context_(context),
      stream_(stream),
      workload_(&workload),
      output_(catalog::OutputOf::strategy),
      options_(options),
      handles_(context),
      execution_{stream} {
  const catalog::Prepared prepared = workload.prepare(options);
  chosen_ = prepared.strategy;
  result.name = name;
  result.strategy = prepared.strategy;
  result.policy = prepared.policy;
  result.explain = prepared.explain;
  result.workspace_bytes = prepared.workspace_bytes;
  workspace_ = Tensor(context, Dtype::uint8, {prepared.workspace_bytes});
  execution_ = {stream, {workspace_.data(), workspace_.bytes()}, &handles_};
  call_ = [run = prepared.run, this] { run(execution_); };
  bind_ = [options, this](catalog::Workload& copy) -> Call {
    return [run = copy.prepare(options).run, this] { run(execution_); };
  };
}

Contender::Contender(const Context& context, Stream stream, catalog::Workload& workload,
                     Baseline baseline, bool is_twin)
    : context_(context),
      stream_(stream),
      workload_(&workload),
      output_(catalog::OutputOf::baseline),
      baseline_(baseline),
      is_twin_(is_twin),
      handles_(context),
      execution_{stream} {
  const catalog::PreparedMembers members = workload.prepare_members();
  const int64_t count = workload.num_members();
  result.name = std::string(to_string(baseline)) + (is_twin ? "#2" : "");
  result.workspace_bytes = members.workspace_bytes;
  workspace_ = Tensor(context, Dtype::uint8, {members.workspace_bytes});
  execution_ = {stream, {workspace_.data(), workspace_.bytes()}, &handles_};
  if (baseline == Baseline::streams) {
    lanes_ = std::make_unique<StreamLanes>(context, stream, std::min(count, kMaxLanes),
                                           members.workspace_bytes);
    call_ = [members, count, this] { lanes_->run(members, count); };
  } else {
    bind_ = [count, this](catalog::Workload& copy) -> Call {
      return [members = copy.prepare_members(), count, this] {
        for (int64_t i = 0; i < count; ++i) members.run(i, execution_);
      };
    };
    call_ = [members, count, this] {
      for (int64_t i = 0; i < count; ++i) members.run(i, execution_);
    };
  }
}

void Contender::verify(const catalog::ReferenceSample& reference, std::string VerifyOutcome::*phase,
                       bool keeps_infinities) {
  const NvtxRange range("verify");
  const bool is_after = phase == &VerifyOutcome::after;
  verify_call(call_, reference, phase, keeps_infinities, is_after ? "after" : "before");
  for (size_t i = 0; i < samplers_.size(); ++i) {
    const bool replays = samplers_[i]->timer() == "graph" && is_after;
    if (!replays || result.status != Status::ok) continue;
    verify_call([&] { (void)samplers_[i]->sample_ns(); }, reference, phase, keeps_infinities,
                "after-" + std::string(to_string(result.measurements[i].regime)));
  }
}

catalog::MemberOutputs Contender::outputs() {
  workload_->poison_outputs(output_, stream_);
  call_();
  return workload_->read_outputs(output_, stream_);
}

std::unique_ptr<Contender> Contender::on(catalog::Workload& other) const {
  auto copy = is_baseline()
                  ? std::make_unique<Contender>(context_, stream_, other, baseline_)
                  : std::make_unique<Contender>(context_, stream_, other, result.name, options_);
  copy->on_checked = on_checked;
  return copy;
}

void Contender::verify_call(const Call& call, const catalog::ReferenceSample& reference,
                            std::string VerifyOutcome::*phase, bool keeps_infinities,
                            const std::string& phase_name) {
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
  const catalog::MemberOutputs outputs = workload_->read_outputs(output_, stream_);
  const catalog::Verdict verdict = catalog::compare(reference, outputs, keeps_infinities);
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
  if (!passed) {
    result.status = Status::verify_failed;
    outcome.message = damage.empty() ? verdict.message : damage;
    result.reason = outcome.message;
  }
  report_checked(
      {*workload_, reference, outputs, phase_name, passed ? std::string() : outcome.message});
}

/// What was found counts more than a file that could not be written.
void Contender::report_checked(const CheckedCall& checked) {
  if (!on_checked) return;
  try {
    const std::string file = on_checked(checked);
    if (file.empty()) return;
    result.verify.saved.push_back(file);
    if (!checked.finding.empty()) result.reason += "; saved as " + file;
  } catch (const Error& error) {
    if (checked.finding.empty()) throw;
    result.reason += std::string("; not saved: ") + error.what();
  }
}

void Contender::describe_launches() {
  if (context_.device().type != DeviceType::cuda) return;
  try {
    CallLaunches launches = launches_of(context_, stream_, call_);
    result.launches_per_call = launches.count;
    result.kernels = std::move(launches.kernels);
  } catch (const Error&) {
    context_.synchronize(stream_);  // throws where more than the capture has failed
  }
}

std::unique_ptr<Sampler> Contender::sampler_of(Regime regime, const Sampling& sampling) {
  const int64_t launches = result.launches_per_call.value_or(kManyLaunches);
  switch (regime) {
    case Regime::cpu:
      if (context_.device().type == DeviceType::cpu) return make_host_sampler(call_);
      return make_enqueue_sampler(context_, stream_, call_, launches);
    case Regime::stream:
      return make_stream_sampler(context_, stream_, call_);
    case Regime::graph:
      return make_graph_sampler(context_, stream_, call_, sampling.timer_quantum_ns);
    case Regime::cold:
      (void)copies_of(sampling.cold);  // throws where it cannot be done
      rotated_calls_ = {call_};
      for (catalog::Workload* copy : sampling.copies) rotated_calls_.push_back(bind_(*copy));
      return make_cold_sampler(context_, stream_, rotated_calls_, sampling.cold,
                               sampling.timer_quantum_ns, launches);
  }
  return nullptr;
}

void Contender::make_samplers(const Sampling& sampling) {
  for (const Regime regime : sampling.regimes) {
    if (is_baseline() && !is_partner(baseline_, regime)) continue;
    Measurement measurement;
    measurement.regime = regime;
    std::unique_ptr<Sampler> sampler;
    try {
      sampler = sampler_of(regime, sampling);
    } catch (const Error& error) {
      if (regime != Regime::graph && regime != Regime::cold) throw;
      context_.synchronize(stream_);  // throws where more than the regime has failed
      result.reason += (result.reason.empty() ? "" : "; ") + std::string("regime ") +
                       std::string(to_string(regime)) + ": " + error.what();
      continue;
    }
    measurement.timer = sampler->timer();
    measurement.iters_per_sample = sampler->iters_per_sample();
    if (regime == Regime::cold) {
      measurement.cache = sampling.cold.cache;
      measurement.buffers_rotated = sampler->buffers_rotated();
      if (sampling.cold.cache == Cache::rotate) {
        measurement.rotation_covers_l2 =
            covers_l2(sampling.cold, measurement.buffers_rotated, measurement.iters_per_sample);
      }
    }
    samplers_.push_back(std::move(sampler));
    result.measurements.push_back(std::move(measurement));
  }
  if (samplers_.empty() && !result.reason.empty()) result.status = Status::skipped;
}

void Contender::measure_enqueueing() {
  if (context_.device().type != DeviceType::cuda) return;
  for (Measurement& measurement : result.measurements) {
    if (measurement.regime != Regime::stream) continue;
    const auto sampler = make_enqueue_sampler(context_, stream_, call_,
                                              result.launches_per_call.value_or(kManyLaunches));
    std::vector<double> times;
    for (int i = 0; i < 11; ++i) times.push_back(sampler->sample_ns());
    measurement.enqueue_ns_per_call = median(times);
  }
}

void Contender::profile(int64_t calls) const {
  const NvtxRange range(result.name.c_str());
  const Call& call = replay_ ? replay_ : call_;
  for (int64_t i = 0; i < calls; ++i) call();
  context_.synchronize(stream_);
}

void Contender::replay_from_now_on() {
  replay_ = captured_call(context_, stream_, call_);
  replay_();  // what is uploaded late is not profiled
  context_.synchronize(stream_);
}

void Contender::warm_up() const {
  call_();
  context_.synchronize(stream_);
}

void Contender::sample_block(int64_t round, const StopRule& rule, int64_t measurements,
                             SampleSequence& sequence) {
  const NvtxRange range(is_baseline() ? "baseline" : "sample");
  for (size_t i = 0; i < samplers_.size(); ++i) {
    Measurement& measurement = result.measurements[i];
    Sampler& sampler = *samplers_[i];
    const double expected_s = sampler.expected_sample_s();
    const bool is_cold = measurement.regime == Regime::cold;
    if (!is_cold && expected_s < kRefills_s) (void)sampler.sample_ns();
    const int64_t room = rule.max_samples - static_cast<int64_t>(measurement.samples_ns.size());
    const int64_t count = std::min(room, samples_per_block(rule, expected_s, measurements));
    // A device that is throttled for good ends the block, too.
    const auto taken = [&] { return static_cast<int64_t>(measurement.samples_ns.size()); };
    const int64_t wanted = taken() + count;
    for (int64_t tries = 2 * count; tries > 0 && taken() < wanted; --tries)
      take_sample(i, round, sequence);
    if (monitor_ != nullptr) clocks_[i].add_block(monitor_->read_all());
  }
}

void Contender::take_sample(size_t i, int64_t round, SampleSequence& sequence) {
  using Seconds = std::chrono::duration<double>;
  Measurement& measurement = result.measurements[i];
  const int64_t order = sequence.next++;
  const Seconds begun = std::chrono::steady_clock::now() - sequence.start;
  const double time_ns = samplers_[i]->sample_ns();
  int64_t flags = 0;
  if (monitor_ != nullptr) {
    const Reading reading = monitor_->read_clock();
    const ClockRecord::Sample sample = clocks_[i].judge(throttle_, reading);
    if (sample == ClockRecord::Sample::discarded) return;
    if (sample == ClockRecord::Sample::throttled) flags |= kThrottledSample;
    measurement.samples_sm_mhz.push_back(reading.sm_mhz.value_or(0));
  }
  measurement.samples_ns.push_back(time_ns);
  measurement.samples_round.push_back(round);
  measurement.samples_order.push_back(order);
  measurement.samples_t_rel_s.push_back(begun.count());
  measurement.samples_flags.push_back(flags);
}

void Contender::watch(Monitor* monitor, const ThrottleRule& rule) {
  monitor_ = monitor;
  throttle_ = rule;
  clocks_.assign(samplers_.size(), {});
}

void Contender::finish_clocks() {
  for (size_t i = 0; i < clocks_.size(); ++i) {
    std::vector<double>& mhz = result.measurements[i].samples_sm_mhz;
    if (std::find(mhz.begin(), mhz.end(), 0) != mhz.end()) mhz.clear();  // not all are known
    const std::string trouble = clocks_[i].finish(throttle_, result.measurements[i]);
    if (trouble.empty() || result.status != Status::ok) continue;
    result.status = Status::failed;
    result.reason = trouble;
  }
}

void Contender::measure_energy(std::optional<double> idle_w) {
  for (size_t i = 0; i < samplers_.size(); ++i) {
    Sampler& sampler = *samplers_[i];
    result.measurements[i].energy = bench::measure_energy(monitor_, idle_w, [&] {
      (void)sampler.sample_ns();
      return sampler.iters_per_sample();
    });
  }
}

}  // namespace wide::bench
