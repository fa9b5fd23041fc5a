// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Reading; every complaint names the field.
#include <fmt/format.h>

#include <charconv>

#include "bench/json_field.hpp"
#include "bench/result_json.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr auto kCaches = {Cache::warm, Cache::flush, Cache::rotate};
constexpr auto kBaselines = {Baseline::loop, Baseline::streams, Baseline::graph};
constexpr auto kStatuses = {
    Status::ok,          Status::failed,  Status::skipped, Status::verify_failed,
    Status::implausible, Status::timeout, Status::oom};

/// What results have since 1.3; in older ones it is not known.
void parse_later_statistics(const Field& f, Statistics& s) {
  if (!f.has("outliers")) return;
  s.p99_ns = f["p99_ns"].real_or_zero();
  s.iqr_ns = f["iqr_ns"].real_or_zero();
  s.ci_resamples = f["ci"]["resamples"].integer_or(0);
  s.ci_mean_lo_ns = f["ci_mean_t"]["lo_ns"].optional_real();
  s.ci_mean_hi_ns = f["ci_mean_t"]["hi_ns"].optional_real();
  const Field outliers = f["outliers"];
  s.outliers = {outliers["mild_low"].integer(), outliers["mild_high"].integer(),
                outliers["severe_low"].integer(), outliers["severe_high"].integer()};
  const Field normality = f["normality"];
  if (!normality.is_null()) {
    s.normality = {normality["test"].text(), normality["statistic"].real_or_zero(),
                   normality["p"].real_or_zero()};
  }
  s.trend_pct_per_s = f["trend_pct_per_s"].optional_real();
  s.autocorr_lag1 = f["autocorr_lag1"].optional_real();
  s.between_round_cv_pct = f["between_round_cv_pct"].optional_real();
  if (!f.has("doubts")) return;  // since 1.6
  s.trend_p = f["trend_p"].optional_real();
  const Field dip = f["dip"];
  if (!dip.is_null()) s.dip = Dip{dip["statistic"].real(), dip["p"].real()};
  if (f["reliable"].is_null()) return;
  s.doubts.emplace();
  for (const Field& doubt : f["doubts"].items()) s.doubts->push_back(doubt.text());
}

Statistics parse_statistics(const Field& f) {
  Statistics s;
  s.n = f["n"].integer();
  s.mean_ns = f["mean_ns"].real_or_zero();
  s.stdev_ns = f["stdev_ns"].real_or_zero();
  s.cv_pct = f["cv_pct"].real_or_zero();
  s.min_ns = f["min_ns"].real_or_zero();
  s.p5_ns = f["p5_ns"].real_or_zero();
  s.q1_ns = f["q1_ns"].real_or_zero();
  s.median_ns = f["median_ns"].real_or_zero();
  s.q3_ns = f["q3_ns"].real_or_zero();
  s.p95_ns = f["p95_ns"].real_or_zero();
  s.max_ns = f["max_ns"].real_or_zero();
  s.mad_ns = f["mad_ns"].real_or_zero();
  s.ci_lo_ns = f["ci"]["lo_ns"].real_or_zero();
  s.ci_hi_ns = f["ci"]["hi_ns"].real_or_zero();
  s.ci_method = f["ci"]["method"].text();
  parse_later_statistics(f, s);
  return s;
}

Clocks parse_clocks(const Field& f) {
  Clocks c;
  c.sm_mhz_median = f["sm_mhz_median"].real_or_zero();
  c.sm_mhz_min = f["sm_mhz_min"].real_or_zero();
  for (const Field& reason : f["throttle_reasons"].items())
    c.throttle_reasons.push_back(reason.text());
  c.temp_c = f["temp_c"].optional_real();
  c.power_w = f["power_w"].optional_real();
  return c;
}

Energy parse_energy(const Field& f) {
  Energy e;
  e.method = f["method"].text();
  e.window_s = f["window_s"].real_or_zero();
  e.joules = f["joules"].optional_real();
  e.joules_per_call = f["joules_per_call"].optional_real();
  e.avg_w = f["avg_w"].optional_real();
  e.idle_w = f["idle_w"].optional_real();
  e.invalid_reason = f["invalid_reason"].text_or_empty();
  return e;
}

