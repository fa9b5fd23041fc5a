// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Pages of results without a browser: that nothing is lost, nothing is trusted, and that charts
// stand without a script. What a browser makes of them: report_browser_test.py.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "bench/document/metrics.hpp"
#include "bench/document/result_json.hpp"
#include "bench/page/assets.hpp"
#include "bench/page/charts.hpp"
#include "bench/page/page.hpp"
#include "bench/page/svg.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/report/html.hpp"
#include "bench/report/report.hpp"
#include "host/core/file.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/bench/sample_result.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kHostile = "</script ><script>alert(1)</script><!-- \" ' & \x1b[31m";

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// A page is too long to be printed where it lacks something.
#define CHECK_HAS(text, part)        \
  do {                               \
    INFO(part);                      \
    CHECK(count_of(text, part) > 0); \
  } while (false)

/// Cases of linear at several N, in two batches, with speedups.
RunResult sweep_result() {
  RunResult r = sample_result();
  r.cases = {sample_case("linear", 4, "fp16"), sample_case("linear", 16, "fp16"),
             sample_case("linear", 8, "fp16"), sample_case("linear", 16, "fp32")};
  return r;
}

Chart one_line(std::vector<ChartPoint> points) {
  return {"a title",
          {"N", Unit::count, true},
          {"y", Unit::ratio, true},
          1.0,
          {{"wide", 0, ChartSeries::Mark::line, std::move(points)}},
          {}};
}

std::string page_of(RunResult result) {
  return report_page({{std::move(result)}, std::nullopt, {}});
}

}  // namespace

