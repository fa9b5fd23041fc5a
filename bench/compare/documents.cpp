// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Comparisons for programs: JSON, JUnit's XML and GitHub's workflow commands.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/compare/verdicts.hpp"
#include "bench/document/json_number.hpp"
#include "bench/report/junit.hpp"
#include "bench/report/table.hpp"
#include "wide/version.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

/// The source of a noise floor.
std::string_view floor_source(const Comparison& c, bool is_of_history) {
  if (is_of_history) return "history";
  if (c.options.noise_floor_pct) return "given";
  return c.noise_floor_pct ? "runs" : "unknown";
}

Json tests_of(const CellTests& t) {
  const Json levene = t.levene ? Json{{"statistic", json_number(t.levene->statistic)},
                                      {"p", json_number(t.levene->p)}}
                               : Json(nullptr);
  return {{"levene", levene},
          {"chosen", t.chosen},
          {"statistic", json_number(t.statistic)},
          {"p", json_number(t.p)},
          {"p_adj", json_number(t.p_adjusted)},
          {"cohens_d", json_number(t.cohens_d)},
          {"hedges_g", json_number(t.hedges_g)},
          {"effect", t.cohens_d ? Json(effect_band(*t.cohens_d)) : Json(nullptr)},
          {"rank_biserial", json_number(t.rank_biserial)}};
}

Json runs_of(const ComparedCell::Runs& runs) {
  const Json ci = runs.ci ? Json{{"lo", json_number(runs.ci->lo)}, {"hi", json_number(runs.ci->hi)}}
                          : Json(nullptr);
  return {{"median", json_number(runs.median)},
          {"geometric_mean", json_number(runs.geometric_mean)},
          {"ci", ci},
          {"n_runs", runs.count},
          {"doubts", runs.doubts},
          {"cold_methods", runs.methods}};
}

Json axes_of(const ComparedCell& cell) {
  Json axes = Json::object();
  for (const auto& entry : cell.axes)
    axes[entry.name] = std::visit([](const auto& value) { return Json(value); }, entry.value);
  return axes;
}

Json pair_of(const DevicePair& pair) {
  return {{"base", pair.base}, {"candidate", pair.candidate}};
}

Json row_of(const Comparison& c, const ComparedCell& cell) {
  const Judgement& j = cell.judgement;
  const bool is_judged = j.verdict <= Verdict::ambiguous;
  const auto& pairs = c.options.device_pairs;
  const auto judged = [&](const std::optional<double>& value) {
    return is_judged ? json_number(value) : Json(nullptr);
  };
  return {{"case_id", cell.case_id},
          {"op", cell.op},
          {"case", cell.point},
          {"axes", axes_of(cell)},
          {"devices", pairs.empty() ? Json(nullptr) : pair_of(pairs[cell.device_pair])},
          {"strategy", cell.strategy},
          {"regime", to_string(cell.regime)},
          {"metric", c.options.metric->name},
          {"base", runs_of(cell.base)},
          {"candidate", runs_of(cell.candidate)},
          {"change_pct", judged(j.change_pct)},
          {"ci_lo_pct", judged(j.ci_lo_pct)},
          {"ci_hi_pct", judged(j.ci_hi_pct)},
          {"cycles_change_pct", judged(j.cycles_change_pct)},
          {"tests", cell.tests ? tests_of(*cell.tests) : Json(nullptr)},
          {"is_significant",
           cell.tests ? Json(cell.tests->p_adjusted < c.options.alpha) : Json(nullptr)},
          {"gate_p", cell.p && is_judged ? json_number(cell.p) : Json(nullptr)},
          {"noise_floor_pct", json_number(cell.noise_floor_pct)},
          {"noise_floor", floor_source(c, cell.has_history_floor)},
          {"status", to_string(j.verdict)},
          {"severity", to_string(j.severity)},
          {"reason", j.reason},
          {"reproduce", cell.reproduce}};
}

Json side_of(const std::vector<std::string>& ids, int64_t processes, const std::string& devices,
             const std::vector<std::string>& units) {
  return {{"runs", ids}, {"n_processes", processes}, {"devices", devices}, {"uuids", units}};
}

Json method_of(const Comparison& c) {
  const CompareOptions& o = c.options;
  const bool is_bootstrap = o.method == CompareMethod::bootstrap;
  Json pairs = Json::array();
  for (const DevicePair& pair : o.device_pairs) pairs.push_back(pair_of(pair));
  return {{"method", to_string(o.method)},
          {"gate", "interval_and_p"},
          {"unit", "process"},
          {"interval", is_bootstrap ? "bca_bootstrap_log_ratio" : "welch_log_ratio"},
          {"level", kLevel},
          {"min_runs", kMinRuns},
          {"tests", o.method == CompareMethod::interval ? "none"
                    : is_bootstrap                      ? "auto"
                                                        : to_string(o.method)},
          {"alpha", o.alpha},
          {"fdr", o.adjusts_p ? "bh" : "none"},
          {"metric", o.metric->name},
          {"better", to_string(o.metric->better)},
          {"threshold_pct", o.threshold_pct},
          {"min_effect_pct", o.min_effect_pct},
          {"noise_floor_pct", json_number(c.noise_floor_pct)},
          {"noise_floor", floor_source(c, o.history.has_value())},
          {"device_pairs", pairs}};
}

