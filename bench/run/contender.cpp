// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/run/contender.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include "bench/nvml/energy.hpp"
#include "bench/statistics/order.hpp"
#include "host/core/nvtx.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

/// A block begins with an uncounted sample, because the previous contender left its own data in the
/// caches; a sample at least this long refills them by itself.
constexpr double kRefills_s = 5e-3;

int64_t count_zeros(const catalog::ReferenceSample& reference) {
  int64_t zeros = 0;
  for (const auto& row : reference.rows())
    zeros += std::count(row.values.begin(), row.values.end(), 0.0);
  return zeros;
}

/// Outputs of one case with the same hash are bitwise equal, except with probability 2^-64.
uint64_t hash_of(const catalog::MemberOutputs& outputs) {
  uint64_t hash = 0;
  for (const auto& member : outputs.members) {
    const std::string_view bytes(reinterpret_cast<const char*>(member.bytes.data()),
                                 member.bytes.size());
    hash = 0x100000001b3u * hash + std::hash<std::string_view>()(bytes);
  }
  return hash;
}

}  // namespace

bool is_partner(Baseline baseline, Regime regime) {
  if (baseline == Baseline::peer) return true;
  if (baseline == Baseline::streams) return regime != Regime::cold;  // nothing hides their launches
  return (baseline == Baseline::graph) == (regime == Regime::graph);
}

bool has_regime(DeviceType device, Regime regime) {
  return device == DeviceType::cuda || regime == Regime::cpu;
}

std::vector<Regime> default_regimes(DeviceType device) {
  if (device == DeviceType::cpu) return {Regime::cpu};
  return {Regime::stream, Regime::graph, Regime::cold};
}

int num_checks_after(const std::vector<Regime>& regimes) {
  const auto replays = [](Regime regime) {
    return regime == Regime::graph || regime == Regime::cold;
  };
  return 1 + static_cast<int>(std::count_if(regimes.begin(), regimes.end(), replays));
}

Contender::Contender(std::string name, std::unique_ptr<Calls> calls, catalog::Workload& workload,
                     std::optional<Baseline> baseline, bool is_twin)
    : calls_(std::move(calls)), workload_(&workload), baseline_(baseline), is_twin_(is_twin) {
  result.name = std::move(name);
  calls_->describe(result);
}

void Contender::verify(const catalog::ReferenceSample& reference, std::string VerifyOutcome::*phase,
                       bool keeps_infinities) {
  const NvtxRange range("verify");
  const bool is_after = phase == &VerifyOutcome::after;
  verify_call(nullptr, reference, phase, keeps_infinities, is_after ? "after" : "before");
  for (size_t i = 0; i < samplers_.size(); ++i) {
    const bool replays = samplers_[i]->timer() == "graph" && is_after;
    if (!replays || result.status != Status::ok) continue;
    verify_call(samplers_[i].get(), reference, phase, keeps_infinities,
                "after-" + std::string(to_string(result.measurements[i].regime)));
  }
}

std::unique_ptr<Contender> Contender::on(catalog::Workload& other) const {
  std::unique_ptr<Calls> calls = calls_->on(other);
  if (!calls) return nullptr;
  auto copy = std::make_unique<Contender>(result.name, std::move(calls), other, baseline_);
  copy->on_checked = on_checked;
  return copy;
}

void Contender::verify_call(Sampler* through, const catalog::ReferenceSample& reference,
                            std::string VerifyOutcome::*phase, bool keeps_infinities,
                            const std::string& phase_name) {
  VerifyOutcome& outcome = result.verify;
  const catalog::MemberOutputs outputs = calls_->outputs(through);
  result.launches = calls_->counters();
  result.first_call_ns = calls_->first_call_ns();
  const catalog::Verdict verdict =
      catalog::compare(reference, outputs, {keeps_infinities, calls_->slack()});
  const std::string damage = calls_->damage();
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
  outcome.zeros = count_zeros(reference);
  const uint64_t bits = hash_of(outputs);
  if (first_bits_) {
    outcome.bitwise_stable = outcome.bitwise_stable.value_or(true) && bits == *first_bits_;
  } else {
    first_bits_ = bits;
  }
  if (!passed) {
    result.status = Status::verify_failed;
    outcome.message = damage.empty() ? verdict.message : damage;
    result.reason = outcome.message;
  }
  report_checked(
      {*workload_, reference, outputs, phase_name, passed ? std::string() : outcome.message});
}