TEST_CASE("text is escaped for content, attributes and script elements") {
  CHECK(escape_html("a<b>&\"'\n") == "a&lt;b&gt;&amp;&quot;&#39;\n");
  CHECK(escape_html("\x1b\x7f") == "\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(escape_html("h\xc3\xb6st") == "h\xc3\xb6st");
  const Json document = {{kHostile, {kHostile, "\xe2\x80\xa8", 0.1, nullptr}}};
  const std::string data = script_data(document);
  for (const char* part : {"<", ">", "&", "\xe2"}) CHECK(count_of(data, part) == 0);
  CHECK(Json::parse(data) == document);
}

TEST_CASE("a hostile result ends no element of the page") {
  RunResult r = sample_result();
  const size_t tags = count_of(page_of(r), "<script");
  r.id = r.hostname = r.os = r.cpu = r.git_sha = r.compiler = r.devices[0].name = kHostile;
  r.argv = {kHostile};
  r.impossible_reasons = {{kHostile, 1}};
  r.calibration.flops_per_s.emplace_back(kHostile, 1.0);
  for (OpSummary& s : r.op_summaries) s.op = s.best_strategy = s.best_case = kHostile;
  for (CaseResult& c : r.cases) {
    c.point = sample_point(kHostile, 4, kHostile);
    c.reproduce = c.reason = kHostile;
    for (auto* runners : {&c.strategies, &c.baselines}) {
      for (RunnerResult& runner : *runners) runner.name = runner.reason = kHostile;
    }
    for (Speedup& s : c.speedups) s.strategy = s.verdict = kHostile;
  }
  const std::string page = page_of(r);
  CHECK(count_of(page, "<script") == tags);
  CHECK(count_of(page, "</script") == tags);
  CHECK(count_of(page, "alert(1)</") == 0);
  CHECK(count_of(page, "\x1b") == 0);
}

TEST_CASE("a page loads nothing and runs no script but the build's") {
  const std::string page = page_of(sample_result());
  CHECK_HAS(page, "default-src 'none'; style-src 'unsafe-inline'");
  for (const char* part : {" src=", "<link", "url(", "@import", "<img", "<iframe"})
    CHECK(count_of(page.substr(0, page.find("<script")), part) == 0);
  const bool has_script = *kReportScript != '\0';
  CHECK(count_of(page, "<script") == (has_script ? 2 : 0) + count_of(kReportScript, "<script"));
  CHECK(has_script == (*kWhyNoReportScript == '\0'));
  CHECK(count_of(page, "script-src 'sha256-") == (has_script ? 1 : 0));
}

TEST_CASE("every measurement and every failure is in the page's tables") {
  const RunResult r = sample_result();
  const std::string page = page_of(r);
  for (const CaseResult& c : r.cases) {
    CHECK_HAS(page, escape_html(c.reproduce));
    for (const auto* runners : {&c.strategies, &c.baselines}) {
      for (const RunnerResult& runner : *runners) {
        CAPTURE(runner.name);
        CHECK_HAS(page, runner.name);
        CHECK_HAS(page, escape_html(runner.reason.substr(0, 20)));
        for (const Measurement& m : runner.measurements)
          CHECK_HAS(page, format_value(Unit::time, m.stats.median_ns));
      }
    }
  }
  for (const char* part :
       {"4.96x [4.95, 4.97]", "VERIFY FAILED: member 3", "12 heads do not divide 256",
        "NVIDIA H200", "h\xc3\xb6st", "crossover N", "linear,layernorm"})
    CHECK_HAS(page, part);
}

TEST_CASE("charts have every point of the result, with its interval") {
  const RunResult r = sweep_result();
  Palette palette;
  const std::vector<CaseGroup> groups = groups_of(r, "linear");
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].rest == "dtype=fp16");
  const Chart speedup = speedup_chart(groups[0], Regime::stream, Baseline::loop, palette);
  REQUIRE(speedup.series.size() == 2);
  const ChartSeries& simt = speedup.series[1];
  CHECK(simt.name == "simt");
  REQUIRE(simt.points.size() == 3);
  CHECK((simt.points[0].x == 4 && simt.points[1].x == 8 && simt.points[2].x == 16));
  CHECK((simt.points[0].y == 4.96 && simt.points[0].lo == 4.96 - 0.0123));

  const Chart time = time_chart(groups[0], Regime::graph, 8, palette);
  REQUIRE(time.series.size() == 4);  // a baseline, two strategies, the crossover
  CHECK(time.series[0].name == "(graph)");
  CHECK(time.series[0].mark == ChartSeries::Mark::dashed);
  CHECK(time.series[3].points[0].x == 8);

  const Chart roofline = roofline_chart(r, Regime::stream, "fp16", palette);
  REQUIRE(roofline.series.size() == 5);
  const auto& ceiling = roofline.series.back().points;
  REQUIRE(ceiling.size() == 3);
  CHECK(ceiling[1].x == 7.7e14 / 4.1e12);
  CHECK(ceiling[2].y == 7.7e14);

  const Chart samples = distribution_chart(r.cases[0], Regime::stream, palette);
  REQUIRE(samples.rows.size() == 4);
  CHECK(*samples.rows[0].samples == r.cases[0].baselines[0].measurements[0].samples_ns);
  const Json document = to_json(samples);
  CHECK(document["rows"][0]["samples"].get<std::vector<double>>() == *samples.rows[0].samples);
}

TEST_CASE("what is wrong or cannot be drawn has no point") {
  RunResult r = sweep_result();
  for (CaseResult& c : r.cases) c.strategies[1].status = Status::verify_failed;
  Palette palette;
  const auto groups = groups_of(r, "linear");
  for (const ChartSeries& s : time_chart(groups[0], Regime::stream, {}, palette).series)
    CHECK(s.name != "simt");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Chart gaps = one_line({{2, nan}, {4, 0}, {8, 2, nan, 3}, {16, 1.5}});
  CHECK(to_json(gaps)["series"][0]["points"].size() == 1);
  CHECK(count_of(svg_of(gaps), "nan") == 0);
  r.cases[0].strategies[0].measurements[0].stats.q1_ns = 0;
  const Chart samples = distribution_chart(r.cases[0], Regime::stream, palette);
  for (const ChartRow& row : samples.rows) CHECK(*row.lo > 0);
  Chart linear = one_line({{2, nan}, {4, std::numeric_limits<double>::infinity()}, {8, -1}});
  linear.y.is_log = false;
  CHECK(to_json(linear)["series"][0]["points"].size() == 1);
  CHECK(one_line({{2, nan}}).is_empty());
  CHECK(one_line({}).is_empty());
  CHECK(!one_line({{4, 1.5}}).is_empty());
}

