// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Reading: a cursor that knows its path, so that every complaint names the field.
#include <fmt/format.h>

#include <charconv>
#include <iostream>
#include <iterator>
#include <limits>

#include "bench/result_json.hpp"
#include "host/core/file.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 64;  // the parser recurses on destruction; no result nests half as deep

class Field {
 public:
  Field(const Json& value, std::string path) : value_(&value), path_(std::move(path)) {}

  Field operator[](const char* key) const {
    if (!value_->is_object()) refuse("an object");
    const auto found = value_->find(key);
    if (found == value_->end())
      throw Error(ErrorCode::invalid_argument, fmt::format("result: {}.{} is missing", path_, key));
    return Field(*found, path_ + "." + key);
  }
  bool has(const char* key) const { return value_->is_object() && value_->contains(key); }
  std::vector<Field> items() const {
    if (!value_->is_array()) refuse("an array");
    std::vector<Field> fields;
    for (size_t i = 0; i < value_->size(); ++i)
      fields.emplace_back((*value_)[i], fmt::format("{}[{}]", path_, i));
    return fields;
  }
  std::vector<std::pair<std::string, Field>> members() const {
    if (!value_->is_object()) refuse("an object");
    std::vector<std::pair<std::string, Field>> fields;
    for (const auto& [key, value] : value_->items())
      fields.emplace_back(key, Field(value, path_ + "." + key));
    return fields;
  }
  bool is_null() const { return value_->is_null(); }
  catalog::AxisValue axis_value() const {
    if (value_->is_string()) return text();
    if (!value_->is_number_integer()) refuse("an integer or a word");
    return integer();
  }
  std::string text() const {
    if (!value_->is_string()) refuse("a string");
    return value_->get<std::string>();
  }
  std::string text_or_empty() const { return is_null() ? "" : text(); }
  bool boolean() const {
    if (!value_->is_boolean()) refuse("true or false");
    return value_->get<bool>();
  }
  int64_t integer() const {
    if (!value_->is_number_integer()) refuse("an integer");
    if (value_->is_number_unsigned() &&
        value_->get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
      refuse("an integer of 64 bits with sign");
    }
    return value_->get<int64_t>();
  }
  int small_integer() const {
    const int64_t value = integer();
    if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
      refuse("an integer of 32 bits");
    return static_cast<int>(value);
  }
  uint64_t seed() const {
    if (integer() < 0) refuse("an integer, 0 or above");
    return static_cast<uint64_t>(integer());
  }
  int64_t integer_or(int64_t otherwise) const { return is_null() ? otherwise : integer(); }
  double real() const {
    if (!value_->is_number()) refuse("a number");
    return value_->get<double>();
  }
  double real_or_zero() const { return is_null() ? 0 : real(); }
  std::optional<double> optional_real() const {
    return is_null() ? std::nullopt : std::optional(real());
  }
  std::optional<int64_t> optional_integer() const {
    return is_null() ? std::nullopt : std::optional(integer());
  }

  template <class Enum>
  Enum one_of(std::initializer_list<Enum> values) const {
    const std::string name = text();
    for (const Enum value : values) {
      if (to_string(value) == name) return value;
    }
    refuse("a known name");
  }

 private:
  [[noreturn]] void refuse(const char* expected) const {
    std::string shown = value_->dump(-1, ' ', false, Json::error_handler_t::replace);
    if (shown.size() > 60) shown = shown.substr(0, 60) + "..";
    throw Error(ErrorCode::invalid_argument,
                fmt::format("result: {} is {}, expected {}", path_, shown, expected));
  }
  const Json* value_;
  std::string path_;
};

