// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Reading; every error names the field.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "bench/document/json_field.hpp"
#include "bench/document/machine_json.hpp"
#include "bench/document/measurement_json.hpp"
#include "bench/document/result_json.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr auto kStatuses = {
    Status::ok,          Status::failed,  Status::skipped, Status::verify_failed,
    Status::implausible, Status::timeout, Status::oom};

std::vector<int64_t> integers_of(const Field& f) {
  std::vector<int64_t> values;
  for (const Field& value : f.items()) values.push_back(value.count());
  return values;
}

LaunchCounters::Values parse_values(const Field& f) {
  LaunchCounters::Values values;
  for (const auto& [name, value] : f.members()) values.emplace_back(name, value.count());
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
  k.registers = f["regs"].optional_count();
  k.static_shared_bytes = f["smem_static_bytes"].count();
  k.dynamic_shared_bytes = f["smem_dyn_bytes"].count();
  k.local_bytes = f["local_bytes"].count();
  k.blocks_per_sm = f["blocks_per_sm"].count();
  k.occupancy_pct = f["occupancy_pct"].amount_or_zero();
  return k;
}

/// What is called in, or compared with, another program. Since 1.9.
std::string peer_of(const Field& f) {
  const auto peer = f.later("peer");
  return peer ? peer->text_or_empty() : std::string();
}

/// Fields of strategies and baselines since 1.4.
void parse_later_runner(const Field& f, RunnerResult& r) {
  if (!f.has("kernels")) return;
  for (const Field& k : f["kernels"].items()) r.kernels.push_back(parse_kernel(k));
  r.launches_per_call = f["launches_per_call"].optional_count();
  r.peak_device_bytes = f["memory"]["peak_device_bytes"].optional_count();
  if (const auto setup = f.later("setup")) {  // 1.14
    r.plan_ns = (*setup)["plan_ns"].optional_amount();
    r.first_call_ns = (*setup)["first_call_ns"].optional_amount();
  }
}

/// Refuses `name`, the field of one that is added to `all`, if an earlier one's is the same: what
/// is there twice would be averaged, and refers to nothing in particular.
template <class T, class Name>
void require_once(const Field& name, const std::vector<T>& all, const Name& name_of,
                  const std::string& expected) {
  const bool is_there = std::any_of(all.begin(), all.end() - 1, [&](const T& other) {
    return name_of(other) == name_of(all.back());
  });
  if (is_there) name.refuse(expected);
}

