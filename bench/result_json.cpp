// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Writing. What is not finite becomes null.
#include "bench/result_json.hpp"

#include <cmath>
#include <map>

#include "bench/doubts.hpp"
#include "bench/metrics.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}
Json number(const std::optional<double>& value) {
  return value ? number(*value) : Json(nullptr);
}
Json number(const std::optional<int64_t>& value) {
  return value ? Json(*value) : Json(nullptr);
}
/// Zero stands for "not known" in quantities that cannot be zero.
Json known(double value) {
  return value > 0 ? number(value) : Json(nullptr);
}
Json known(int64_t value) {
  return value > 0 ? Json(value) : Json(nullptr);
}
Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json normality(const Normality& n) {
  return {{"unit", "round_median"},
          {"test", n.test},
          {"statistic", number(n.statistic)},
          {"p", number(n.p)}};
}

Json dip(const Dip& d) {
  return {{"unit", "sample"},
          {"test", "hartigan_dip"},
          {"statistic", number(d.statistic)},
          {"p", number(d.p)}};
}

Json statistics(const Statistics& s) {
  const Outliers& o = s.outliers;
  return {{"n", s.n},
          {"mean_ns", number(s.mean_ns)},
          {"stdev_ns", number(s.stdev_ns)},
          {"cv_pct", number(s.cv_pct)},
          {"min_ns", number(s.min_ns)},
          {"p5_ns", number(s.p5_ns)},
          {"q1_ns", number(s.q1_ns)},
          {"median_ns", number(s.median_ns)},
          {"q3_ns", number(s.q3_ns)},
          {"p95_ns", number(s.p95_ns)},
          {"p99_ns", number(s.p99_ns)},
          {"max_ns", number(s.max_ns)},
          {"mad_ns", number(s.mad_ns)},
          {"iqr_ns", number(s.iqr_ns)},
          {"ci",
           {{"level", 0.95},
            {"method", s.ci_method},
            {"of", "median"},
            {"lo_ns", number(s.ci_lo_ns)},
            {"hi_ns", number(s.ci_hi_ns)},
            {"resamples", known(s.ci_resamples)}}},
          {"ci_mean_t", {{"lo_ns", number(s.ci_mean_lo_ns)}, {"hi_ns", number(s.ci_mean_hi_ns)}}},
          {"outliers",
           {{"method", "tukey"},
            {"mild_low", o.mild_low},
            {"mild_high", o.mild_high},
            {"severe_low", o.severe_low},
            {"severe_high", o.severe_high},
            {"removed", 0}}},
          {"normality", s.normality ? normality(*s.normality) : Json(nullptr)},
          {"trend_pct_per_s", number(s.trend_pct_per_s)},
          {"autocorr_lag1", number(s.autocorr_lag1)},
          {"between_round_cv_pct", number(s.between_round_cv_pct)},
          {"trend_p", number(s.trend_p)},
          {"dip", s.dip ? dip(*s.dip) : Json(nullptr)},
          {"modes", s.dip ? Json(s.dip->modes()) : Json(nullptr)},
          {"reliable", s.doubts ? Json(s.doubts->empty()) : Json(nullptr)},
          {"doubts", s.doubts.value_or(std::vector<std::string>())}};
}

Json clocks(const Clocks& c) {
  return {{"sm_mhz_median", number(c.sm_mhz_median)},
          {"sm_mhz_min", number(c.sm_mhz_min)},
          {"throttle_reasons", c.throttle_reasons},
          {"temp_c", number(c.temp_c)},
          {"power_w", number(c.power_w)}};
}

Json energy(const Energy& e) {
  return {{"valid", e.invalid_reason.empty()},
          {"method", e.method},
          {"window_s", number(e.window_s)},
          {"joules", number(e.joules)},
          {"joules_per_call", number(e.joules_per_call)},
          {"avg_w", number(e.avg_w)},
          {"idle_w", number(e.idle_w)},
          {"invalid_reason", text_or_null(e.invalid_reason)}};
}