/// A column's length; `take` gets its values, which a side-car that is not there has kept.
template <class Take>
int64_t parse_column(const Field& f, const Take& take) {
  if (f.has("offset")) {
    if (f["offset"].integer() < 0 || f["count"].integer() < 0)
      f.refuse("an offset and a count of 0 or above");
    return f["count"].integer();
  }
  const std::vector<Field> values = f.items();
  for (const Field& value : values) take(value);
  return static_cast<int64_t>(values.size());
}

void parse_samples(const Field& f, Measurement& m) {
  const auto require_as_many = [](int64_t samples, int64_t others, const char* what) {
    if (samples == others) return;
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("result: {} samples with {} {}, expected as many", samples, others, what));
  };
  const int64_t count =
      parse_column(f["time_ns"], [&](const Field& value) { m.samples_ns.push_back(value.real()); });
  const int64_t rounds = parse_column(
      f["round"], [&](const Field& value) { m.samples_round.push_back(value.integer()); });
  require_as_many(count, rounds, "rounds");
  const auto mhz = f.later("sm_mhz");  // since 1.4
  if (!mhz) return;
  const int64_t clocks =
      parse_column(*mhz, [&](const Field& value) { m.samples_sm_mhz.push_back(value.real()); });
  require_as_many(count, clocks, "clocks");
}

/// What measurements have since 1.4.
void parse_later_measurement(const Field& f, Measurement& m) {
  if (!f.has("cache")) return;
  m.cache = f["cache"].one_of(kCaches);
  m.buffers_rotated = f["buffers_rotated"].integer();
  const Field covers = f["rotation_covers_l2"];
  if (!covers.is_null()) m.rotation_covers_l2 = covers.boolean();
  m.discarded_throttle = f["discarded_throttle"].integer();
  if (const auto kept = f.later("kept_throttle")) m.kept_throttle = kept->integer();
  if (!f["clocks"].is_null()) m.clocks = parse_clocks(f["clocks"]);
  if (!f["energy"].is_null()) m.energy = parse_energy(f["energy"]);
  m.enqueue_ns_per_call = f["host"]["enqueue_ns_per_call"].optional_real();
  m.launch_overhead_ns_per_launch = f["host"]["launch_overhead_ns_per_launch"].optional_real();
}

Measurement parse_measurement(const Field& f) {
  Measurement m;
  m.regime = f["regime"].one_of(kRegimes);
  m.timer = f["timer"].text();
  m.iters_per_sample = f["iters_per_sample"].integer();
  m.stop_reason = f["stop_reason"].text();
  m.walltime_s = f["walltime_s"].real_or_zero();
  m.below_resolution = f["below_resolution"].boolean();
  m.few_samples = f["few_samples"].boolean();
  parse_samples(f["samples"], m);
  m.stats = parse_statistics(f["stats"]);
  m.flops_per_s = f["rates"]["flops_per_s"].optional_real();
  m.mem_bw_bytes_per_s = f["rates"]["mem_bw_bytes_per_s"].optional_real();
  m.pct_of_floor = f["rates"]["pct_of_floor"].optional_real();
  for (const Field& warning : f["warnings"].items()) m.warnings.push_back(warning["text"].text());
  parse_later_measurement(f, m);
  return m;
}

std::vector<int64_t> integers_of(const Field& f) {
  std::vector<int64_t> values;
  for (const Field& value : f.items()) values.push_back(value.integer());
  return values;
}

LaunchCounters::Values parse_values(const Field& f) {
  LaunchCounters::Values values;
  for (const auto& [name, value] : f.members()) values.emplace_back(name, value.integer());
  return values;
}

LaunchCounters parse_launch(const Field& f) {
  LaunchCounters l;
  l.kernel = f["kernel"].text();
  l.grid = integers_of(f["grid"]);
  l.block = integers_of(f["block"]);
  l.values = parse_values(f["counters"]);
  for (const Field& b : f["buffers"].items())
    l.buffers.push_back({b["name"].text(), parse_values(b["counters"])});
  return l;
}

KernelUse parse_kernel(const Field& f) {
  KernelUse k;
  k.name = f["name"].text();
  k.grid = integers_of(f["grid"]);
  k.block = integers_of(f["block"]);
  k.registers = f["regs"].optional_integer();
  k.static_shared_bytes = f["smem_static_bytes"].integer();
  k.dynamic_shared_bytes = f["smem_dyn_bytes"].integer();
  k.local_bytes = f["local_bytes"].integer();
  k.blocks_per_sm = f["blocks_per_sm"].integer();
  k.occupancy_pct = f["occupancy_pct"].real_or_zero();
  return k;
}

