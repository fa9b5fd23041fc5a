// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Rounds: every contender takes a block of samples in each, forward in even rounds and backward in
// odd ones (ABBA), so that drift hits all alike; ratios pair the blocks of a round.
#include "bench/case_runner.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <random>

#include "bench/contender.hpp"
#include "bench/interrupt.hpp"
#include "bench/statistics/statistics.hpp"
#include "host/core/verified.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMinRounds = 3;
constexpr int64_t kReliableSamples = 30;
constexpr double kReferenceFlops = 2e8;  // about a quarter of a second
constexpr double kPlausible = 1.05;      // a ceiling is a measurement, too
constexpr double kResolution = 5;        // medians below this many timer floors are noise

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Status status_of(ErrorCode code) {
  return code == ErrorCode::out_of_memory ? Status::oom
         : code == ErrorCode::unsupported ? Status::skipped
                                          : Status::failed;
}

class CaseRunner {
 public:
  CaseRunner(const CaseRequest& request, CaseResult& result, std::string& fatal)
      : request_(request),
        plan_(*request.plan),
        config_(plan_.config),
        result_(result),
        fatal_(fatal),
        start_(Clock::now()),
        stream_(plan_.context) {}

  void run() {
    const Context& context = plan_.context;
    catalog::WorkloadOptions options;
    options.seed = config_.seed;
    const auto workload = request_.spec->make_workload(context, request_.point, options);
    workload_ = workload.get();
    result_.cost = workload->cost();
    result_.footprint_bytes = workload->footprint_bytes();
    floor_ = floor_of(request_.calibration, result_.cost, request_.point.dtype());
    result_.floor_ns = floor_.total_ns();
    const bool verifies = config_.verify != "off";
    std::unique_ptr<catalog::ReferenceSample> reference;
    if (verifies) {
      const double share = request_.budget_s > 0 ? std::min(1.0, request_.budget_s / 2) : 1.0;
      reference = std::make_unique<catalog::ReferenceSample>(*workload, kReferenceFlops * share,
                                                             config_.seed);
    }
    add_contenders();
    if (verifies) verify_all(*reference, &VerifyOutcome::before);
    if (!plan_.verify_only) {
      time_all();
      if (verifies && config_.verify == "both" && !is_interrupted())
        verify_all(*reference, &VerifyOutcome::after);
      finish_measurements();
    }
    collect();
  }

 private:
  template <class Make>
  void add(const std::string& name, bool is_baseline, const std::string& unsupported,
           const Make& make) {
    RunnerResult missing;
    missing.name = name;
    missing.status = Status::skipped;
    missing.reason = unsupported;
    if (unsupported.empty()) {
      try {
        contenders_.push_back(make());
        return;
      } catch (const Error& error) {
        missing.status = status_of(error.code());
        missing.reason = error.what();
        note_fatal(error);
      }
    }
    (is_baseline ? result_.baselines : result_.strategies).push_back(std::move(missing));
  }

  void add_contenders() {
    const Context& context = plan_.context;
    for (const std::string& name : strategy_names()) {
      add(name, false, workload_->unsupported_reason(name), [&] {
        auto contender = std::make_unique<Contender>(context, stream_.get(), *workload_, name);
        contender->result.verified = is_trusted(contender->chosen_strategy());
        return contender;
      });
    }
    for (const Baseline baseline : plan_.baselines) {
      if (baseline != Baseline::loop && context.device().type == DeviceType::cpu) continue;
      add(std::string(to_string(baseline)), true, workload_->baseline_unsupported_reason(), [&] {
        return std::make_unique<Contender>(context, stream_.get(), *workload_, baseline);
      });
    }
  }

  std::vector<std::string> strategy_names() const {
    if (!plan_.strategies.empty()) return plan_.strategies;
    std::vector<std::string> names;
    for (const catalog::StrategyInfo& info : request_.spec->strategies) {
      if (info.device == plan_.context.device().type) names.emplace_back(info.name);
    }
    return names;
  }

  /// A strategy of this repository's kernels is trusted on a GPU once evidence says so; the CPU's
  /// are judged by the tests of every build.
  bool is_trusted(const std::string& strategy) const {
    const DeviceInfo& device = plan_.context.info();
    if (device.device.type == DeviceType::cpu) return true;
    for (const catalog::StrategyInfo& info : request_.spec->strategies) {
      if (info.name == strategy && info.device == DeviceType::cuda &&
          info.kind == catalog::StrategyKind::hand_written) {
        return is_verified(request_.spec->name, strategy, device.compute_capability);
      }
    }
    return true;
  }

