// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/document/measurement_json.hpp"

#include <fmt/format.h>

#include "bench/document/json_number.hpp"
#include "host/core/text.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kNormal_p = 0.05;

Json normality(const Normality& n) {
  return {{"unit", "round_median"},
          {"test", n.test},
          {"statistic", json_number(n.statistic)},
          {"p", json_number(n.p)},
          {"normal", n.p >= kNormal_p}};
}

Json dip(const Dip& d) {
  return {{"unit", "sample"},
          {"test", "hartigan_dip"},
          {"statistic", json_number(d.statistic)},
          {"p", json_number(d.p)}};
}

Json statistics(const Statistics& s) {
  const Outliers& o = s.outliers;
  return {{"n", s.n},
          {"mean_ns", json_number(s.mean_ns)},
          {"stdev_ns", json_number(s.stdev_ns)},
          {"cv_pct", json_number(s.cv_pct)},
          {"min_ns", json_number(s.min_ns)},
          {"p5_ns", json_number(s.p5_ns)},
          {"q1_ns", json_number(s.q1_ns)},
          {"median_ns", json_number(s.median_ns)},
          {"q3_ns", json_number(s.q3_ns)},
          {"p95_ns", json_number(s.p95_ns)},
          {"p99_ns", json_number(s.p99_ns)},
          {"max_ns", json_number(s.max_ns)},
          {"mad_ns", json_number(s.mad_ns)},
          {"iqr_ns", json_number(s.iqr_ns)},
          {"ci",
           {{"level", 0.95},
            {"method", s.ci_method},
            {"of", "median"},
            {"unit", s.ci_is_of_rounds ? "round" : "sample"},
            {"lo_ns", json_number(s.ci_lo_ns)},
            {"hi_ns", json_number(s.ci_hi_ns)},
            {"resamples", json_known(s.ci_resamples)},
            {"seed", json_or_null(s.ci_seed)}}},
          {"ci_mean_t",
           {{"lo_ns", json_number(s.ci_mean_lo_ns)}, {"hi_ns", json_number(s.ci_mean_hi_ns)}}},
          {"outliers",
           {{"method", "tukey"},
            {"mild_low", o.mild_low},
            {"mild_high", o.mild_high},
            {"severe_low", o.severe_low},
            {"severe_high", o.severe_high},
            {"removed", 0}}},
          {"normality", s.normality ? normality(*s.normality) : Json(nullptr)},
          {"trend_pct_per_s", json_number(s.trend_pct_per_s)},
          {"autocorr_lag1", json_number(s.autocorr_lag1)},
          {"between_round_cv_pct", json_number(s.between_round_cv_pct)},
          {"trend_p", json_number(s.trend_p)},
          {"dip", s.dip ? dip(*s.dip) : Json(nullptr)},
          {"modes", s.dip ? Json(s.dip->modes()) : Json(nullptr)},
          {"reliable", s.doubts ? Json(s.doubts->empty()) : Json(nullptr)},
          {"doubts", s.doubts.value_or(std::vector<std::string>())}};
}

Json clocks(const Clocks& c) {
  return {{"sm_mhz_median", json_number(c.sm_mhz_median)},
          {"sm_mhz_min", json_number(c.sm_mhz_min)},
          {"throttle_reasons", c.throttle_reasons},
          {"temp_c", json_number(c.temp_c)},
          {"power_w", json_number(c.power_w)},
          {"sm_mhz_stable", json_number(c.sm_mhz_stable)}};
}

Json energy(const Energy& e) {
  return {{"valid", e.invalid_reason.empty()},
          {"method", e.method},
          {"window_s", json_number(e.window_s)},
          {"joules", json_number(e.joules)},
          {"joules_per_call", json_number(e.joules_per_call)},
          {"avg_w", json_number(e.avg_w)},
          {"idle_w", json_number(e.idle_w)},
          {"invalid_reason", json_text(e.invalid_reason)}};
}

}  // namespace

