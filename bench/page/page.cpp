// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/page/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "bench/compare/verdicts.hpp"
#include "bench/document/result_json.hpp"
#include "bench/page/assets.hpp"
#include "bench/page/page_parts.hpp"
#include "bench/page/svg.hpp"
#include "bench/report/html.hpp"
#include "bench/report/rows.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

struct Pairing {
  Regime regime;
  Baseline baseline;
};
constexpr Pairing kPairings[] = {
    {Regime::stream, Baseline::loop}, {Regime::stream, Baseline::streams},
    {Regime::graph, Baseline::graph}, {Regime::cold, Baseline::loop},
    {Regime::cpu, Baseline::loop},    {Regime::cpu, Baseline::streams},
    {Regime::stream, Baseline::peer}, {Regime::graph, Baseline::peer},
    {Regime::cold, Baseline::peer},   {Regime::cpu, Baseline::peer}};

constexpr std::string_view kPlots[] = {"heat",     "speedup",    "time",   "distribution",
                                       "roofline", "comparison", "history"};

class Page {
 public:
  explicit Page(const std::optional<std::set<std::string>>& plots) : plots_(plots) {}

  Palette palette;

  bool draws(const std::string& plot) const { return !plots_ || plots_->contains(plot); }

  void text(const std::string& html) { body_ += html; }

  /// Headings of levels 2 and 3 form the table of contents.
  void heading(int level, const std::string& title) {
    const std::string id = fmt::format("h{}", ++num_headings_);
    if (level == 2) contents_ += contents_.empty() ? "<li>" : "</ul></li>\n<li>";
    contents_ += fmt::format("{}<a href=\"#{}\">{}</a>{}", level == 3 ? "<li>" : "", id,
                             escape_html(title), level == 3 ? "</li>" : "<ul>");
    body_ += fmt::format("<h{0} id=\"{1}\">{2}</h{0}>\n", level, id, escape_html(title));
  }

  /// Adds nothing if there is nothing to draw, or the plot is not selected.
  void figure(const std::string& plot, const Chart& chart) {
    if (chart.is_empty() || !draws(plot)) return;
    std::string legend;
    for (const ChartSeries& s : chart.series) {
      legend += s.mark == ChartSeries::Mark::guide
                    ? "<li>" + escape_html(s.name) + "</li>"
                    : "<li>" + svg_key(s.color) + escape_html(s.name) + "</li>";
    }
    const std::string id = fmt::format("c{}", charts_.size());
    body_ +=
        fmt::format("<figure id=\"{}\"><figcaption>{}</figcaption><div class=\"plot\">{}</div>", id,
                    escape_html(chart.title), svg_of(chart));
    body_ += legend.empty() ? "" : "<ul class=\"legend\">" + legend + "</ul>";
    body_ += "</figure>\n";
    charts_[id] = to_json(chart);
  }

  std::string render(const std::string& title) const {
    const bool has_script = *kReportScript != '\0';
    std::string out =
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
        "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
    if (has_script) out += std::string("; script-src 'sha256-") + kReportScriptHash + "'";
    out += "\"><title>" + escape_html(title) + "</title><style>" + kReportStyles +
           "</style></head>\n<body><a class=\"skip\" href=\"#main\">Skip to the results</a>" +
           svg_symbols() + "<header><h1>" + escape_html(title) +
           "</h1><nav aria-label=\"Contents\"><ul>" + contents_ +
           (contents_.empty() ? "" : "</ul></li>") + "</ul></nav></header>\n<main id=\"main\">\n" +
           body_ + "</main>\n";
    if (has_script) {
      out += "<script type=\"application/json\" id=\"charts\">" + script_data(charts_) +
             "</script>\n<script>" + kReportScript + "</script>\n";
    }
    return out + "</body></html>\n";
  }

 private:
  const std::optional<std::set<std::string>>& plots_;
  std::string body_, contents_;
  int num_headings_ = 0;
  Json charts_ = Json::object();
};

std::optional<int64_t> crossover_of(const RunResult& result, const std::string& op,
                                    const Pairing& pairing) {
  for (const OpSummary& s : result.op_summaries) {
    if (s.op == op && s.regime == pairing.regime && s.baseline == pairing.baseline)
      return s.crossover_n;
  }
  return std::nullopt;
}

std::set<Regime> regimes_of(const RunResult& result) {
  std::set<Regime> regimes;
  for (const CaseResult& c : result.cases) {
    for (const auto* runners : {&c.strategies, &c.baselines}) {
      for (const RunnerResult& r : *runners) {
        for (const Measurement& m : r.measurements) regimes.insert(m.regime);
      }
    }
  }
  return regimes;
}

void add_distributions(Page& page, const RunResult& result, const std::string& op,
                       const std::set<Regime>& regimes) {
  page.text("<details><summary>" + escape_html(op) +
            ": distributions of samples</summary><div class=\"figures\">\n");
  for (const CaseResult& c : result.cases) {
    if (c.point.op() != op) continue;
    for (const Regime regime : regimes)
      page.figure("distribution", distribution_chart(c, regime, page.palette));
  }
  page.text("</div></details>\n");
}