RunnerResult parse_runner(const Field& f) {
  RunnerResult r;
  r.name = f["name"].text();
  if (f.has("strategy")) r.strategy = f["strategy"].text_or_empty();
  if (f.has("policy")) r.policy = f["policy"].text_or_empty();
  r.peer = peer_of(f);
  r.status = f["status"].one_of(kStatuses);
  r.reason = f["reason"].text_or_empty();
  r.verified = f["verified"].boolean();
  r.explain = f["explain"].text_or_empty();
  const Field v = f["verify"];
  r.verify.before = v["before"].text();
  r.verify.after = v["after"].text();
  r.verify.worst_error_ratio = v["worst_error_ratio"].optional_amount();
  r.verify.worst_member = v["worst_member"].count_or(-1);
  r.verify.mismatches = v["mismatches"].count();
  r.verify.nan_count = v["nan_count"].count();
  r.verify.elements_compared = v["elements_compared"].count();
  r.verify.elements = v["elements"].count();
  r.verify.message = v["message"].text_or_empty();
  if (const auto saved = v.later("saved")) {  // since 1.8
    for (const Field& file : saved->items()) r.verify.saved.push_back(file.text());
  }
  if (const auto zeros = v.later("zeros")) r.verify.zeros = zeros->optional_count();  // since 1.11
  if (const auto stable = v.later("bitwise_stable"))
    r.verify.bitwise_stable = stable->optional_boolean();  // since 1.15
  r.workspace_bytes = f["memory"]["workspace_bytes"].count();
  for (const Field& m : f["measurements"].items()) {
    r.measurements.push_back(parse_measurement(m));
    const auto regime_of = [](const Measurement& one) { return one.regime; };
    require_once(m["regime"], r.measurements, regime_of,
                 "another regime than an earlier measurement's");
  }
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

void parse_speedups(const Field& f, const std::string& strategy, std::vector<Speedup>& speedups) {
  for (const Field& s : f["vs_baseline"].items()) {
    speedups.push_back({strategy, s["baseline"].one_of(kBaselines), s["regime"].one_of(kRegimes),
                        s["pairs"].count(), s["speedup_ratio"].optional_amount(),
                        s["ci_lo"].optional_amount(), s["ci_hi"].optional_amount(),
                        s["verdict"].text(), s.later_amount("aa_floor_pct"),
                        s.later_amount("p_wilcoxon"), peer_of(s)});
  }
}

CaseResult parse_case(const Field& f) {
  CaseResult c;
  c.case_id = f["case_id"].text();
  c.point = parse_point(f);
  c.op_version = f["op_version"].count();
  c.reproduce = f["reproduce"].text();
  c.status = f["status"].one_of(kStatuses);
  c.reason = f["reason"].text_or_empty();
  const Field work = f["work"];
  c.cost = {work["flops"].amount_or_zero(), work["bytes_read"].amount_or_zero(),
            work["bytes_written"].amount_or_zero()};
  c.cost.items = work.later_amount("items").value_or(0);  // since 1.8
  c.footprint_bytes = work["footprint_bytes"].count();
  c.floor_ns = work["floor_ns"].amount_or_zero();
  if (const auto peaks = f.later("peaks")) {  // since 1.10
    c.peak_flops_per_s = (*peaks)["flops_per_s"].optional_amount();
    c.peak_mem_bw_bytes_per_s = (*peaks)["mem_bw_bytes_per_s"].optional_amount();
  }
  const auto name_of = [](const RunnerResult& runner) -> const std::string& { return runner.name; };
  for (const Field& s : f["strategies"].items()) {
    c.strategies.push_back(parse_runner(s));
    require_once(s["name"], c.strategies, name_of, "another name than an earlier strategy's");
    parse_speedups(s, c.strategies.back().name, c.speedups);
  }
  for (const Field& b : f["baselines"].items()) {
    c.baselines.push_back(parse_runner(b));
    require_once(b["name"], c.baselines, name_of, "another name than an earlier baseline's");
  }
  if (const auto floors = f.later("noise_floors")) {
    for (const Field& n : floors->items()) {
      c.noise_floors.push_back({n["baseline"].one_of(kBaselines), n["regime"].one_of(kRegimes),
                                n["pairs"].count(), n["ratio"].amount_or_zero(),
                                n["ci_lo"].amount_or_zero(), n["ci_hi"].amount_or_zero(),
                                n["floor_pct"].amount_or_zero()});
    }
  }
  return c;
}

OpSummary parse_summary(const Field& f) {
  OpSummary s;
  s.op = f["op"].text();
  s.regime = f["regime"].one_of(kRegimes);
  s.baseline = f["baseline"].one_of(kBaselines);
  s.crossover_n = f["crossover_n"]["value"].optional_count();
  s.recommended_threshold = f["recommended_threshold"].optional_count();
  for (const auto& [name, count] : f["strategy_wins"].members())
    s.strategy_wins.emplace_back(name, count.count());
  s.best_speedup_ratio = f["best_speedup_ratio"].optional_amount();
  s.best_strategy = f["best_strategy"].text_or_empty();
  s.best_case = f["best_case"].text_or_empty();
  s.geomean_speedup = f["geomean_speedup"].optional_amount();
  if (!f.has("scaling_fit")) return s;  // since 1.7
  s.crossover_lo = f["crossover_n"]["ci_lo"].optional_count();
  s.crossover_hi = f["crossover_n"]["ci_hi"].optional_count();
  for (const Field& fit : f["scaling_fit"].items()) {
    s.scaling_fits.push_back({fit["strategy"].text(), fit["axes"].text(), fit["model"].text(),
                              fit["points"].count(), fit["a_ns"].amount_or_zero(),
                              fit["b_ns"].amount_or_zero(), fit["rms_pct"].amount_or_zero()});
  }
  return s;
}

RunConfig parse_config(const Field& f) {
  RunConfig c;
  c.preset = f["preset"].text();
  for (const Field& regime : f["regimes"].items()) c.regimes.push_back(regime.one_of(kRegimes));
  c.rounds = f["rounds"].count();
  c.order_seed = f["order_seed"].seed();
  c.target_ci_pct = f["stop"]["target_ci_pct"].amount();
  c.min_samples = f["stop"]["min_samples"].count();
  c.max_samples = f["stop"]["max_samples"].count();
  c.timeout_s = f["stop"]["timeout_s"].amount();
  c.budget_s = f["stop"]["budget_s"].optional_amount();
  c.warmup_s = f["warmup"]["time_s"].amount();
  const Field init = f["init"];
  c.seed = init["seed"].seed();
  c.init = {init["dist"].text(), init["min"].optional_real(), init["max"].optional_real()};
  c.min_time_s = f["stop"].later_amount("min_time_s").value_or(0);  // since 1.7, and the next
  c.cooldown_s = f.later_amount("cooldown_s").value_or(0);
  if (const auto hostile = f.later("adversarial")) c.is_adversarial = hostile->boolean();  // 1.8
  c.verify = f["verify"].text();
  c.cache = f["cache"].one_of({Cache::automatic, Cache::flush, Cache::rotate, Cache::warm});
  if (!f.has("throttle")) return c;  // since 1.4
  c.l2_factor = f["l2_factor"].amount();
  c.interleave = f["interleave"].text();
  c.stop = f["stop"]["criterion"].text();
  c.max_noise_pct = f["stop"].later_amount("max_noise_pct").value_or(c.max_noise_pct);
  c.clock_tol_pct = f["warmup"].later_amount("clock_tol_pct").value_or(c.clock_tol_pct);
  c.throttle = f["throttle"]["policy"].text();
  c.throttle_pct = f["throttle"]["threshold_pct"].amount();
  c.aa = f["aa"].boolean();
  c.energy = f["energy"].boolean();
  return c;
}

}  // namespace

