// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Errors stay where they belong: with the strategy or baseline that they happened to, with
// the case if the operands could not be made, and with the sweep only if the device is lost.
#include "bench/run/case_runner.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "bench/document/case_id.hpp"
#include "bench/process/interrupt.hpp"
#include "bench/process/simulation.hpp"
#include "bench/run/adversarial.hpp"
#include "bench/run/choice.hpp"
#include "bench/run/contender.hpp"
#include "bench/run/counting_allocator.hpp"
#include "bench/run/evaluate.hpp"
#include "bench/run/failure.hpp"
#include "bench/run/own_calls.hpp"
#include "bench/run/peer_calls.hpp"
#include "bench/run/rounds.hpp"
#include "bench/timer/seconds.hpp"
#include "host/core/cpu_device.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/strategy_choice.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kReferenceFlops = 2e8;  // about a quarter of a second of one thread
constexpr double kBudgetUse = 0.9;       // of a case's share; the rest is reserve

/// Writes the current exception to the result of a case or of a contender.
template <class Result>
void note_failure(Result& result, const Context& context, std::string& fatal) {
  const Failure failure = current_failure(context);
  result.status = failure.status;
  result.reason = failure.reason;
  if (failure.is_device_lost) fatal = failure.reason;
}

/// n * batch, if there are such axes.
double items_of(const catalog::Case& point) {
  double items = 1;
  int found = 0;
  for (const auto& entry : point.entries()) {
    if (entry.name != "n" && entry.name != "batch") continue;
    items *= static_cast<double>(std::get<int64_t>(entry.value));
    ++found;
  }
  return found == 2 ? items : 0;
}

/// Of any primitive's workload. A call without outputs returns at once: what operands it has are
/// not read, and counted they would make it faster than the device.
catalog::Cost cost_of(const catalog::Workload& workload) {
  for (int64_t member = 0; member < workload.num_outputs(); ++member) {
    if (workload.rows(member) * workload.row_length(member) > 0) return workload.cost();
  }
  return {};
}

bool allows_tf32(const catalog::Case& point) {
  const auto allows = [](const catalog::Case::Entry& entry) {
    return entry.name == "tf32" && entry.value == catalog::AxisValue("yes");
  };
  return std::any_of(point.entries().begin(), point.entries().end(), allows);
}

/// From prepare() on, even if that throws, it makes sure that the peer forgets the case.
class PreparedPeer {
 public:
  explicit PreparedPeer(Peer& peer) : peer_(&peer) {}
  ~PreparedPeer() { peer_->forget(); }
  PreparedPeer(const PreparedPeer&) = delete;