TEST_CASE("a chart without a script has marks, ticks and a name for who cannot see it") {
  const std::string svg =
      svg_of(one_line({{4, 0.9, 0.8, 1.0}, {8, 1.5, 1.4, 1.6}, {16, 2.5, 2, 3}}));
  CHECK_HAS(svg, "role=\"img\" aria-label=\"a title\"");
  CHECK(count_of(svg, "<use href=\"#m0\"") == 3);
  CHECK(count_of(svg, "class=\"band s0\"") == 1);
  CHECK(count_of(svg, "class=\"reference\"") == 1);
  for (const char* tick : {">4<", ">8<", ">16<", ">1.00x<", ">2.00x<"}) CHECK_HAS(svg, tick);
  CHECK_HAS(svg, "<title>wide, 8: 1.50x</title>");
  const Chart single = one_line({{4, 1.5}});
  CHECK(count_of(svg_of(single), "<use") == 1);
  CHECK(count_of(svg_of(single), "nan") + count_of(svg_of(single), "inf") == 0);
}

TEST_CASE("ticks are few, round and inside") {
  CHECK(ticks_between(0.8, 6, true, 8) == std::vector<double>{1, 2, 5});
  CHECK(ticks_between(0.7, 1.9, true, 6) == ticks_between(0.7, 1.9, false, 6));
  CHECK(ticks_between(0.55, 1.9, true, 6) == std::vector<double>{1, 1.5});
  CHECK(ticks_between(-3, 7, false, 5) == std::vector<double>{-2, 0, 2, 4, 6});
  for (const double hi : {1.0001, 1.5, 2.9, 3.1, 40., 1e4, 1e9, 1e30}) {
    const std::vector<double> ticks = ticks_between(1, hi, true, 8);
    CAPTURE(hi, ticks.size());
    CHECK((!ticks.empty() && ticks.size() <= 9));
    CHECK((ticks.front() >= 1 && ticks.back() <= hi * (1 + 1e-9)));
  }
}

TEST_CASE("a scale has few ticks and all values, whatever numbers a file has") {
  const auto [least, most] = GENERATE(table<double, double>({{20, 1e300},
                                                             {1e-300, 1e300},
                                                             {100, std::nextafter(100, 200)},
                                                             {1e308, 1.7e308},
                                                             {1e300, 1e300}}));
  for (const bool is_log : {true, false}) {
    const ChartScale scale{"time", Unit::time, is_log};
    const Chart chart{
        "", scale, scale, {}, {{"a", 0, ChartSeries::Mark::line, {{1, least}, {2, most}}}}, {}};
    const ScaleFrame frame = frame_of(chart).y;
    CHECK((frame.lo <= least && most <= frame.hi && frame.lo < frame.hi));
    CHECK((std::isfinite(frame.lo) && std::isfinite(frame.hi)));
    CHECK((!frame.ticks.empty() && frame.ticks.size() < 20));
  }
}

TEST_CASE("heat maps go both ways from 1, and say the number") {
  const std::string page = page_of(sweep_result());
  CHECK_HAS(page, "class=\"num heat up\" style=\"--share:100%\">4.96x</td>");
  CHECK_HAS(page, "class=\"num heat down\" style=\"--share:8%\">0.90x</td>");
}

TEST_CASE("comparison and history have their tables and charts") {
  RunResult base = sweep_result();
  CompareOptions options;
  options.metric = &find_measured_metric("time_ns");
  const std::vector<RunResult> one{base};
  RunResult other = sweep_result();
  other.config.init.dist = "<zeros>";
  std::vector<HistorySeries> history(1);
  history[0].last = {"b", "", "H200",  "0123456789abcdef", "linear", "n=4", "simt", "stream", 9,
                     8,   10, "c0ffee"};
  history[0].medians_ns = {10e3, 9e3};
  history[0].runs = {"a", "b"};
  const std::string page =
      report_page({{other}, compare(one, std::vector{other}, options), history});
  for (const char* part :
       {"Comparison with earlier results", "Candidate against base", "History",
        "&lt;zeros&gt;: values change power", "-10.0%", "n=4: medians over runs"})
    CHECK_HAS(page, part);
}

