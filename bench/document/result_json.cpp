// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Writing. Values that are not finite become null.
#include "bench/document/result_json.hpp"

#include <map>

#include "bench/document/doubts.hpp"
#include "bench/document/json_number.hpp"
#include "bench/document/machine_json.hpp"
#include "bench/document/measurement_json.hpp"
#include "bench/document/metrics.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

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
          {"regs", json_or_null(k.registers)},
          {"smem_static_bytes", k.static_shared_bytes},
          {"smem_dyn_bytes", k.dynamic_shared_bytes},
          {"local_bytes", k.local_bytes},
          {"blocks_per_sm", k.blocks_per_sm},
          {"occupancy_pct", json_number(k.occupancy_pct)}};
}

Json runner(const RunnerResult& r) {
  Json measurements = Json::array(), kernels = Json::array();
  for (const KernelUse& k : r.kernels) kernels.push_back(kernel(k));
  for (const Measurement& m : r.measurements) measurements.push_back(measurement_json(m));
  const VerifyOutcome& v = r.verify;
  Json document = {
      {"name", r.name},
      {"strategy", json_text(r.strategy)},
      {"policy", json_text(r.policy)},
      {"peer", json_text(r.peer)},
      {"status", to_string(r.status)},
      {"reason", json_text(r.reason)},
      {"verified", r.verified},
      {"explain", json_text(r.explain)},
      {"verify",
       {{"reference", "cpu_fp64"},
        {"before", v.before},
        {"after", v.after},
        {"worst_error_ratio", json_number(v.worst_error_ratio)},
        {"worst_member", v.worst_member >= 0 ? Json(v.worst_member) : Json(nullptr)},
        {"mismatches", v.mismatches},
        {"nan_count", v.nan_count},
        {"elements_compared", v.elements_compared},
        {"elements", v.elements},
        {"zeros", json_or_null(v.zeros)},
        {"bitwise_stable", json_or_null(v.bitwise_stable)},
        {"message", json_text(v.message)},
        {"saved", v.saved}}},
      {"memory",
       {{"workspace_bytes", r.workspace_bytes},
        {"peak_device_bytes", json_or_null(r.peak_device_bytes)}}},
      {"setup",
       {{"plan_ns", json_number(r.plan_ns)}, {"first_call_ns", json_number(r.first_call_ns)}}},
      {"launches_per_call", json_or_null(r.launches_per_call)},
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
                     {"speedup_ratio", json_number(s.speedup_ratio)},
                     {"ci_lo", json_number(s.ci_lo)},
                     {"ci_hi", json_number(s.ci_hi)},
                     {"verdict", s.verdict},
                     {"aa_floor_pct", json_number(s.aa_floor_pct)},
                     {"p_wilcoxon", json_number(s.p_wilcoxon)},
                     {"peer", json_text(s.peer)}});
  }
  return array;
}

Json noise_floors(const CaseResult& c) {
  Json array = Json::array();
  for (const NoiseFloor& f : c.noise_floors) {
    array.push_back({{"baseline", to_string(f.baseline)},
                     {"regime", to_string(f.regime)},
                     {"pairs", f.pairs},
                     {"ratio", json_number(f.ratio)},
                     {"ci_lo", json_number(f.ci_lo)},
                     {"ci_hi", json_number(f.ci_hi)},
                     {"floor_pct", json_number(f.floor_pct)}});
  }
  return array;
}

/// What readers need first: per regime, the strategy with the smallest median among the right
/// ones.
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
  return {{"best_strategy", best}, {"best_speedup_ratio", json_number(ratio)}};
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
  return {
      {"case_id", c.case_id},
      {"op", c.point.op()},
      {"op_version", c.op_version},
      {"axes", axes_json(c.point)},
      {"axes_set", axes_set(c.point)},
      {"reproduce", c.reproduce},
      {"status", to_string(c.status)},
      {"reason", json_text(c.reason)},
      {"work",
       {{"flops", json_number(c.cost.flops)},
        {"bytes_read", json_number(c.cost.bytes_read)},
        {"bytes_written", json_number(c.cost.bytes_written)},
        {"intensity_flop_per_byte", bytes > 0 ? json_number(c.cost.flops / bytes) : Json(nullptr)},
        {"items", json_number(c.cost.items)},
        {"footprint_bytes", c.footprint_bytes},
        {"floor_ns", json_known(c.floor_ns)},
        {"model", "declared"}}},
      {"peaks",
       {{"flops_per_s", json_number(c.peak_flops_per_s)},
        {"mem_bw_bytes_per_s", json_number(c.peak_mem_bw_bytes_per_s)}}},
      {"strategies", strategies},
      {"baselines", baselines},
      {"noise_floors", noise_floors(c)},
      {"summary", case_summary(c)}};
}

Json scaling_fit(const ScalingFit& f) {
  return {{"strategy", f.strategy},
          {"axis", "n"},
          {"axes", f.axes},
          {"model", f.model},
          {"points", f.points},
          {"a_ns", json_number(f.a_ns)},
          {"b_ns", json_number(f.b_ns)},
          {"rms_pct", json_number(f.rms_pct)}};
}