 private:
  Peer* peer_;
};

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
    const int64_t before = present_bytes();
    workload_ = make_workload(workload_options());
    workload_bytes_ = present_bytes() - before;
    // Before the first of them is filled, which on a GPU takes as much of the host's.
    require_available_memory(static_cast<double>(workload_bytes_), "the case's operands take");
    (void)workload_->input_views();  // fills them, so that the first plan's time has no part of it
    result_.cost = cost_of(*workload_);
    if (result_.cost.items <= 0) result_.cost.items = items_of(request_.point);
    result_.footprint_bytes = workload_->footprint_bytes();
    find_floor(request_.calibration);
    add_contenders();
    if (contenders_.empty()) return collect();
    double checking_s = 0;
    std::unique_ptr<catalog::ReferenceSample> reference;
    if (config_.verify != "off") {
      reference =
          std::make_unique<catalog::ReferenceSample>(*workload_, reference_flops(), config_.seed);
      const auto verification = Clock::now();
      verify_all(*reference, &VerifyOutcome::before);
      checking_s = seconds_since(verification);
    }
    if (plan_.config.is_adversarial) verify_hostile();
    for (const auto& contender : contenders_) {
      guarded(*contender, [&] {
        if (!reference && !is_cpu()) contender->run_once();  // so that what is captured is loaded
        contender->describe_launches();
      });
    }
    if (plan_.profiled_calls > 0) profile_all();
    if (!plan_.verify_only) {
      const bool verifies_after = reference && config_.verify == "both";
      const double after = num_checks_after(regimes_of(plan_));
      time_all(verifies_after ? after * checking_s : 0);
      if (plan_.on_timed) report_times();
      if (verifies_after) verify_all(*reference, &VerifyOutcome::after);
      evaluate_all();
    }
    collect();
  }

 private:
  /// How the case's own operands are laid out and filled.
  catalog::WorkloadOptions workload_options() const {
    catalog::WorkloadOptions options;
    options.seed = config_.seed;
    options.fill = fill_of(config_.init);
    return options;
  }
  std::unique_ptr<catalog::Workload> make_workload(const catalog::WorkloadOptions& options) const {
    return request_.spec->make_workload(plan_.context, request_.point, options);
  }

  void verify_hostile() {
    const Adversary adversary{*request_.spec, config_.seed, reference_flops(),
                              [this](const auto& options) { return make_workload(options); },
                              workload_options()};
    verify_adversarially(adversary, contenders_,
                         [this](Contender& contender, const std::function<void()>& body) {
                           guarded(contender, body);
                         });
  }

  /// Adds a result in its place; if a contender can be made, its result replaces it in the end.
  template <class Make>
  void add(std::vector<RunnerResult>& group, std::string_view name, const std::string& unsupported,
           const Make& make) {
    RunnerResult& place = group.emplace_back();
    place.name = name;
    if (!unsupported.empty()) {
      place.status = Status::skipped;
      place.reason = unsupported;
      return;
    }
    try {
      CountingAllocator* const memory = counter();
      const int64_t before = present_bytes();
      if (memory != nullptr) memory->restart_peak();
      contenders_.push_back(make());
      save_checked(*contenders_.back());
      if (memory != nullptr && contenders_.back()->result.peer.empty()) {
        contenders_.back()->result.peak_device_bytes =
            workload_bytes_ + memory->peak_bytes() - before;
      }
    } catch (...) {
      note_failure(place);
    }
  }

  /// Sets up saving of the calls that --save-workspace selects.
  void save_checked(Contender& contender) {
    if (plan_.saving.when == SavingRule::When::never) return;
    contender.on_checked = [this, name = contender.result.name](const CheckedCall& checked) {
      if (!plan_.saving.applies(checked.finding.empty())) return std::string();
      const CallName call{std::string(request_.spec->name), result_.case_id, name, checked.phase,
                          result_.reproduce + plan_.reproduce_suffix};
      return save_call(plan_.saving.folder, call, plan_.context, stream_.get(), checked.workload,
                       checked.reference, checked.outputs, checked.finding);
    };
  }

  void add_contenders() {
    const Context& context = plan_.context;
    for (const std::string& name : strategies_of(plan_, *request_.spec)) {
      PlanOptions options = plan_options(name);
      options.tuning = plan_.tuning;
      options.search_algorithms = !plan_.verify_only;
      // With a cache, only the plan knows what "auto" resolves to.
      const bool asks_plan = is_automatic(options.strategy) && options.tuning != nullptr;
      const std::string unsupported =
          asks_plan ? "" : workload_->unsupported_reason(options.strategy);
      add(result_.strategies, name, unsupported, [&] {
        auto contender = std::make_unique<Contender>(
            name, std::make_unique<OwnCalls>(context, stream_.get(), *workload_, options),
            *workload_);
        contender->result.verified =
            is_trusted(plan_.context, *request_.spec, contender->result.strategy);
        return contender;
      });
    }
    if (has_no_named_strategy()) return;
    const std::vector<Regime> regimes = regimes_of(plan_);
    for (const Baseline baseline : plan_.baselines) {
      const auto is_timed = [&](Regime regime) { return is_partner(baseline, regime); };
      if (std::none_of(regimes.begin(), regimes.end(), is_timed)) continue;
      if (baseline == Baseline::streams && is_cpu()) continue;  // the CPU has no streams
      const auto calls = [&] {
        return std::make_unique<OwnCalls>(context, stream_.get(), *workload_, baseline);
      };
      const std::string name(to_string(baseline));
      add(result_.baselines, name, workload_->baseline_unsupported_reason(),
          [&] { return std::make_unique<Contender>(name, calls(), *workload_, baseline); });
      if (!config_.aa || result_.baselines.back().status != Status::ok) continue;
      contenders_.push_back(
          std::make_unique<Contender>(name + "#2", calls(), *workload_, baseline, true));
    }
    for (Peer* peer : plan_.peers) add_peer(*peer);
  }

  /// Strategies were requested but none can run: then there is nothing to compare baselines with.
  bool has_no_named_strategy() const {
    return !plan_.strategies.empty() && plan_.peers.empty() &&
           std::all_of(result_.strategies.begin(), result_.strategies.end(),
                       [](const RunnerResult& r) { return r.status == Status::skipped; });
  }

  /// Adds all offers of a peer; if it cannot even make any, a result under its name.
  void add_peer(Peer& peer) {
    auto prepared = std::make_unique<PreparedPeer>(peer);
    std::vector<PeerOffer> offers;
    try {
      offers = peer.prepare(request_.point, plan_.context, stream_.get(), *workload_,
                            static_cast<int64_t>(cold_rule().covered_bytes()));
    } catch (...) {
      RunnerResult& place = result_.baselines.emplace_back();
      place.name = peer.name();
      place.peer = peer.title();
      note_failure(place);
      return;
    }
    const Dtype dtype = workload_->read_outputs(catalog::OutputOf::strategy, stream_.get()).dtype;
    for (const PeerOffer& offer : offers) {
      const std::string name = peer.name() + ":" + offer.name;
      add(result_.baselines, name, offer.unsupported, [&] {
        return std::make_unique<Contender>(
            name, std::make_unique<PeerCalls>(peer, offer, *workload_, dtype), *workload_,
            Baseline::peer);
      });
      result_.baselines.back().peer = peer.title();
    }
    peers_.push_back(std::move(prepared));
  }

  /// The context's allocator, if it is a counting one.
  CountingAllocator* counter() const {
    return dynamic_cast<CountingAllocator*>(&plan_.context.allocator());
  }
  int64_t present_bytes() const { return counter() == nullptr ? 0 : counter()->present_bytes(); }

  bool is_cpu() const { return plan_.context.device().type == DeviceType::cpu; }

  /// Makes the current exception this contender's failure.
  void note_failure(RunnerResult& runner) { bench::note_failure(runner, plan_.context, fatal_); }

  /// Runs `body` for one contender; an exception is that contender's failure.
  template <class F>
  void guarded(Contender& contender, const F& body) {
    if (contender.result.status != Status::ok) return;
    try {
      body();
    } catch (...) {
      note_failure(contender.result);
    }
  }

  /// Within a budget the references of a case may take about a tenth of its share.
  double reference_flops() const {
    if (plan_.compares_all) return std::numeric_limits<double>::infinity();
    if (request_.budget_s <= 0) return kReferenceFlops;
    constexpr double kFlopsPerSecond = 8e8;
    return std::min(kReferenceFlops, 0.1 * request_.budget_s * kFlopsPerSecond);
  }

  void verify_all(const catalog::ReferenceSample& reference, std::string VerifyOutcome::*phase) {
    for (const auto& contender : contenders_) {
      if (is_interrupted()) return;
      guarded(*contender, [&] { contender->verify(reference, phase); });
      if (plan_.on_check_ended) plan_.on_check_ended(contender->result.name);
    }
  }

  /// Seconds that timing may take; `reserved_s` are kept for verification after it.
  double time_limit(double reserved_s) const {
    if (request_.budget_s <= 0) return config_.timeout_s;
    const double left = kBudgetUse * request_.budget_s - seconds_since(start_) - reserved_s;
    return std::clamp(left, 0.01, config_.timeout_s);
  }

  /// The bytes of operands that one call touches: of an embedding's tables, only a few rows.
  int64_t touched_bytes() const {
    return std::min(result_.footprint_bytes, static_cast<int64_t>(result_.cost.bytes()));
  }

  ColdRule cold_rule() const {
    return {config_.cache, config_.l2_factor, plan_.context.info().last_level_cache_bytes,
            touched_bytes(), result_.footprint_bytes};
  }

  /// With copies of the operands if cold calls take them in turn.
  Sampling sampling() {
    Sampling s{regimes_of(plan_), request_.calibration.timer_quantum_ns, cold_rule(), {}};
    const bool is_cold =
        std::find(s.regimes.begin(), s.regimes.end(), Regime::cold) != s.regimes.end();
    if (!is_cold) return s;
    try {
      for (int64_t i = 1; i < copies_of(s.cold); ++i) {
        copies_.push_back(make_workload(workload_options()));
        s.copies.push_back(copies_.back().get());
      }
    } catch (const Error&) {  // without a flush, the contenders report why they lack regime cold
      s.copies.clear();
      copies_.clear();
      s.cold.footprint_bytes = std::numeric_limits<int64_t>::max();  // single calls behind a flush
    }
    return s;
  }

  /// Warm calls, a known number of each contender's, and nothing else between start and stop. The
  /// stream is not blocked, and there are no events in between: a profiler serialises launches.
  void profile_all() {
    for (const auto& contender : contenders_) {
      guarded(*contender, [&] {
        contender->run_once();
        if (plan_.profiles_graph) contender->replay_from_now_on();
      });
    }
    const ProfilerRange range(plan_.context);
    const NvtxRange named(kProfiledRange);
    do {
      for (const auto& contender : contenders_)
        guarded(*contender, [&] { contender->profile(plan_.profiled_calls); });
    } while (plan_.profiles_endlessly && !is_interrupted());
  }

  void time_all(double reserved_s) {
    std::vector<Contender*> fit;
    for (const auto& contender : contenders_) {
      if (contender->result.status == Status::ok) fit.push_back(contender.get());
    }
    const Timing timing{config_, sampling(), time_limit(reserved_s), request_.monitor};
    time_in_rounds(fit, timing, [this](Contender& contender, const std::function<void()>& body) {
      guarded(contender, body);
    });
  }

  void find_floor(const Calibration& c) {
    floor_ = floor_of(c, result_.cost, request_.point.dtype(), allows_tf32(request_.point));
    result_.floor_ns = floor_.total_ns();
  }

  /// What checks may still refuse, with its statistics.
  void report_times() {
    const Yardstick yardstick = yardstick_of(request_.calibration);
    for (const auto& contender : contenders_) {
      RunnerResult timed = contender->result;
      if (timed.status != Status::ok || contender->is_twin()) continue;
      evaluate(timed, yardstick);
      plan_.on_timed(result_, timed);
    }
  }

  Yardstick yardstick_of(const Calibration& c) const {
    const int64_t cache = plan_.context.info().last_level_cache_bytes;
    const bool outgrows_cache = cache > 0 && touched_bytes() >= 4 * cache;
    return {result_.cost,
            floor_,
            c.timer_floor_ns,
            outgrows_cache,
            config_.seed,
            c.timer_quantum_ns,
            peaks_of(plan_.context, c, request_.point.dtype()),
            !is_cpu(),
            config_};
  }

  void evaluate_all() {
    const Calibration c = request_.judged_ceilings();
    find_floor(c);
    const Yardstick yardstick = yardstick_of(c);
    const auto known = [](double peak) { return peak > 0 ? std::optional(peak) : std::nullopt; };
    result_.peak_flops_per_s = known(yardstick.peaks.flops_per_s);
    result_.peak_mem_bw_bytes_per_s = known(yardstick.peaks.mem_bw_bytes_per_s);
    for (const auto& contender : contenders_) {
      try {
        evaluate(contender->result, yardstick);
      } catch (...) {
        note_failure(contender->result);
      }
    }
    find_launch_overheads();
  }

  /// A strategy and `streams` have both regimes themselves; the loop's replays are the baseline
  /// `graph`. Graph replays have no host launches.
  void find_launch_overheads() {
    RunnerResult* loop = nullptr;
    const RunnerResult* graph = nullptr;
    for (const auto& contender : contenders_) {
      RunnerResult& runner = contender->result;
      find_launch_overhead(runner, runner);
      if (!contender->is_baseline()) continue;
      if (runner.name == to_string(Baseline::loop)) loop = &runner;
      if (runner.name == to_string(Baseline::graph)) graph = &runner;
    }
    if (loop != nullptr && graph != nullptr) find_launch_overhead(*loop, *graph);
  }

  void collect() {
    for (const auto& contender : contenders_) {
      std::erase_if(contender->result.measurements,
                    [](const Measurement& m) { return m.samples_ns.empty(); });
      auto& group = contender->is_baseline() ? result_.baselines : result_.strategies;
      for (RunnerResult& place : group) {
        if (place.name == contender->result.name) place = contender->result;
      }
    }
    for (auto* group : {&result_.strategies, &result_.baselines}) {
      for (RunnerResult& runner : *group)
        runner.reason = simulated_reason(std::move(runner.reason));
    }
    for (const auto& twin : contenders_) {
      for (const RunnerResult& baseline : result_.baselines) {
        if (!twin->is_twin() || twin->result.name != baseline.name + "#2") continue;
        for (NoiseFloor& floor : find_noise_floors(baseline, twin->result, config_.seed))
          result_.noise_floors.push_back(floor);
      }
    }
    result_.speedups =
        find_speedups(result_.strategies, result_.baselines, config_.seed, result_.noise_floors);
    settle_status(result_);
  }

  const CaseRequest& request_;
  const RunPlan& plan_;
  const RunConfig& config_;
  CaseResult& result_;
  std::string& fatal_;
  Clock::time_point start_;
  OwnedStream stream_;
  int64_t workload_bytes_ = 0;
  std::unique_ptr<catalog::Workload> workload_;             // outlives the contenders, which run it
  std::vector<std::unique_ptr<catalog::Workload>> copies_;  // the same
  Floor floor_;
  std::vector<std::unique_ptr<PreparedPeer>> peers_;  // outlive the contenders, too
  std::vector<std::unique_ptr<Contender>> contenders_;
};

}  // namespace

CaseResult run_case(const CaseRequest& request, std::string& fatal) {
  CaseResult result;
  result.point = request.point;
  result.op_version = request.spec->version;
  result.case_id = case_id(*request.spec, request.point);
  result.reproduce = reproduce_command(request.point, request.plan->command);
  try {
    CaseRunner(request, result, fatal).run();
  } catch (...) {
    note_failure(result, request.plan->context, fatal);
  }
  return result;
}

}  // namespace wide::bench