TEST_CASE("a trend has the band of its noise, and says which runs lie beyond it") {
  HistorySeries series;
  series.last.runner = "wide";
  series.medians_ns = {100, 110, 121, 110, 300};
  series.runs = {"a", "b", "c", "d", "e"};
  series.codes.assign(5, "c0ffee");
  HistorySeries few = series;
  few.last.runner = "simt";
  few.medians_ns = {50, 60};
  few.runs = {"b", "d"};
  Palette palette;
  const Chart chart = history_chart({&series, &few}, palette);
  REQUIRE(chart.series.size() == 2);
  const double factor = std::pow(1.1, 2 * 1.4826 * std::sqrt(5. / 4));
  for (const ChartPoint& point : chart.series[0].points) {
    CHECK(std::fabs(point.lo.value() - 110 / factor) < 1e-9);
    CHECK(std::fabs(point.hi.value() - 110 * factor) < 1e-9);
  }
  CHECK(chart.series[0].points[2].note == "run c");
  CHECK(chart.series[0].points[4].note == "run e, beyond the noise floor of 37.2%");
  CHECK((chart.series[1].points[0].x == 2 && !chart.series[1].points[0].lo));
  const std::string svg = svg_of(chart);
  CHECK(count_of(svg, "class=\"band s0\"") == 1);
  CHECK(count_of(svg, "class=\"band") == 1);
  CHECK_HAS(report_page({{}, std::nullopt, {series, few}}), "History trends");
}

TEST_CASE("a result of nothing is a page, too") {
  const std::string page = page_of(RunResult{});
  CHECK_HAS(page, "Environment");
  CHECK(count_of(page, "<figure") == 0);
  CHECK_HAS(report_page({}), "</html>");
}

TEST_CASE("a page has the plots that are asked for, and every table") {
  PageContent content;
  content.results = {sample_result()};
  const size_t all = count_of(report_page(content), "<figure");
  content.plots = std::set<std::string>();
  const std::string none = report_page(content);
  CHECK(count_of(none, "<figure") == 0);
  CHECK(count_of(none, "distributions of samples") + count_of(none, "Roofline") == 0);
  CHECK(count_of(none, "<table") > 2);
  size_t sum = 0;
  for (const std::string_view plot : plot_names()) {
    content.plots = {std::string(plot)};
    sum += count_of(report_page(content), "<figure");
  }
  CHECK(sum == all);
  CHECK(sum > 4);
}

TEST_CASE("report writes what it was asked for, and says what it cannot read") {
  const auto folder = std::filesystem::temp_directory_path() / "wide_report_page_test";
  std::filesystem::create_directories(folder);
  const std::string file = (folder / "a.json").string(), html = (folder / "a.html").string();
  const RunResult result = consistent(sample_result());
  std::ofstream(file) << to_json(result).dump();
  CHECK(wbench("report " + file + " --html " + html).code == 0);
  CHECK(read_file(html) == page_of(result));
  CHECK(wbench("report " + folder.string() + " --html -").out == read_file(html));
  RunResult base = result;
  base.id = "base";
  const std::string base_file = (folder / "base" / "b.json").string();
  std::filesystem::create_directories(folder / "base");
  std::ofstream(base_file) << to_json(base).dump();
  const Outcome tables = wbench("report " + file + " --offline --md - --compare " + base_file);
  CHECK(tables.code == 0);
  CHECK_HAS(tables.out, report_markdown(load_result(file)));
  CHECK(wbench("report " + file + " --md - --compare " + file).code == kUsage);
  const Outcome compared = wbench("report " + file + " --html - --compare " + base_file);
  CHECK_HAS(compared.out, "Candidate against base");
  RunResult none = sample_result();
  none.cases.clear();
  std::ofstream(file) << to_json(none).dump();
  CHECK(wbench("report " + file + " --html " + html).code == kNothingRan);
  const Outcome shown = wbench("show " + file);
  CHECK(shown.code == kNothingRan);
  CHECK_HAS(shown.out, "no case\n");
  CHECK(wbench("report " + file).code == kUsage);
  CHECK(wbench("report " + file + " --html - --md -").code == kUsage);
  CHECK(wbench("report " + file + " --md - --history").code == kUsage);
  const Outcome plot = wbench("report " + file + " --html - --plots sped");
  CHECK(plot.code == kUsage);
  CHECK_HAS(plot.err, "did you mean speedup");
  CHECK(wbench("report nowhere.json --html -").code == kRuntimeError);
  std::filesystem::remove_all(folder);
}

}  // namespace wide::bench