/// A failure to write the file must not hide the finding.
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
  std::optional<CallLaunches> launches = calls_->launches();
  if (!launches) return;
  result.launches_per_call = launches->count;
  result.kernels = std::move(launches->kernels);
}

void Contender::make_samplers(const Sampling& sampling) {
  for (const Regime regime : sampling.regimes) {
    if (baseline_ && !is_partner(*baseline_, regime)) continue;
    try {
      make_sampler(regime, sampling);
    } catch (const Error& error) {
      if (regime != Regime::graph && regime != Regime::cold) throw;
      calls_->recover();  // throws if more than the regime has failed
      result.reason += (result.reason.empty() ? "" : "; ") + std::string("regime ") +
                       std::string(to_string(regime)) + ": " + error.what();
    }
  }
  if (samplers_.empty() && !result.reason.empty()) result.status = Status::skipped;
}

void Contender::make_sampler(Regime regime, const Sampling& sampling) {
  std::unique_ptr<Sampler> sampler = calls_->sampler(regime, sampling);
  Measurement measurement;
  measurement.regime = regime;
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
  if (const std::string note = sampler->note(); !note.empty()) measurement.warnings.push_back(note);
  samplers_.push_back(std::move(sampler));
  result.measurements.push_back(std::move(measurement));
}

void Contender::warm_up() {
  for (const auto& sampler : samplers_) (void)sampler->sample_ns();
}

void Contender::measure_enqueueing() {
  for (Measurement& measurement : result.measurements) {
    if (measurement.regime != Regime::stream) continue;
    const auto sampler = calls_->enqueue_sampler();
    if (!sampler) return;
    std::vector<double> times;
    for (int i = 0; i < 11; ++i) times.push_back(sampler->sample_ns());
    measurement.enqueue_ns_per_call = median(times);
  }
}

void Contender::profile(int64_t calls) {
  const NvtxRange range(result.name.c_str());
  calls_->profile(calls);
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
    // Limits the block on a device that is permanently throttled.
    const auto taken = [&] { return static_cast<int64_t>(measurement.samples_ns.size()); };
    const int64_t wanted = taken() + count;
    for (int64_t tries = 2 * count; tries > 0 && taken() < wanted; --tries)
      take_sample(i, round, sequence);
    if (monitor_ != nullptr) clocks_[i].add_block(monitor_->read_all());
  }
  calls_->rest();
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
    if (std::find(mhz.begin(), mhz.end(), 0) != mhz.end()) mhz.clear();  // some are unknown
    const std::string trouble = clocks_[i].finish(throttle_, result.measurements[i]);
    if (trouble.empty() || result.status != Status::ok) continue;
    result.status = Status::failed;
    result.reason = trouble;
  }
}

void Contender::measure_energy(std::optional<double> idle_w) {
  for (size_t i = 0; i < samplers_.size(); ++i) {
    Sampler& sampler = *samplers_[i];
    Energy& energy = result.measurements[i].energy.emplace();
    if (sampler.calls_run_per_sample() == 0) {
      energy.method = "nvml_total_energy";
      energy.invalid_reason = result.measurements[i].regime == Regime::cold
                                  ? "a sample flushes the L2, which draws more than the call"
                                  : "the peer does not say how many calls a sample runs";
      continue;
    }
    energy = bench::measure_energy(monitor_, idle_w, [&] {
      (void)sampler.sample_ns();
      return sampler.calls_run_per_sample();
    });
  }
}

}  // namespace wide::bench