Json measurement_json(const Measurement& m) {
  Json warnings = Json::array();
  for (const std::string& text : m.warnings) warnings.push_back({{"text", text}});
  Json samples = {{"time_ns", m.samples_ns}, {"round", m.samples_round}};
  if (!m.samples_sm_mhz.empty()) samples["sm_mhz"] = m.samples_sm_mhz;
  if (!m.samples_order.empty()) samples["order"] = m.samples_order;
  if (!m.samples_t_rel_s.empty()) samples["t_rel_s"] = m.samples_t_rel_s;
  if (!m.samples_flags.empty()) samples["flags"] = m.samples_flags;
  return {
      {"regime", to_string(m.regime)},
      {"timer", m.timer},
      {"iters_per_sample", m.iters_per_sample},
      {"stop_reason", m.stop_reason},
      {"walltime_s", json_number(m.walltime_s)},
      {"warmup_s", json_number(m.warmup_s)},
      {"below_resolution", m.below_resolution},
      {"few_samples", m.few_samples},
      {"samples", samples},
      {"stats", statistics(m.stats)},
      {"rates",
       {{"flops_per_s", json_number(m.flops_per_s)},
        {"mem_bw_bytes_per_s", json_number(m.mem_bw_bytes_per_s)},
        {"pct_of_floor", json_number(m.pct_of_floor)},
        {"pct_of_mem_peak", json_number(m.pct_of_mem_peak)},
        {"pct_of_flop_peak", json_number(m.pct_of_flop_peak)},
        {"roofline_bound", json_text(m.roofline_bound)},
        {"items_per_s", json_number(m.items_per_s)}}},
      {"warnings", warnings},
      {"cache", to_string(m.cache)},
      {"buffers_rotated", m.buffers_rotated},
      {"rotation_covers_l2", m.rotation_covers_l2 ? Json(*m.rotation_covers_l2) : Json(nullptr)},
      {"discarded_throttle", m.discarded_throttle},
      {"kept_throttle", m.kept_throttle},
      {"clocks", m.clocks ? clocks(*m.clocks) : Json(nullptr)},
      {"energy", m.energy ? energy(*m.energy) : Json(nullptr)},
      {"host",
       {{"enqueue_ns_per_call", json_number(m.enqueue_ns_per_call)},
        {"launch_overhead_ns_per_launch", json_number(m.launch_overhead_ns_per_launch)}}}};
}

namespace {

/// Fields since 1.3; unknown in older results.
void parse_later_statistics(const Field& f, Statistics& s) {
  if (!f.has("outliers")) return;
  s.p99_ns = f["p99_ns"].time_ns_or_zero();
  s.iqr_ns = f["iqr_ns"].time_ns_or_zero();
  s.ci_resamples = f["ci"]["resamples"].count_or(0);
  const auto seed = f["ci"].later("seed");  // since 1.7
  if (seed && !seed->is_null()) s.ci_seed = seed->seed();
  const auto unit = f["ci"].later("unit");  // since 1.10
  s.ci_is_of_rounds = unit && unit->text() == "round";
  s.ci_mean_lo_ns = f["ci_mean_t"]["lo_ns"].optional_real();
  s.ci_mean_hi_ns = f["ci_mean_t"]["hi_ns"].optional_real();
  const Field outliers = f["outliers"];
  s.outliers = {outliers["mild_low"].count(), outliers["mild_high"].count(),
                outliers["severe_low"].count(), outliers["severe_high"].count()};
  const Field normality = f["normality"];
  if (!normality.is_null()) {
    s.normality = {normality["test"].text(), normality["statistic"].amount_or_zero(),
                   normality["p"].amount_or_zero()};
  }
  s.trend_pct_per_s = f["trend_pct_per_s"].optional_real();
  s.autocorr_lag1 = f["autocorr_lag1"].optional_real();
  s.between_round_cv_pct = f["between_round_cv_pct"].optional_amount();
  if (!f.has("doubts")) return;  // since 1.6
  s.trend_p = f["trend_p"].optional_amount();
  const Field dip = f["dip"];
  if (!dip.is_null()) s.dip = Dip{dip["statistic"].amount(), dip["p"].amount()};
  if (f["reliable"].is_null()) return;
  s.doubts.emplace();
  for (const Field& doubt : f["doubts"].items()) s.doubts->push_back(doubt.text());
}

Statistics parse_statistics(const Field& f) {
  Statistics s;
  s.n = f["n"].count();
  s.mean_ns = f["mean_ns"].time_ns_or_zero();
  s.stdev_ns = f["stdev_ns"].time_ns_or_zero();
  s.cv_pct = f["cv_pct"].amount_or_zero();
  s.min_ns = f["min_ns"].time_ns_or_zero();
  s.p5_ns = f["p5_ns"].time_ns_or_zero();
  s.q1_ns = f["q1_ns"].time_ns_or_zero();
  s.median_ns = f["median_ns"].time_ns_or_zero();
  s.q3_ns = f["q3_ns"].time_ns_or_zero();
  s.p95_ns = f["p95_ns"].time_ns_or_zero();
  s.max_ns = f["max_ns"].time_ns_or_zero();
  s.mad_ns = f["mad_ns"].time_ns_or_zero();
  s.ci_lo_ns = f["ci"]["lo_ns"].time_ns_or_zero();
  s.ci_hi_ns = f["ci"]["hi_ns"].time_ns_or_zero();
  s.ci_method = f["ci"]["method"].text();
  parse_later_statistics(f, s);
  return s;
}

Clocks parse_clocks(const Field& f) {
  Clocks c;
  c.sm_mhz_median = f["sm_mhz_median"].amount_or_zero();
  c.sm_mhz_min = f["sm_mhz_min"].amount_or_zero();
  for (const Field& reason : f["throttle_reasons"].items())
    c.throttle_reasons.push_back(reason.text());
  c.temp_c = f["temp_c"].optional_real();
  c.power_w = f["power_w"].optional_amount();
  c.sm_mhz_stable = f.later_amount("sm_mhz_stable");
  return c;
}

Energy parse_energy(const Field& f) {
  Energy e;
  e.method = f["method"].text();
  e.window_s = f["window_s"].amount_or_zero();
  e.joules = f["joules"].optional_amount();
  e.joules_per_call = f["joules_per_call"].optional_amount();
  e.avg_w = f["avg_w"].optional_amount();
  e.idle_w = f["idle_w"].optional_amount();
  e.invalid_reason = f["invalid_reason"].text_or_empty();
  return e;
}

/// A column's length; `take` gets its values, unless they are in a missing side-car.
template <class Take>
int64_t parse_column(const Field& f, const Take& take) {
  if (f.has("offset")) {
    (void)f["offset"].count();
    return f["count"].count();
  }
  const std::vector<Field> values = f.items();
  for (const Field& value : values) take(value);
  return static_cast<int64_t>(values.size());
}

/// Columns of a document's samples, as numbers or integers. Since 1.4 and 1.7.
constexpr std::pair<const char*, std::vector<double> Measurement::*> kLaterReals[] = {
    {"sm_mhz", &Measurement::samples_sm_mhz}, {"t_rel_s", &Measurement::samples_t_rel_s}};
constexpr std::pair<const char*, std::vector<int64_t> Measurement::*> kLaterIntegers[] = {
    {"order", &Measurement::samples_order}, {"flags", &Measurement::samples_flags}};

void parse_samples(const Field& f, Measurement& m) {
  const auto require_as_many = [](int64_t samples, int64_t others, const char* what) {
    if (samples == others) return;
    throw Error(ErrorCode::invalid_argument, fmt::format("result: {} with {} {}, expected as many",
                                                         counted(samples, "sample"), others, what));
  };
  const int64_t count = parse_column(
      f["time_ns"], [&](const Field& value) { m.samples_ns.push_back(value.time_ns()); });
  const int64_t rounds = parse_column(
      f["round"], [&](const Field& value) { m.samples_round.push_back(value.count()); });
  require_as_many(count, rounds, "rounds");
  for (const auto& [name, column] : kLaterReals) {
    const auto values = f.later(name);
    if (!values) continue;
    std::vector<double>& target = m.*column;
    const auto take = [&](const Field& value) { target.push_back(value.amount()); };
    require_as_many(count, parse_column(*values, take), name);
  }
  for (const auto& [name, column] : kLaterIntegers) {
    const auto values = f.later(name);
    if (!values) continue;
    std::vector<int64_t>& target = m.*column;
    const auto take = [&](const Field& value) { target.push_back(value.count()); };
    require_as_many(count, parse_column(*values, take), name);
  }
}

/// Fields of measurements since 1.4.
void parse_later_measurement(const Field& f, Measurement& m) {
  if (!f.has("cache")) return;
  m.cache = f["cache"].one_of(kCaches);
  m.buffers_rotated = f["buffers_rotated"].count();
  const Field covers = f["rotation_covers_l2"];
  if (!covers.is_null()) m.rotation_covers_l2 = covers.boolean();
  m.discarded_throttle = f["discarded_throttle"].count();
  if (const auto kept = f.later("kept_throttle")) m.kept_throttle = kept->count();
  if (!f["clocks"].is_null()) m.clocks = parse_clocks(f["clocks"]);
  if (!f["energy"].is_null()) m.energy = parse_energy(f["energy"]);
  m.enqueue_ns_per_call = f["host"]["enqueue_ns_per_call"].optional_amount();
  m.launch_overhead_ns_per_launch = f["host"]["launch_overhead_ns_per_launch"].optional_real();
}

}  // namespace