/// What strategies and baselines have since 1.4.
void parse_later_runner(const Field& f, RunnerResult& r) {
  if (!f.has("kernels")) return;
  for (const Field& k : f["kernels"].items()) r.kernels.push_back(parse_kernel(k));
  r.launches_per_call = f["launches_per_call"].optional_integer();
  r.peak_device_bytes = f["memory"]["peak_device_bytes"].optional_integer();
}

RunnerResult parse_runner(const Field& f) {
  RunnerResult r;
  r.name = f["name"].text();
  if (f.has("strategy")) r.strategy = f["strategy"].text_or_empty();
  if (f.has("policy")) r.policy = f["policy"].text_or_empty();
  r.status = f["status"].one_of(kStatuses);
  r.reason = f["reason"].text_or_empty();
  r.verified = f["verified"].boolean();
  r.explain = f["explain"].text_or_empty();
  const Field v = f["verify"];
  r.verify.before = v["before"].text();
  r.verify.after = v["after"].text();
  r.verify.worst_error_ratio = v["worst_error_ratio"].optional_real();
  r.verify.worst_member = v["worst_member"].integer_or(-1);
  r.verify.mismatches = v["mismatches"].integer();
  r.verify.nan_count = v["nan_count"].integer();
  r.verify.elements_compared = v["elements_compared"].integer();
  r.verify.elements = v["elements"].integer();
  r.verify.message = v["message"].text_or_empty();
  r.workspace_bytes = f["memory"]["workspace_bytes"].integer();
  for (const Field& m : f["measurements"].items()) r.measurements.push_back(parse_measurement(m));
  if (f.has("launches")) {
    for (const Field& l : f["launches"].items()) r.launches.push_back(parse_launch(l));
  }
  parse_later_runner(f, r);
  return r;
}

catalog::Case parse_point(const Field& f) {
  std::vector<std::string> set;
  for (const Field& name : f["axes_set"].items()) set.push_back(name.text());
  std::vector<catalog::Case::Entry> entries;
  for (const auto& [name, value] : f["axes"].members()) {
    const bool is_default = std::find(set.begin(), set.end(), name) == set.end();
    entries.push_back({name, value.axis_value(), is_default});
  }
  return catalog::Case(f["op"].text(), std::move(entries));
}

std::optional<double> later_real(const Field& f, const char* key) {
  const auto field = f.later(key);
  return field ? field->optional_real() : std::nullopt;
}

void parse_speedups(const Field& f, const std::string& strategy, std::vector<Speedup>& speedups) {
  for (const Field& s : f["vs_baseline"].items()) {
    speedups.push_back({strategy, s["baseline"].one_of(kBaselines), s["regime"].one_of(kRegimes),
                        s["pairs"].integer(), s["speedup_ratio"].optional_real(),
                        s["ci_lo"].optional_real(), s["ci_hi"].optional_real(), s["verdict"].text(),
                        later_real(s, "aa_floor_pct"), later_real(s, "p_wilcoxon")});
  }
}

CaseResult parse_case(const Field& f) {
  CaseResult c;
  c.case_id = f["case_id"].text();
  c.point = parse_point(f);
  c.op_version = f["op_version"].integer();
  c.reproduce = f["reproduce"].text();
  c.status = f["status"].one_of(kStatuses);
  c.reason = f["reason"].text_or_empty();
  const Field work = f["work"];
  c.cost = {work["flops"].real_or_zero(), work["bytes_read"].real_or_zero(),
            work["bytes_written"].real_or_zero()};
  c.footprint_bytes = work["footprint_bytes"].integer();
  c.floor_ns = work["floor_ns"].real_or_zero();
  for (const Field& s : f["strategies"].items()) {
    RunnerResult runner = parse_runner(s);
    // A speedup says whose it is by the strategy's name.
    for (const RunnerResult& other : c.strategies)
      if (other.name == runner.name) s["name"].refuse("another name than an earlier strategy's");
    c.strategies.push_back(std::move(runner));
    parse_speedups(s, c.strategies.back().name, c.speedups);
  }
  for (const Field& b : f["baselines"].items()) c.baselines.push_back(parse_runner(b));
  if (const auto floors = f.later("noise_floors")) {
    for (const Field& n : floors->items()) {
      c.noise_floors.push_back({n["baseline"].one_of(kBaselines), n["regime"].one_of(kRegimes),
                                n["pairs"].integer(), n["ratio"].real_or_zero(),
                                n["ci_lo"].real_or_zero(), n["ci_hi"].real_or_zero(),
                                n["floor_pct"].real_or_zero()});
    }
  }
  return c;
}