void add_op(Page& page, const RunResult& result, const std::string& op) {
  const std::vector<CaseGroup> groups = groups_of(result, op);
  const std::set<Regime> regimes = regimes_of(result);
  page.heading(3, op);
  page.text("<div class=\"heats\">\n");
  for (const Pairing& pairing : kPairings) {
    if (page.draws("heat")) page.text(heat_table(groups, pairing.regime, pairing.baseline));
  }
  page.text("</div>\n<div class=\"figures\">\n");
  for (const CaseGroup& group : groups) {
    for (const Pairing& pairing : kPairings)
      page.figure("speedup", speedup_chart(group, pairing.regime, pairing.baseline, page.palette));
    for (const Regime regime : regimes) {
      const Pairing pairing{regime, regime == Regime::graph ? Baseline::graph : Baseline::loop};
      page.figure("time",
                  time_chart(group, regime, crossover_of(result, op, pairing), page.palette));
    }
  }
  page.text("</div>\n" + results_table(result, op));
  if (page.draws("distribution")) add_distributions(page, result, op, regimes);
  page.text(reproduce_list(result, op));
}

void add_rooflines(Page& page, const RunResult& result) {
  std::vector<Chart> charts;
  for (const Regime regime : regimes_of(result)) {
    std::set<std::string> dtypes;
    for (const CaseResult& c : result.cases) {
      for (const auto& entry : c.point.entries()) {
        if (entry.name == "dtype") dtypes.insert(catalog::to_string(entry.value));
      }
    }
    for (const std::string& dtype : dtypes) {
      Chart chart = roofline_chart(result, regime, dtype, page.palette);
      if (!chart.is_empty()) charts.push_back(std::move(chart));
    }
  }
  if (charts.empty() || !page.draws("roofline")) return;
  page.heading(3, "Roofline");
  page.text("<div class=\"figures\">\n");
  for (const Chart& chart : charts) page.figure("roofline", chart);
  page.text("</div>\n");
}

void add_result(Page& page, const RunResult& result) {
  page.text("<section>\n");
  page.heading(2, device_name(result) + ", run " + result.id);
  const std::string samples = samples_note(result);
  if (!samples.empty()) page.text("<p class=\"bad\">" + escape_html(samples) + "</p>\n");
  const std::string failures = failures_list(result);
  if (!failures.empty()) {
    page.heading(3, "What failed or was not run");
    page.text(failures);
  }
  const std::string summary = summary_table(result);
  if (!summary.empty()) {
    page.heading(3, "Summary");
    page.text(summary);
  }
  for (const std::string& op : ops_of(result)) add_op(page, result, op);
  add_rooflines(page, result);
  page.heading(3, "Environment");
  page.text(environment_table(result) + "</section>\n");
}

void add_comparison(Page& page, const Comparison& comparison) {
  page.heading(2, "Comparison with earlier results");
  page.text("<p>" + escape_html(summary_line(comparison)) + "</p>\n");
  if (comparison.has_device_mismatch()) {
    page.text("<p class=\"bad\">Base ran on " + escape_html(comparison.base_device) +
              ", candidate on " + escape_html(comparison.candidate_device) + ".</p>\n");
  }
  for (const std::string& note : comparison.notes) page.text("<p>" + escape_html(note) + ".</p>\n");
  page.figure("comparison", comparison_chart(comparison));
  page.text(comparison_table(comparison));
}

void add_history(Page& page, const std::vector<HistorySeries>& history) {
  std::vector<std::pair<std::string, std::vector<const HistorySeries*>>> groups;
  for (const HistorySeries& s : history) {
    const std::string key = s.last.op + "\n" + s.last.axes + "\n" + s.last.case_id + "\n" +
                            s.last.regime + "\n" + s.last.device;
    auto group =
        std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == key; });
    if (group == groups.end()) group = groups.insert(groups.end(), {key, {}});
    group->second.push_back(&s);
  }
  HtmlTable table("Medians over runs", {{"case", false},
                                        {"strategy", false},
                                        {"regime", false},
                                        {"device", false},
                                        {"runs"},
                                        {"first"},
                                        {"last"},
                                        {"change"},
                                        {"noise"}});
  for (const HistorySeries& s : history) {
    const auto noise = noise_band(s);
    table.add(
        {{s.last.op + " " + s.last.axes},
         {s.last.runner},
         {s.last.regime},
         {s.last.device},
         {std::to_string(s.runs.size())},
         {format_value(Unit::time, s.medians_ns.front())},
         {format_value(Unit::time, s.medians_ns.back())},
         {format_value(Unit::percent, 100 * (s.medians_ns.back() / s.medians_ns.front() - 1))},
         {noise ? fmt::format("{:.1f}%", noise->floor_pct) : ""}});
  }
  page.heading(2, "History trends");
  page.text(
      "<p>Medians over runs. Bands: the noise floor, two robust deviations of the last runs around "
      "their median, from three runs; what lies outside is hardly noise.</p>\n"
      "<div class=\"figures\">\n");
  for (const auto& [key, series] : groups)
    page.figure("history", history_chart(series, page.palette));
  page.text("</div>\n" + table.render("results"));
}

}  // namespace

std::span<const std::string_view> plot_names() {
  return kPlots;
}

std::string report_page(const PageContent& content) {
  Page page(content.plots);
  if (content.comparison) add_comparison(page, *content.comparison);
  for (const RunResult& result : content.results) add_result(page, result);
  if (!content.history.empty()) add_history(page, content.history);
  return page.render("wbench report");
}

}  // namespace wide::bench