Json measurement(const Measurement& m) {
  Json warnings = Json::array();
  for (const std::string& text : m.warnings) warnings.push_back({{"text", text}});
  Json samples = {{"time_ns", m.samples_ns}, {"round", m.samples_round}};
  if (!m.samples_sm_mhz.empty()) samples["sm_mhz"] = m.samples_sm_mhz;
  return {
      {"regime", to_string(m.regime)},
      {"timer", m.timer},
      {"iters_per_sample", m.iters_per_sample},
      {"stop_reason", m.stop_reason},
      {"walltime_s", number(m.walltime_s)},
      {"below_resolution", m.below_resolution},
      {"few_samples", m.few_samples},
      {"samples", samples},
      {"stats", statistics(m.stats)},
      {"rates",
       {{"flops_per_s", number(m.flops_per_s)},
        {"mem_bw_bytes_per_s", number(m.mem_bw_bytes_per_s)},
        {"pct_of_floor", number(m.pct_of_floor)}}},
      {"warnings", warnings},
      {"cache", to_string(m.cache)},
      {"buffers_rotated", m.buffers_rotated},
      {"rotation_covers_l2", m.rotation_covers_l2 ? Json(*m.rotation_covers_l2) : Json(nullptr)},
      {"discarded_throttle", m.discarded_throttle},
      {"kept_throttle", m.kept_throttle},
      {"clocks", m.clocks ? clocks(*m.clocks) : Json(nullptr)},
      {"energy", m.energy ? energy(*m.energy) : Json(nullptr)},
      {"host",
       {{"enqueue_ns_per_call", number(m.enqueue_ns_per_call)},
        {"launch_overhead_ns_per_launch", number(m.launch_overhead_ns_per_launch)}}}};
}

Json values(const LaunchCounters::Values& named) {
  Json object = Json::object();
  for (const auto& [name, value] : named) object[name] = value;
  return object;
}

Json launch(const LaunchCounters& l) {
  Json buffers = Json::array();
  for (const LaunchCounters::Buffer& b : l.buffers)
    buffers.push_back({{"name", b.name}, {"counters", values(b.values)}});
  return {{"kernel", l.kernel},
          {"grid", l.grid},
          {"block", l.block},
          {"counters", values(l.values)},
          {"buffers", buffers}};
}

Json kernel(const KernelUse& k) {
  return {{"name", k.name},
          {"grid", k.grid},
          {"block", k.block},
          {"regs", number(k.registers)},
          {"smem_static_bytes", k.static_shared_bytes},
          {"smem_dyn_bytes", k.dynamic_shared_bytes},
          {"local_bytes", k.local_bytes},
          {"blocks_per_sm", k.blocks_per_sm},
          {"occupancy_pct", number(k.occupancy_pct)}};
}

Json runner(const RunnerResult& r) {
  Json measurements = Json::array(), kernels = Json::array();
  for (const KernelUse& k : r.kernels) kernels.push_back(kernel(k));
  for (const Measurement& m : r.measurements) measurements.push_back(measurement(m));
  const VerifyOutcome& v = r.verify;
  Json document = {{"name", r.name},
                   {"strategy", text_or_null(r.strategy)},
                   {"policy", text_or_null(r.policy)},
                   {"status", to_string(r.status)},
                   {"reason", text_or_null(r.reason)},
                   {"verified", r.verified},
                   {"explain", text_or_null(r.explain)},
                   {"verify",
                    {{"reference", "cpu_fp64"},
                     {"before", v.before},
                     {"after", v.after},
                     {"worst_error_ratio", number(v.worst_error_ratio)},
                     {"worst_member", v.worst_member >= 0 ? Json(v.worst_member) : Json(nullptr)},
                     {"mismatches", v.mismatches},
                     {"nan_count", v.nan_count},
                     {"elements_compared", v.elements_compared},
                     {"elements", v.elements},
                     {"message", text_or_null(v.message)}}},
                   {"memory",
                    {{"workspace_bytes", r.workspace_bytes},
                     {"peak_device_bytes", number(r.peak_device_bytes)}}},
                   {"launches_per_call", number(r.launches_per_call)},
                   {"kernels", kernels},
                   {"measurements", measurements}};
  for (const LaunchCounters& l : r.launches) document["launches"].push_back(launch(l));
  return document;
}

Json speedups_of(const CaseResult& c, const std::string& strategy) {
  Json array = Json::array();
  for (const Speedup& s : c.speedups) {
    if (s.strategy != strategy) continue;
    array.push_back({{"baseline", to_string(s.baseline)},
                     {"regime", to_string(s.regime)},
                     {"pairs", s.pairs},
                     {"speedup_ratio", number(s.speedup_ratio)},
                     {"ci_lo", number(s.ci_lo)},
                     {"ci_hi", number(s.ci_hi)},
                     {"verdict", s.verdict},
                     {"aa_floor_pct", number(s.aa_floor_pct)},
                     {"p_wilcoxon", number(s.p_wilcoxon)}});
  }
  return array;
}

Json noise_floors(const CaseResult& c) {
  Json array = Json::array();
  for (const NoiseFloor& f : c.noise_floors) {
    array.push_back({{"baseline", to_string(f.baseline)},
                     {"regime", to_string(f.regime)},
                     {"pairs", f.pairs},
                     {"ratio", number(f.ratio)},
                     {"ci_lo", number(f.ci_lo)},
                     {"ci_hi", number(f.ci_hi)},
                     {"floor_pct", number(f.floor_pct)}});
  }
  return array;
}