OpSummary parse_summary(const Field& f) {
  OpSummary s;
  s.op = f["op"].text();
  s.regime = f["regime"].one_of(kRegimes);
  s.baseline = f["baseline"].one_of(kBaselines);
  s.crossover_n = f["crossover_n"]["value"].optional_integer();
  s.recommended_threshold = f["recommended_threshold"].optional_integer();
  for (const auto& [name, count] : f["strategy_wins"].members())
    s.strategy_wins.emplace_back(name, count.integer());
  s.best_speedup_ratio = f["best_speedup_ratio"].optional_real();
  s.best_strategy = f["best_strategy"].text_or_empty();
  s.best_case = f["best_case"].text_or_empty();
  s.geomean_speedup = f["geomean_speedup"].optional_real();
  return s;
}

RunDevice parse_device(const Field& f) {
  RunDevice d;
  const std::string where = f["device"].text();
  if (where.starts_with("cuda:")) {
    d.device.type = DeviceType::cuda;
    std::from_chars(where.data() + 5, where.data() + where.size(), d.device.ordinal);
  }
  d.name = f["name"].text();
  d.compute_capability = f["compute_capability"].small_integer();
  d.num_multiprocessors = f["sm_count"].small_integer();
  d.last_level_cache_bytes = f["l2_bytes"].integer_or(0);
  d.memory_bytes = f["mem_bytes"].integer_or(0);
  d.driver_version = f["cuda_driver"].small_integer();
  d.runtime_version = f["cuda_runtime"].small_integer();
  if (const auto uuid = f.later("uuid")) d.uuid = uuid->text_or_empty();  // since 1.6
  if (const auto bus = f.later("pci_bus")) d.pci_bus_id = bus->text_or_empty();
  return d;
}

/// Of the first device, since 1.5.
std::optional<LockedClocks> parse_locked(const Field& device) {
  const auto clocks = device.later("clocks");
  if (!clocks || (*clocks)["locked"].is_null()) return std::nullopt;
  const Field locked = (*clocks)["locked"];
  return LockedClocks{locked["asked"].text(), locked["sm_mhz"].optional_real()};
}

RunConfig parse_config(const Field& f) {
  RunConfig c;
  c.preset = f["preset"].text();
  for (const Field& regime : f["regimes"].items()) c.regimes.push_back(regime.one_of(kRegimes));
  c.rounds = f["rounds"].integer();
  c.order_seed = f["order_seed"].seed();
  c.target_ci_pct = f["stop"]["target_ci_pct"].real();
  c.min_samples = f["stop"]["min_samples"].integer();
  c.max_samples = f["stop"]["max_samples"].integer();
  c.timeout_s = f["stop"]["timeout_s"].real();
  c.budget_s = f["stop"]["budget_s"].optional_real();
  c.warmup_s = f["warmup"]["time_s"].real();
  const Field init = f["init"];
  c.seed = init["seed"].seed();
  c.init = {init["dist"].text(), init["min"].optional_real(), init["max"].optional_real()};
  c.min_time_s = later_real(f["stop"], "min_time_s").value_or(0);  // since 1.7, and the next
  c.cooldown_s = later_real(f, "cooldown_s").value_or(0);
  c.verify = f["verify"].text();
  c.cache = f["cache"].one_of(kCaches);
  if (!f.has("throttle")) return c;  // since 1.4
  c.l2_factor = f["l2_factor"].real();
  c.interleave = f["interleave"].text();
  c.stop = f["stop"]["criterion"].text();
  c.max_noise_pct = later_real(f["stop"], "max_noise_pct").value_or(c.max_noise_pct);
  c.clock_tol_pct = later_real(f["warmup"], "clock_tol_pct").value_or(c.clock_tol_pct);
  c.throttle = f["throttle"]["policy"].text();
  c.throttle_pct = f["throttle"]["threshold_pct"].real();
  c.aa = f["aa"].boolean();
  c.energy = f["energy"].boolean();
  return c;
}