Json summary(const OpSummary& s) {
  Json wins = Json::object(), fits = Json::array();
  for (const ScalingFit& f : s.scaling_fits) fits.push_back(scaling_fit(f));
  for (const auto& [name, count] : s.strategy_wins) wins[name] = count;
  return {{"op", s.op},
          {"regime", to_string(s.regime)},
          {"baseline", to_string(s.baseline)},
          {"crossover_n",
           {{"value", json_or_null(s.crossover_n)},
            {"ci_lo", json_or_null(s.crossover_lo)},
            {"ci_hi", json_or_null(s.crossover_hi)}}},
          {"recommended_threshold", json_or_null(s.recommended_threshold)},
          {"strategy_wins", wins},
          {"best_speedup_ratio", json_number(s.best_speedup_ratio)},
          {"best_strategy", json_text(s.best_strategy)},
          {"best_case", json_text(s.best_case)},
          {"geomean_speedup", json_number(s.geomean_speedup)},
          {"scaling_fit", fits}};
}

Json metrics_meta() {
  Json object = Json::object();
  for (const Metric& metric : metrics())
    object[metric.name] = {{"hint", metric.hint}, {"better", to_string(metric.better)}};
  return object;
}

Json totals(const RunResult& r) {
  std::map<std::string, int64_t> counts{
      {"ok", 0},      {"failed", 0}, {"skipped", 0},    {"verify_failed", 0}, {"implausible", 0},
      {"timeout", 0}, {"oom", 0},    {"unreliable", 0}, {"mistrusted", 0}};
  for (const CaseResult& c : r.cases) {
    ++counts[std::string(to_string(c.status))];
    if (is_mistrusted(c)) ++counts["mistrusted"];
    if (is_doubtful(c)) ++counts["unreliable"];
  }
  Json object = {{"cases", r.cases.size()}, {"impossible", r.impossible_cases}};
  for (const auto& [status, count] : counts) object[status] = count;
  return object;
}

}  // namespace

Json config_json(const RunConfig& c) {
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
            {"budget_s", json_number(c.budget_s)}}},
          {"warmup", {{"time_s", c.warmup_s}, {"clock_tol_pct", c.clock_tol_pct}}},
          {"cooldown_s", c.cooldown_s},
          {"adversarial", c.is_adversarial},
          {"init",
           {{"dist", c.init.dist},
            {"min", json_number(c.init.min)},
            {"max", json_number(c.init.max)},
            {"seed", c.seed}}},
          {"verify", c.verify},
          {"throttle", {{"policy", c.throttle}, {"threshold_pct", c.throttle_pct}}},
          {"aa", c.aa},
          {"energy", c.energy}};
}

Json axes_json(const catalog::Case& point) {
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

Json to_json(const RunResult& r) {
  Json cases = Json::array(), summaries = Json::array(), impossible = Json::object();
  for (const CaseResult& c : r.cases) cases.push_back(one_case(c));
  for (const OpSummary& s : r.op_summaries) summaries.push_back(summary(s));
  for (const auto& [reason, count] : r.impossible_reasons) impossible[reason] = count;
  Json context = Json::object(), formulas = Json::object();
  for (const auto& [op, formula] : r.tolerances) formulas[op] = formula;
  for (const auto& [name, value] : r.context) context[name] = value;
  return {{"schema", {{"name", kSchemaName}, {"version", kSchemaVersion}}},
          {"run",
           {{"id", r.id},
            {"started", r.started},
            {"duration_s", json_number(r.duration_s)},
            {"complete", r.complete},
            {"exit_code", r.exit_code},
            {"argv", r.argv},
            {"note", json_text(r.note)},
            {"context", context},
            {"tags", r.tags},
            {"parent_suite", json_text(r.parent_suite)},
            {"peak_host_bytes", r.peak_host_bytes},
            {"process", json_text(r.process)},
            {"process_isolated", r.config.isolate},
            {"repeat_index", r.config.repeat_index},
            {"repeat_count", r.config.repeat_count},
            {"tool",
             {{"version", r.tool_version},
              {"git_sha", json_text(r.git_sha)},
              {"git_dirty", r.git_dirty},
              {"build_type", r.build_type},
              {"compiler", r.compiler},
              {"cuda_toolkit", json_text(r.cuda_toolkit)},
              {"cuda_archs", json_text(r.cuda_archs)},
              {"flags", json_text(r.flags)},
              {"cuda_flags", json_text(r.cuda_flags)}}}}},
          {"host", host_json(r)},
          {"devices", devices_json(r)},
          {"calibration", calibration_json(r.calibration)},
          {"config", config_json(r.config)},
          {"metrics_meta", metrics_meta()},
          {"cases", cases},
          {"impossible", impossible},
          {"op_summaries", summaries},
          {"tolerances", formulas},
          {"environment_checks", checks_json(r)},
          {"totals", totals(r)}};
}

}  // namespace wide::bench