/// What a reader wants first: per regime, the strategy with the smallest median among those that
/// are right.
Json case_summary(const CaseResult& c) {
  Json best = Json::object();
  std::map<Regime, double> least;
  for (const RunnerResult& r : c.strategies) {
    if (r.status != Status::ok) continue;
    for (const Measurement& m : r.measurements) {
      const auto [entry, is_new] = least.emplace(m.regime, m.stats.median_ns);
      if (!is_new && !(m.stats.median_ns < entry->second)) continue;
      entry->second = m.stats.median_ns;
      best[std::string(to_string(m.regime))] = r.name;
    }
  }
  std::optional<double> ratio;
  for (const Speedup& s : c.speedups) {
    if (s.speedup_ratio && !(ratio && *ratio >= *s.speedup_ratio)) ratio = s.speedup_ratio;
  }
  return {{"best_strategy", best}, {"best_speedup_ratio", number(ratio)}};
}

Json axes(const catalog::Case& point) {
  Json object = Json::object();
  for (const auto& entry : point.entries()) {
    if (const auto* integer = std::get_if<int64_t>(&entry.value)) {
      object[entry.name] = *integer;
    } else {
      object[entry.name] = std::get<std::string>(entry.value);
    }
  }
  return object;
}

Json axes_set(const catalog::Case& point) {
  Json names = Json::array();
  for (const auto& entry : point.entries()) {
    if (!entry.is_default) names.push_back(entry.name);
  }
  return names;
}

Json one_case(const CaseResult& c) {
  Json strategies = Json::array(), baselines = Json::array();
  for (const RunnerResult& r : c.strategies) {
    strategies.push_back(runner(r));
    strategies.back()["vs_baseline"] = speedups_of(c, r.name);
  }
  for (const RunnerResult& r : c.baselines) baselines.push_back(runner(r));
  const double bytes = c.cost.bytes();
  return {{"case_id", c.case_id},
          {"op", c.point.op()},
          {"op_version", c.op_version},
          {"axes", axes(c.point)},
          {"axes_set", axes_set(c.point)},
          {"reproduce", c.reproduce},
          {"status", to_string(c.status)},
          {"reason", text_or_null(c.reason)},
          {"work",
           {{"flops", number(c.cost.flops)},
            {"bytes_read", number(c.cost.bytes_read)},
            {"bytes_written", number(c.cost.bytes_written)},
            {"intensity_flop_per_byte", bytes > 0 ? number(c.cost.flops / bytes) : Json(nullptr)},
            {"footprint_bytes", c.footprint_bytes},
            {"floor_ns", known(c.floor_ns)},
            {"model", "declared"}}},
          {"strategies", strategies},
          {"baselines", baselines},
          {"noise_floors", noise_floors(c)},
          {"summary", case_summary(c)}};
}

Json summary(const OpSummary& s) {
  Json wins = Json::object();
  for (const auto& [name, count] : s.strategy_wins) wins[name] = count;
  return {{"op", s.op},
          {"regime", to_string(s.regime)},
          {"baseline", to_string(s.baseline)},
          {"crossover_n", {{"value", number(s.crossover_n)}}},
          {"recommended_threshold", number(s.recommended_threshold)},
          {"strategy_wins", wins},
          {"best_speedup_ratio", number(s.best_speedup_ratio)},
          {"best_strategy", text_or_null(s.best_strategy)},
          {"best_case", text_or_null(s.best_case)},
          {"geomean_speedup", number(s.geomean_speedup)}};
}

Json clocks(const std::optional<LockedClocks>& locked) {
  Json lock;
  if (locked) lock = {{"asked", locked->asked}, {"sm_mhz", number(locked->sm_mhz)}};
  return {{"locked", lock}};
}

Json device(const RunDevice& d, const std::optional<LockedClocks>& locked) {
  return {{"id", d.device.ordinal},
          {"device", to_string(d.device)},
          {"name", d.name},
          {"uuid", text_or_null(d.uuid)},
          {"pci_bus", text_or_null(d.pci_bus_id)},
          {"compute_capability", d.compute_capability},
          {"sm_count", d.num_multiprocessors},
          {"l2_bytes", known(d.last_level_cache_bytes)},
          {"mem_bytes", known(d.memory_bytes)},
          {"cuda_driver", d.driver_version},
          {"cuda_runtime", d.runtime_version},
          {"clocks", clocks(locked)}};
}