void require_version(const Field& schema) {
  const std::string name = schema["name"].text(), version = schema["version"].text();
  int major = -1;
  std::from_chars(version.data(), version.data() + version.size(), major);
  if (name != kSchemaName || major != 1) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("result: schema is {} {}, expected {} 1.x.y", name, version, kSchemaName));
  }
}

}  // namespace

RunResult parse_document(const Json& document) {
  const Field root(document, "result: $");
  require_version(root["schema"]);
  RunResult r;
  if (const auto file = root.later("samples_file")) r.samples_missing = (*file)["file"].text();
  const Field run = root["run"], tool = run["tool"], host = root["host"],
              calibration = root["calibration"];
  r.id = run["id"].text();
  r.started = run["started"].text();
  r.duration_s = run["duration_s"].real_or_zero();
  r.complete = run["complete"].boolean();
  r.exit_code = run["exit_code"].small_integer();
  for (const Field& argument : run["argv"].items()) r.argv.push_back(argument.text());
  if (const auto note = run.later("note")) r.note = note->text_or_empty();  // since 1.6
  if (const auto context = run.later("context")) {
    for (const auto& [name, value] : context->members()) r.context.emplace_back(name, value.text());
  }
  r.peak_host_bytes = run["peak_host_bytes"].integer();
  r.tool_version = tool["version"].text();
  r.git_sha = tool["git_sha"].text_or_empty();
  r.git_dirty = tool["git_dirty"].boolean();
  r.build_type = tool["build_type"].text();
  r.compiler = tool["compiler"].text();
  r.cuda_toolkit = tool["cuda_toolkit"].text_or_empty();
  r.cuda_archs = tool["cuda_archs"].text_or_empty();
  r.hostname = host["hostname"].text();
  r.os = host["os"].text();
  r.kernel = host["kernel"].text();
  r.cpu = host["cpu"].text();
  r.cores = host["cores"].small_integer();
  for (const Field& device : root["devices"].items()) {
    if (r.devices.empty()) r.locked_clocks = parse_locked(device);
    r.devices.push_back(parse_device(device));
  }
  r.calibration.mem_bw_bytes_per_s = calibration["mem_bw_bytes_per_s"].real_or_zero();
  for (const auto& [dtype, rate] : calibration["flops_per_s"].members())
    r.calibration.flops_per_s.emplace_back(dtype, rate.real_or_zero());
  r.calibration.empty_launch_ns = calibration["empty_launch_ns"].real_or_zero();
  r.calibration.timer_quantum_ns = calibration["timer_quantum_ns"].real_or_zero();
  r.calibration.timer_floor_ns = calibration["timer_floor_ns"].real_or_zero();
  r.calibration.host_launch_ns = later_real(calibration, "host_launch_ns").value_or(0);
  r.calibration.graph_launch_ns = later_real(calibration, "graph_launch_ns").value_or(0);
  r.calibration.flush_ns = later_real(calibration, "flush_ns").value_or(0);
  r.config = parse_config(root["config"]);
  if (const auto isolated = run.later("process_isolated")) r.config.isolate = isolated->boolean();
  if (const auto index = run.later("repeat_index")) {  // since 1.7
    r.config.repeat_index = index->integer();
    r.config.repeat_count = run["repeat_count"].integer();
  }
  if (const auto checks = root.later("environment_checks")) {
    for (const Field& check : checks->items()) {
      r.environment_checks.push_back(
          {check["code"].text(), check["severity"].text(), check["text"].text()});
    }
  }
  for (const Field& c : root["cases"].items()) r.cases.push_back(parse_case(c));
  for (const auto& [reason, count] : root["impossible"].members()) {
    r.impossible_reasons.emplace_back(reason, count.integer());
    r.impossible_cases += count.integer();
  }
  for (const Field& s : root["op_summaries"].items()) r.op_summaries.push_back(parse_summary(s));
  return r;
}

std::vector<LaunchCounters> launches_from_json(const Json& document) {
  std::vector<LaunchCounters> launches;
  for (const Field& l : Field(document, "result: launches").items())
    launches.push_back(parse_launch(l));
  return launches;
}

}  // namespace wide::bench