Measurement parse_measurement(const Field& f) {
  Measurement m;
  m.regime = f["regime"].one_of(kRegimes);
  m.timer = f["timer"].text();
  m.iters_per_sample = f["iters_per_sample"].count();
  m.stop_reason = f["stop_reason"].text();
  m.walltime_s = f["walltime_s"].amount_or_zero();
  m.warmup_s = f.later_amount("warmup_s");  // since 1.19
  m.below_resolution = f["below_resolution"].boolean();
  m.few_samples = f["few_samples"].boolean();
  parse_samples(f["samples"], m);
  m.stats = parse_statistics(f["stats"]);
  m.flops_per_s = f["rates"]["flops_per_s"].optional_amount();
  m.mem_bw_bytes_per_s = f["rates"]["mem_bw_bytes_per_s"].optional_amount();
  const Field rates = f["rates"];
  m.pct_of_floor = rates["pct_of_floor"].optional_amount();
  if (rates.has("roofline_bound")) {  // since 1.7
    m.pct_of_mem_peak = rates["pct_of_mem_peak"].optional_amount();
    m.pct_of_flop_peak = rates["pct_of_flop_peak"].optional_amount();
    m.roofline_bound = rates["roofline_bound"].text_or_empty();
  }
  m.items_per_s = rates.later_amount("items_per_s");  // since 1.8
  for (const Field& warning : f["warnings"].items()) m.warnings.push_back(warning["text"].text());
  parse_later_measurement(f, m);
  return m;
}

}  // namespace wide::bench