Json config(const RunConfig& c) {
  Json regimes = Json::array();
  for (const Regime regime : c.regimes) regimes.push_back(to_string(regime));
  return {{"preset", c.preset},
          {"regimes", regimes},
          {"cache", to_string(c.cache)},
          {"l2_factor", c.l2_factor},
          {"interleave", c.interleave},
          {"rounds", c.rounds},
          {"order_seed", c.order_seed},
          {"stop",
           {{"criterion", c.stop},
            {"target_ci_pct", c.target_ci_pct},
            {"max_noise_pct", c.max_noise_pct},
            {"min_samples", c.min_samples},
            {"max_samples", c.max_samples},
            {"min_time_s", c.min_time_s},
            {"timeout_s", c.timeout_s},
            {"budget_s", number(c.budget_s)}}},
          {"warmup", {{"time_s", c.warmup_s}, {"clock_tol_pct", c.clock_tol_pct}}},
          {"cooldown_s", c.cooldown_s},
          {"init",
           {{"dist", c.init.dist},
            {"min", number(c.init.min)},
            {"max", number(c.init.max)},
            {"seed", c.seed}}},
          {"verify", c.verify},
          {"throttle", {{"policy", c.throttle}, {"threshold_pct", c.throttle_pct}}},
          {"aa", c.aa},
          {"energy", c.energy}};
}

Json metrics_meta() {
  Json object = Json::object();
  for (const Metric& metric : metrics())
    object[metric.name] = {{"hint", metric.hint}, {"better", to_string(metric.better)}};
  return object;
}

Json totals(const RunResult& r) {
  std::map<std::string, int64_t> counts{
      {"ok", 0},          {"failed", 0},  {"skipped", 0}, {"verify_failed", 0},
      {"implausible", 0}, {"timeout", 0}, {"oom", 0},     {"unreliable", 0}};
  for (const CaseResult& c : r.cases) {
    ++counts[std::string(to_string(c.status))];
    if (is_doubtful(c)) ++counts["unreliable"];
  }
  Json object = {{"cases", r.cases.size()}, {"impossible", r.impossible_cases}};
  for (const auto& [status, count] : counts) object[status] = count;
  return object;
}

}  // namespace

std::string dumped(const Json& document) {
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json to_json(const RunResult& r) {
  Json devices = Json::array(), cases = Json::array(), summaries = Json::array(),
       impossible = Json::object();
  for (const RunDevice& d : r.devices)
    devices.push_back(device(d, devices.empty() ? r.locked_clocks : std::nullopt));
  for (const CaseResult& c : r.cases) cases.push_back(one_case(c));
  for (const OpSummary& s : r.op_summaries) summaries.push_back(summary(s));
  for (const auto& [reason, count] : r.impossible_reasons) impossible[reason] = count;
  Json checks = Json::array();
  for (const EnvironmentCheck& e : r.environment_checks)
    checks.push_back({{"code", e.code}, {"severity", e.severity}, {"text", e.text}});
  Json context = Json::object();
  for (const auto& [name, value] : r.context) context[name] = value;
  Json rates = Json::object();
  for (const auto& [dtype, rate] : r.calibration.flops_per_s) rates[dtype] = number(rate);
  return {{"schema", {{"name", kSchemaName}, {"version", kSchemaVersion}}},
          {"run",
           {{"id", r.id},
            {"started", r.started},
            {"duration_s", number(r.duration_s)},
            {"complete", r.complete},
            {"exit_code", r.exit_code},
            {"argv", r.argv},
            {"note", text_or_null(r.note)},
            {"context", context},
            {"peak_host_bytes", r.peak_host_bytes},
            {"process_isolated", r.config.isolate},
            {"repeat_index", r.config.repeat_index},
            {"repeat_count", r.config.repeat_count},
            {"tool",
             {{"version", r.tool_version},
              {"git_sha", text_or_null(r.git_sha)},
              {"git_dirty", r.git_dirty},
              {"build_type", r.build_type},
              {"compiler", r.compiler},
              {"cuda_toolkit", text_or_null(r.cuda_toolkit)},
              {"cuda_archs", text_or_null(r.cuda_archs)}}}}},
          {"host",
           {{"hostname", r.hostname},
            {"os", r.os},
            {"kernel", r.kernel},
            {"cpu", r.cpu},
            {"cores", r.cores}}},
          {"devices", devices},
          {"calibration",
           {{"mem_bw_bytes_per_s", known(r.calibration.mem_bw_bytes_per_s)},
            {"flops_per_s", rates},
            {"empty_launch_ns", known(r.calibration.empty_launch_ns)},
            {"timer_quantum_ns", known(r.calibration.timer_quantum_ns)},
            {"timer_floor_ns", known(r.calibration.timer_floor_ns)},
            {"host_launch_ns", known(r.calibration.host_launch_ns)},
            {"graph_launch_ns", known(r.calibration.graph_launch_ns)},
            {"flush_ns", known(r.calibration.flush_ns)}}},
          {"config", config(r.config)},
          {"metrics_meta", metrics_meta()},
          {"cases", cases},
          {"impossible", impossible},
          {"op_summaries", summaries},
          {"environment_checks", checks},
          {"totals", totals(r)}};
}

}  // namespace wide::bench