  void note_fatal(const Error& error) {
    if (error.code() == ErrorCode::cuda) fatal_ = error.what();
  }

  /// Runs `body` for one contender; what it throws is that contender's failure.
  template <class F>
  void guarded(Contender& contender, const F& body) {
    try {
      body();
    } catch (const Error& error) {
      contender.result.status = status_of(error.code());
      contender.result.reason = error.what();
      note_fatal(error);
    } catch (const std::exception& error) {
      contender.result.status = Status::failed;
      contender.result.reason = error.what();
    }
  }

  void verify_all(const catalog::ReferenceSample& reference, std::string VerifyOutcome::*phase) {
    for (const auto& contender : contenders_) {
      if (contender->result.status != Status::ok) continue;
      guarded(*contender, [&] { contender->verify(reference, phase); });
    }
  }

  std::vector<Contender*> ranked() const {
    std::vector<Contender*> fit;
    for (const auto& contender : contenders_) {
      if (contender->result.status == Status::ok) fit.push_back(contender.get());
    }
    return fit;
  }

  void warm_up(const std::vector<Contender*>& fit, double budget_s) {
    const auto start = Clock::now();
    const double limit = std::min(config_.warmup_s, budget_s / 4);
    do {
      for (Contender* contender : fit) guarded(*contender, [&] { contender->run_once(); });
      plan_.context.synchronize(stream_.get());
    } while (seconds_since(start) < limit && !is_interrupted() && !fit.empty());
  }

  double time_left() const {
    if (request_.budget_s <= 0) return config_.timeout_s;
    return std::max(0.05, 0.9 * request_.budget_s - seconds_since(start_));
  }

  void time_all() {
    std::vector<Contender*> fit = ranked();
    const double limit = time_left();
    warm_up(fit, limit);
    for (Contender* contender : fit) {
      guarded(*contender, [&] {
        contender->make_samplers(config_.regimes, request_.calibration.timer_quantum_ns);
      });
    }
    std::shuffle(fit.begin(), fit.end(), std::mt19937_64(config_.order_seed));
    const int64_t per_round =
        std::max<int64_t>(1, (config_.min_samples + config_.rounds - 1) / config_.rounds);
    const auto start = Clock::now();
    int64_t taken = 0;
    std::string reason;
    for (int64_t round = 0; reason.empty(); ++round) {
      for (Contender* contender : fit) {
        if (is_interrupted()) break;
        if (contender->result.status != Status::ok) continue;
        guarded(*contender, [&] { contender->sample_block(round, per_round); });
      }
      std::reverse(fit.begin(), fit.end());
      taken += per_round;
      const int64_t rounds = round + 1;
      if (is_interrupted()) {
        reason = "interrupted";
      } else if (rounds >= kMinRounds && seconds_since(start) >= limit) {
        reason = "timeout";
      } else if (taken >= config_.max_samples) {
        reason = "max_samples";
      } else if (rounds >= config_.rounds && taken >= config_.min_samples && rounds % 4 == 0 &&
                 is_settled(fit)) {
        reason = "ci";
      }
    }
    const double walltime = seconds_since(start);
    for (Contender* contender : fit) {
      for (Measurement& m : contender->result.measurements) {
        m.stop_reason = reason;
        m.walltime_s = walltime;
      }
    }
  }

  /// Every interval of a median is narrow enough.
  bool is_settled(const std::vector<Contender*>& fit) const {
    for (const Contender* contender : fit) {
      for (const Measurement& m : contender->result.measurements) {
        const Interval interval = bootstrap_median(m.samples_ns, 1, 200);
        const double centre = median(m.samples_ns);
        if (!(interval.hi - interval.lo <= 2 * config_.target_ci_pct / 100 * centre)) return false;
      }
    }
    return true;
  }

  void finish_measurements() {
    for (const auto& contender : contenders_) {
      for (Measurement& m : contender->result.measurements) {
        m.stats = describe_samples(m.samples_ns, config_.seed);
        m.few_samples = m.stats.n < kReliableSamples;
        const double time = m.stats.median_ns;
        m.below_resolution = time * static_cast<double>(m.iters_per_sample) <
                             kResolution * request_.calibration.timer_floor_ns;
        if (!(time > 0)) continue;
        m.flops_per_s = result_.cost.flops / (time * 1e-9);
        m.mem_bw_bytes_per_s = result_.cost.bytes() / (time * 1e-9);
        m.pct_of_floor = 100 * result_.floor_ns / time;
        judge_plausibility(contender->result, time);
      }
    }
  }