constexpr auto kRegimes = {Regime::stream, Regime::graph, Regime::cpu};
constexpr auto kBaselines = {Baseline::loop, Baseline::streams, Baseline::graph};
constexpr auto kStatuses = {
    Status::ok,          Status::failed,  Status::skipped, Status::verify_failed,
    Status::implausible, Status::timeout, Status::oom};

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
  return s;
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
  for (const Field& sample : f["samples"]["time_ns"].items()) m.samples_ns.push_back(sample.real());
  for (const Field& round : f["samples"]["round"].items())
    m.samples_round.push_back(round.integer());
  if (m.samples_ns.size() != m.samples_round.size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("result: {} samples with {} rounds, expected as many",
                            m.samples_ns.size(), m.samples_round.size()));
  }
  m.stats = parse_statistics(f["stats"]);
  m.flops_per_s = f["rates"]["flops_per_s"].optional_real();
  m.mem_bw_bytes_per_s = f["rates"]["mem_bw_bytes_per_s"].optional_real();
  m.pct_of_floor = f["rates"]["pct_of_floor"].optional_real();
  for (const Field& warning : f["warnings"].items()) m.warnings.push_back(warning["text"].text());
  return m;
}

LaunchCounters::Values parse_values(const Field& f) {
  LaunchCounters::Values values;
  for (const auto& [name, value] : f.members()) values.emplace_back(name, value.integer());
  return values;
}

LaunchCounters parse_launch(const Field& f) {
  LaunchCounters l;
  l.kernel = f["kernel"].text();
  for (const Field& extent : f["grid"].items()) l.grid.push_back(extent.integer());
  for (const Field& extent : f["block"].items()) l.block.push_back(extent.integer());
  l.values = parse_values(f["counters"]);
  for (const Field& b : f["buffers"].items())
    l.buffers.push_back({b["name"].text(), parse_values(b["counters"])});
  return l;
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
                        s["pairs"].integer(), s["speedup_ratio"].optional_real(),
                        s["ci_lo"].optional_real(), s["ci_hi"].optional_real(),
                        s["verdict"].text()});
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
    c.strategies.push_back(parse_runner(s));
    parse_speedups(s, c.strategies.back().name, c.speedups);
  }
  for (const Field& b : f["baselines"].items()) c.baselines.push_back(parse_runner(b));
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

DeviceInfo parse_device(const Field& f) {
  DeviceInfo d;
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
  return d;
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
  c.seed = f["init"]["seed"].seed();
  c.verify = f["verify"].text();
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

/// Refuses nesting before the parser builds it.
void require_shallow(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kMaxDepth) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("result: nested deeper than {} levels", kMaxDepth));
    }
  }
}

}  // namespace

RunResult parse_result(std::string_view text) {
  require_shallow(text);
  Json document;
  try {
    document = Json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::invalid_argument, std::string("result: not JSON: ") + error.what());
  }
  const Field root(document, "$");
  require_version(root["schema"]);
  RunResult r;
  const Field run = root["run"], tool = run["tool"], host = root["host"],
              calibration = root["calibration"];
  r.id = run["id"].text();
  r.started = run["started"].text();
  r.duration_s = run["duration_s"].real_or_zero();
  r.complete = run["complete"].boolean();
  r.exit_code = run["exit_code"].small_integer();
  for (const Field& argument : run["argv"].items()) r.argv.push_back(argument.text());
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
  for (const Field& device : root["devices"].items()) r.devices.push_back(parse_device(device));
  r.calibration.mem_bw_bytes_per_s = calibration["mem_bw_bytes_per_s"].real_or_zero();
  for (const auto& [dtype, rate] : calibration["flops_per_s"].members())
    r.calibration.flops_per_s.emplace_back(dtype, rate.real_or_zero());
  r.calibration.empty_launch_ns = calibration["empty_launch_ns"].real_or_zero();
  r.calibration.timer_quantum_ns = calibration["timer_quantum_ns"].real_or_zero();
  r.calibration.timer_floor_ns = calibration["timer_floor_ns"].real_or_zero();
  r.config = parse_config(root["config"]);
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
  for (const Field& l : Field(document, "launches").items()) launches.push_back(parse_launch(l));
  return launches;
}

RunResult load_result(const std::string& path) {
  const std::string text =
      path == "-" ? std::string(std::istreambuf_iterator<char>(std::cin), {}) : read_file(path);
  try {
    return parse_result(text);
  } catch (const Error& error) {
    throw Error(error.code(), path + ": " + error.what());
  }
}

}  // namespace wide::bench