RunResult parse_document(const Json& document) {
  const Field root(document, "result: $");
  require_schema(root, "result", kSchemaName);
  RunResult r;
  const std::string version = root["schema"]["version"].text();
  if (*minor_version(version) > *minor_version(kSchemaVersion)) r.newer_schema = version;
  if (const auto file = root.later("samples_file")) r.samples_missing = (*file)["file"].text();
  const Field run = root["run"], tool = run["tool"];
  r.id = run["id"].text();
  r.started = run["started"].text();
  r.duration_s = run["duration_s"].amount_or_zero();
  r.complete = run["complete"].boolean();
  r.exit_code = run["exit_code"].small_count();
  for (const Field& argument : run["argv"].items()) r.argv.push_back(argument.text());
  if (const auto note = run.later("note")) r.note = note->text_or_empty();  // since 1.6
  if (const auto context = run.later("context")) {
    for (const auto& [name, value] : context->members()) r.context.emplace_back(name, value.text());
  }
  if (const auto tags = run.later("tags")) {  // since 1.19, like the next
    for (const Field& tag : tags->items()) r.tags.push_back(tag.text());
  }
  if (const auto suite = run.later("parent_suite")) r.parent_suite = suite->text_or_empty();
  r.peak_host_bytes = run["peak_host_bytes"].count();
  r.tool_version = tool["version"].text();
  r.git_sha = tool["git_sha"].text_or_empty();
  r.git_dirty = tool["git_dirty"].boolean();
  r.build_type = tool["build_type"].text();
  r.compiler = tool["compiler"].text();
  r.cuda_toolkit = tool["cuda_toolkit"].text_or_empty();
  r.cuda_archs = tool["cuda_archs"].text_or_empty();
  if (const auto flags = tool.later("flags")) {  // since 1.15
    r.flags = flags->text_or_empty();
    r.cuda_flags = tool["cuda_flags"].text_or_empty();
  }
  parse_machine(root, r);
  r.config = parse_config(root["config"]);
  if (const auto process = run.later("process"))
    r.process = process->text_or_empty();  // since 1.11
  if (const auto isolated = run.later("process_isolated")) r.config.isolate = isolated->boolean();
  if (const auto index = run.later("repeat_index")) {  // since 1.7
    r.config.repeat_index = index->count();
    r.config.repeat_count = run["repeat_count"].count();
  }
  std::set<std::string> ids;  // of sweeps that have thousands of cases
  for (const Field& c : root["cases"].items()) {
    r.cases.push_back(parse_case(c));
    if (!ids.insert(r.cases.back().case_id).second)
      c["case_id"].refuse("another than an earlier case's");
  }
  for (const auto& [reason, count] : root["impossible"].members()) {
    r.impossible_reasons.emplace_back(reason, count.count());
    r.impossible_cases += count.count();
  }
  if (const auto formulas = root.later("tolerances")) {  // since 1.15
    for (const auto& [op, formula] : formulas->members())
      r.tolerances.emplace_back(op, formula.text());
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