  /// Bandwidth is judged only where the operands cannot have stayed in the last-level cache.
  void judge_plausibility(RunnerResult& result, double time) const {
    const bool outgrows_cache =
        result_.footprint_bytes >= 4 * plan_.context.info().last_level_cache_bytes;
    const char* what = floor_.flops_ns > kPlausible * time                     ? "flops"
                       : outgrows_cache && floor_.bytes_ns > kPlausible * time ? "bytes"
                                                                               : nullptr;
    if (what == nullptr || result.status != Status::ok) return;
    result.status = Status::implausible;
    result.reason = std::string("faster than the measured ceiling of ") + what;
  }

  void collect() {
    for (const auto& strategy : contenders_) {
      if (strategy->is_baseline()) continue;
      for (const auto& baseline : contenders_) {
        if (baseline->is_baseline()) add_speedups(strategy->result, *baseline);
      }
    }
    for (const auto& contender : contenders_) {
      (contender->is_baseline() ? result_.baselines : result_.strategies)
          .push_back(contender->result);
    }
    for (const auto* group : {&result_.strategies, &result_.baselines}) {
      for (const RunnerResult& runner : *group) raise_status(runner);
    }
  }

  /// A case is as bad as its worst strategy; a strategy that cannot run here does it no harm.
  void raise_status(const RunnerResult& runner) {
    static constexpr Status kOrder[] = {Status::ok,           Status::skipped, Status::timeout,
                                        Status::oom,          Status::failed,  Status::implausible,
                                        Status::verify_failed};
    if (runner.status == Status::skipped) return;
    const auto rank = [](Status status) {
      return std::find(std::begin(kOrder), std::end(kOrder), status);
    };
    if (rank(runner.status) <= rank(result_.status)) return;
    result_.status = runner.status;
    result_.reason = runner.name + ": " + runner.reason;
  }

  static std::vector<double> round_medians(const Measurement& m) {
    std::map<int64_t, std::vector<double>> rounds;
    for (size_t i = 0; i < m.samples_ns.size(); ++i)
      rounds[m.samples_round[i]].push_back(m.samples_ns[i]);
    std::vector<double> medians;
    for (const auto& [round, samples] : rounds) medians.push_back(median(samples));
    return medians;
  }

  void add_speedups(const RunnerResult& strategy, const Contender& baseline) {
    for (const Measurement& mine : strategy.measurements) {
      for (const Measurement& theirs : baseline.result.measurements) {
        if (mine.regime != theirs.regime) continue;
        Speedup speedup{strategy.name,   baseline.baseline(), mine.regime, 0, {}, {}, {},
                        "not_comparable"};
        const bool is_fair = strategy.status == Status::ok &&
                             baseline.result.status == Status::ok && !mine.below_resolution &&
                             !theirs.below_resolution;
        const auto ratio =
            is_fair ? paired_ratio(round_medians(theirs), round_medians(mine), config_.seed)
                    : std::nullopt;
        if (ratio) {
          speedup.pairs = ratio->pairs;
          speedup.speedup_ratio = ratio->value;
          speedup.ci_lo = ratio->interval.lo;
          speedup.ci_hi = ratio->interval.hi;
          speedup.verdict = verdict_of(*ratio);
        }
        result_.speedups.push_back(std::move(speedup));
      }
    }
  }

  const CaseRequest& request_;
  const RunPlan& plan_;
  const RunConfig& config_;
  CaseResult& result_;
  std::string& fatal_;
  Clock::time_point start_;
  OwnedStream stream_;
  catalog::Workload* workload_ = nullptr;
  Floor floor_;
  std::vector<std::unique_ptr<Contender>> contenders_;
};

}  // namespace

CaseResult run_case(const CaseRequest& request, std::string& fatal) {
  CaseResult result;
  result.point = request.point;
  result.op_version = request.spec->version;
  result.case_id = case_id(*request.spec, request.point);
  result.reproduce = reproduce_command(request.point);
  try {
    CaseRunner(request, result, fatal).run();
  } catch (const Error& error) {
    result.status = status_of(error.code());
    result.reason = error.what();
    if (error.code() == ErrorCode::cuda) fatal = error.what();
  } catch (const std::bad_alloc&) {
    result.status = Status::oom;
    result.reason = "the host has no memory for this case";
  } catch (const std::exception& error) {
    result.status = Status::failed;
    result.reason = error.what();
  }
  return result;
}

}  // namespace wide::bench