Json rules_of(const FailOn& f) {
  Json rules = Json::array();
  if (f.regression) rules.push_back("regression");
  if (f.missing) rules.push_back("missing");
  if (f.invalid) rules.push_back("invalid");
  if (f.inconclusive) rules.push_back("inconclusive");
  if (f.unreliable) rules.push_back("unreliable");
  if (f.device_mismatch) rules.push_back("device-mismatch");
  return rules;
}

std::string github(const std::string& text, bool is_property) {
  std::string out;
  for (const char c : printable(text)) {
    const bool is_special = c == '%' || (is_property && (c == ':' || c == ','));
    out += is_special ? fmt::format("%{:02X}", static_cast<unsigned>(c)) : std::string(1, c);
  }
  return out;
}

std::string name_of(const ComparedCell& cell) {
  return fmt::format("{} {} ({})", cell.op, cell.strategy, to_string(cell.regime));
}

std::string message_of(const Comparison& c, const ComparedCell& cell) {
  std::string text = fmt::format("{}: {} {}", c.label(cell), c.options.metric->name,
                                 to_string(cell.judgement.verdict));
  if (cell.judgement.verdict <= Verdict::ambiguous) text += " " + change_text(cell.judgement);
  if (cell.base.geometric_mean && cell.candidate.geometric_mean) {
    text += fmt::format(", {} -> {}", format_metric(*c.options.metric, *cell.base.geometric_mean),
                        format_metric(*c.options.metric, *cell.candidate.geometric_mean));
  }
  if (cell.is_unreliable()) text += ", unreliable";
  return text + fmt::format(", {}; {}", cell.judgement.reason, cell.reproduce);
}

}  // namespace

std::string compare_json(const Comparison& c, const FailOn& fail_on) {
  Json rows = Json::array(), counts = Json::object();
  bool is_gate_tripped = false;
  for (const ComparedCell& cell : c.cells) {
    rows.push_back(row_of(c, cell));
    is_gate_tripped = is_gate_tripped || is_tripped(cell, fail_on);
  }
  for (const Verdict v : {Verdict::same, Verdict::faster, Verdict::slower, Verdict::ambiguous,
                          Verdict::added, Verdict::missing, Verdict::invalid})
    counts[std::string(to_string(v))] = c.count(v);
  const int code = exit_code_of(c, fail_on);
  const Json document = {
      {"schema", {{"name", "wbench.compare"}, {"version", "1.8.0"}}},
      {"tool", {{"version", version()}}},
      {"base", side_of(c.base_ids, c.base_processes, c.base_device, c.base_units)},
      {"candidate",
       side_of(c.candidate_ids, c.candidate_processes, c.candidate_device, c.candidate_units)},
      {"notes", c.notes},
      {"method", method_of(c)},
      {"rows", rows},
      {"summary",
       {{"counts", counts},
        {"unreliable", c.count_unreliable()},
        {"geomean_change_pct", json_number(c.geomean_change_pct)}}},
      {"gate", {{"tripped", is_gate_tripped || code != 0}, {"rules", rules_of(fail_on)}}},
      {"exit_code", code}};
  return dumped(document);
}

std::string compare_junit(const Comparison& c, const FailOn& fail_on) {
  JunitSuite suite("wbench compare");
  for (const ComparedCell& cell : c.cells) {
    const Verdict v = cell.judgement.verdict;
    const auto outcome = is_tripped(cell, fail_on) ? JunitSuite::Outcome::failed
                         : v >= Verdict::ambiguous ? JunitSuite::Outcome::skipped
                                                   : JunitSuite::Outcome::passed;
    suite.add(cell.op,
              cell.strategy + " " + std::string(to_string(cell.regime)) + " " + c.label(cell),
              outcome, std::string(to_string(v)), message_of(c, cell));
  }
  return suite.text();
}

std::string compare_github(const Comparison& c, const FailOn& fail_on) {
  std::string text;
  for (const std::string& note : c.notes)
    text += fmt::format("::notice title=wbench compare::{}\n", github(note, false));
  for (const ComparedCell& cell : c.cells) {
    const Verdict v = cell.judgement.verdict;
    if (v == Verdict::same) continue;
    const bool is_bad = v == Verdict::slower || v == Verdict::missing || v == Verdict::invalid;
    const char* level = is_tripped(cell, fail_on) ? "error" : is_bad ? "warning" : "notice";
    if (v == Verdict::ambiguous && !fail_on.inconclusive) continue;
    text += fmt::format("::{} title={}::{}\n", level, github(name_of(cell), true),
                        github(message_of(c, cell), false));
  }
  return text + summary_line(c) + "\n";
}

}  // namespace wide::bench
