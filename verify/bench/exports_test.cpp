// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Exports, read back as their consumers read them, hostile strings included.
#include "bench/report/exports.hpp"

#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "bench/process/exit_code.hpp"
#include "bench/report/junit.hpp"
#include "bench/report/report.hpp"
#include "bench/report/table.hpp"
#include "host/core/file.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/bench/sample_result.hpp"
#include "verify/support/folder.hpp"

namespace wide::bench {

namespace {

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

/// Every string that comes from outside is as bad as can be.
RunResult hostile_result() {
  const std::string bad = "\"</script>,\r\n\x01\xff|'; DROP\\ \xE2\x80\xAE";
  RunResult r = sample_result();
  r.hostname = r.git_sha = r.id = bad;
  r.devices.front().name = bad;
  for (CaseResult& c : r.cases) {
    c.reproduce = c.reason = bad;
    for (RunnerResult& s : c.strategies) s.name += s.reason = bad;
    for (Speedup& s : c.speedups) s.strategy += bad;
  }
  return r;
}

/// As RFC 4180 says, which pandas' read_csv follows.
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1, {""});
  bool is_quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    std::string& cell = rows.back().back();
    if (is_quoted) {
      if (c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
        cell += text[++i];
      } else if (c == '"') {
        is_quoted = false;
      } else {
        cell += c;
      }
    } else if (c == '"') {
      is_quoted = true;
    } else if (c == ',') {
      rows.back().emplace_back();
    } else if (c == '\r' && text[i + 1] == '\n') {
      rows.push_back({""});
      ++i;
    } else {
      cell += c;
    }
  }
  CHECK_FALSE(is_quoted);
  CHECK(rows.back() == std::vector<std::string>{""});  // the last line has an end
  rows.pop_back();
  return rows;
}

std::vector<json> parse_lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<json> rows;
  for (std::string line; std::getline(stream, line);) rows.push_back(json::parse(line));
  return rows;
}

}  // namespace

TEST_CASE("CSV and JSON lines say the same, a column an axis") {
  const RunResult result = GENERATE(sample_result(), hostile_result());
  const auto csv = parse_csv(report_csv(result));
  const std::vector<json> lines = parse_lines(export_jsonl(result));
  REQUIRE(csv.size() == lines.size() + 1);
  const std::vector<std::string>& header = csv.front();
  CHECK(std::set<std::string>(header.begin(), header.end()).size() == header.size());
  for (size_t r = 0; r < lines.size(); ++r) {
    REQUIRE(csv[r + 1].size() == header.size());
    for (size_t c = 0; c < header.size(); ++c) {
      const json value = lines[r].value(header[c], json());
      const std::string& cell = csv[r + 1][c];
      INFO(header[c] << " = " << cell);
      if (value.is_null()) CHECK(cell.empty());
      if (value.is_number()) CHECK(json::parse(cell) == value);
      if (value.is_boolean()) CHECK(cell == (value.get<bool>() ? "true" : "false"));
      if (value.is_string() && cell.find('\xff') == std::string::npos)
        CHECK(cell == printable(value.get<std::string>()));
    }
  }
  CHECK(lines[0].at("axis_n") == result.cases[0].point.integer("n"));
}

TEST_CASE("CSV has what was counted, summed over a call's launches and their buffers") {
  RunResult result = sample_result();
  LaunchCounters launch = result.cases[0].strategies.at(1).launches.at(0);
  launch.values = {{"instructions_fp32", 7}};
  launch.buffers = {{"x", {{"read_sectors", 3}}}, {"y", {{"read_sectors", 2}}}};
  result.cases[0].strategies[1].launches = {launch, launch};
  result.cases.resize(1);
  const auto csv = parse_csv(report_csv(result));
  const auto column = [&](const std::string& name) {
    return static_cast<size_t>(std::find(csv[0].begin(), csv[0].end(), name) - csv[0].begin());
  };
  const size_t counted = column("counter_instructions_fp32"),
               in_buffers = column("counter_buffers_read_sectors"), name = column("name");
  REQUIRE(in_buffers < csv[0].size());
  REQUIRE(counted < csv[0].size());
  for (size_t r = 1; r < csv.size(); ++r) {
    const bool is_counted = csv[r][name] == result.cases[0].strategies[1].name;
    CHECK(csv[r][counted] == (is_counted ? "14" : ""));
    CHECK(csv[r][in_buffers] == (is_counted ? "10" : ""));
  }
}

RunResult without_timelines(RunResult result) {
  for (CaseResult& c : result.cases) {
    for (auto* runners : {&c.strategies, &c.baselines}) {
      for (RunnerResult& r : *runners) {
        for (Measurement& m : r.measurements) m.samples_order.clear(), m.samples_t_rel_s.clear();
      }
    }
  }
  return result;
}

TEST_CASE("a trace has what Perfetto wants of complete events, one behind the other") {
  const RunResult result = without_timelines(GENERATE(sample_result(), hostile_result()));
  const json trace = json::parse(export_trace(result));
  std::set<std::pair<int, int>> named, used;
  size_t samples = 0;
  double last_end = 0;
  for (const json& event : trace.at("traceEvents")) {
    CHECK(event.at("name").is_string());
    const std::pair<int, int> thread{event.at("pid").get<int>(), event.at("tid").get<int>()};
    if (event.at("ph") == "M") {
      CHECK(event.at("args").at("name").is_string());
      named.insert(thread);
      continue;
    }
    CHECK(event.at("ph") == "X");
    CHECK(event.at("ts").get<double>() >= last_end * (1 - 1e-12));
    CHECK(event.at("dur").get<double>() >= 0);
    last_end = event.at("ts").get<double>() + event.at("dur").get<double>();
    used.insert(thread);
    ++samples;
  }
  size_t expected = 0;
  double length_us = 0;
  for (const CaseResult& c : result.cases) {
    for (const auto* runners : {&c.strategies, &c.baselines}) {
      for (const RunnerResult& r : *runners) {
        for (const Measurement& m : r.measurements) {
          expected += m.samples_ns.size();
          for (const double ns : m.samples_ns)
            length_us += ns * static_cast<double>(m.iters_per_sample) / 1000;
        }
      }
    }
  }
  CHECK(samples == expected);
  CHECK(last_end == Catch::Approx(length_us));
  for (const auto& thread : used) CHECK(named.contains(thread));
}

TEST_CASE("a trace is the measured timeline") {
  RunResult result = sample_result();
  result.cases.resize(1);
  CaseResult& c = result.cases[0];
  c.strategies.resize(1), c.baselines.resize(1);
  c.strategies[0].measurements.resize(1), c.baselines[0].measurements.resize(1);
  Measurement &ours = c.strategies[0].measurements[0], &theirs = c.baselines[0].measurements[0];
  for (Measurement* m : {&ours, &theirs}) {
    m->iters_per_sample = 2;
    m->samples_ns.assign(4, 1000), m->samples_round = {0, 0, 1, 1};
    m->samples_sm_mhz.clear(), m->samples_flags.clear();
  }
  // ABBA, and a discarded sample before the last one.
  ours.samples_order = {0, 1, 6, 8}, theirs.samples_order = {2, 3, 4, 5};
  ours.samples_t_rel_s = {0.5, 1, 3.5, 4}, theirs.samples_t_rel_s = {1.5, 2, 2.5, 3};
  std::vector<double> begins_us;
  std::string order;
  const CaseResult next = c;  // begins at the end of the first one
  result.cases.push_back(next);
  const json trace = json::parse(export_trace(result));
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    begins_us.push_back(event.at("ts").get<double>());
    order += event.at("tid") == 1 ? 'a' : 'b';
    CHECK(event.at("dur") == 2.0);
  }
  CHECK(begins_us == std::vector<double>{5e5, 1e6, 1.5e6, 2e6, 2.5e6, 3e6, 3.5e6, 4e6, 4500002.0,
                                         5000002.0, 5500002.0, 6000002.0, 6500002.0, 7000002.0,
                                         7500002.0, 8000002.0});
  CHECK((order == "aabbbbaaaabbbbaa" || order == "bbaaaabbbbaaaabb"));
  result.cases[0]
      .strategies[0]
      .measurements[0]
      .samples_t_rel_s.clear();  // of an earlier version's file
  CHECK_THAT(export_trace(result), ContainsSubstring("laid end to end"));
}

TEST_CASE("a repetition of Google Benchmark's is a round: its rates, its iterations") {
  RunResult result = sample_result();
  Measurement& m = result.cases[0].strategies.at(0).measurements.at(0);
  m.samples_ns = {100, 100, 100, 200, 200}, m.samples_round = {0, 0, 0, 1, 1};
  m.iters_per_sample = 4, m.stats.median_ns = 100;
  m.flops_per_s = 8e9, m.mem_bw_bytes_per_s = 4e9, m.items_per_s = 2e9;
  std::vector<json> rounds;
  const json document = json::parse(export_google_benchmark(result));
  for (const json& b : document.at("benchmarks")) {
    const auto name = b.at("run_name").get<std::string>();
    const std::string wanted =
        "/" + result.cases[0].strategies[0].name + "/" + std::string(to_string(m.regime));
    if (b.at("run_type") == "iteration" && name.ends_with(wanted) &&
        name.find(result.cases[0].point.to_string()) != std::string::npos)
      rounds.push_back(b);
  }
  REQUIRE(rounds.size() == 2);
  CHECK((rounds[0].at("iterations") == 12 && rounds[1].at("iterations") == 8));
  CHECK((rounds[0].at("real_time") == 100 && rounds[1].at("real_time") == 200));
  CHECK((rounds[0].at("flops_per_second") == 8e9 && rounds[1].at("flops_per_second") == 4e9));
  CHECK((rounds[0].at("bytes_per_second") == 4e9 && rounds[1].at("bytes_per_second") == 2e9));
  CHECK((rounds[0].at("items_per_second") == 2e9 && rounds[1].at("items_per_second") == 1e9));
}

TEST_CASE("text formats have no control characters of a file") {
  RunResult result = sample_result();
  result.id = result.cases[0].strategies.at(0).name = "\x1b[31mred\x07";
  result.cases[0].strategies[0].status = Status::failed;
  result.cases[0].strategies[0].reason = "two\nlines";
  for (const ExportFormat& format : export_formats()) {
    const std::string text = format.write(result);
    INFO(format.name);
    CHECK(std::none_of(text.begin(), text.end(),
                       [](unsigned char c) { return c < 0x20 && c != '\n' && c != '\r'; }));
  }
  CHECK_THAT(report_csv(result), ContainsSubstring(" [31mred ") && ContainsSubstring("two lines"));
}

TEST_CASE("Google Benchmark's JSON has the fields that its compare.py reads") {
  const json document =
      json::parse(export_google_benchmark(GENERATE(sample_result(), hostile_result())));
  for (const char* key : {"date", "host_name", "num_cpus", "library_build_type", "caches"})
    CHECK(document.at("context").contains(key));
  size_t medians = 0, iterations = 0, errors = 0;
  for (const json& b : document.at("benchmarks")) {
    for (const char* key :
         {"name", "run_name", "run_type", "real_time", "cpu_time", "time_unit", "iterations",
          "family_index", "per_family_instance_index", "repetitions", "threads"})
      CHECK(b.contains(key));
    CHECK(b.at("time_unit") == "ns");
    if (b.value("error_occurred", false)) {
      CHECK(b.at("error_message").is_string());
      ++errors;
    } else if (b.at("run_type") == "aggregate") {
      CHECK(b.at("name") ==
            b.at("run_name").get<std::string>() + "_" + b.at("aggregate_name").get<std::string>());
      medians += b.at("aggregate_name") == "median";
    } else {
      CHECK(b.at("run_type") == "iteration");
      CHECK(b.at("repetition_index") < b.at("repetitions"));
      CHECK(b.at("real_time") > 0);
      ++iterations;
    }
  }
  CHECK(medians > 0);
  CHECK(errors > 0);
  CHECK(iterations == 10 * medians);  // the samples of a row are of ten rounds
}

TEST_CASE("github-action-benchmark gets unique names, numbers and a unit") {
  const json document =
      json::parse(export_github_action(GENERATE(sample_result(), hostile_result())));
  REQUIRE(document.is_array());
  std::set<std::string> names;
  for (const json& b : document) {
    CHECK(names.insert(b.at("name").get<std::string>()).second);
    CHECK(b.at("unit") == "ns");
    CHECK(b.at("value").get<double>() > 0);
    CHECK(b.at("range").is_string());
    CHECK(b.at("extra").is_string());
  }
  CHECK_FALSE(names.empty());
}

TEST_CASE("JUnit has a test a strategy, and why it did not pass") {
  RunResult r = sample_result();
  const CaseResult whole = r.cases.front();
  r.cases.assign(1, whole);
  r.cases.front().baselines.resize(1);
  r.cases.front().strategies.resize(1);
  const auto add = [&](const std::string& name, Status status, const std::string& reason) {
    RunnerResult runner;
    runner.name = name;
    runner.status = status;
    runner.reason = reason;
    r.cases.front().strategies.push_back(runner);
  };
  add("wrong", Status::verify_failed, "member 1, [0, 3]: got 1, expected \"<2>\"\x01");
  add("fast", Status::implausible, "faster than memory");
  add("broken", Status::failed, "no such file");
  add("large", Status::oom, "out of memory");
  add("other", Status::skipped, "needs 16 bits");
  CaseResult unrun = whole;
  unrun.baselines.clear();
  unrun.strategies.clear();
  unrun.status = Status::failed;
  unrun.reason = "not run: the device failed before";
  r.cases.push_back(unrun);
  const std::string text = report_junit(r), point = whole.point.to_string();
  CHECK_THAT(text, ContainsSubstring("tests=\"8\" failures=\"2\" errors=\"3\" skipped=\"1\""));
  CHECK_THAT(text, ContainsSubstring("name=\"(loop) " + point + "\"></testcase>"));
  CHECK_THAT(text, ContainsSubstring("name=\"wrong " + point +
                                     "\"><failure type=\"verify_failed\" message=\"VERIFY FAILED"));
  CHECK_THAT(text, ContainsSubstring("expected &quot;&lt;2&gt;&quot; "));
  CHECK_THAT(text, ContainsSubstring("<error type=\"oom\" message=\"oom: out of memory; wbench"));
  CHECK_THAT(text, ContainsSubstring("<skipped message=\"skipped: needs 16 bits"));
  CHECK_THAT(text, ContainsSubstring("name=\"" + point + "\"><error type=\"failed\""));
  CHECK_THAT(report_junit({}), ContainsSubstring("tests=\"0\""));
}

TEST_CASE("run writes the page that report does, and verify tests") {
  test::TemporaryFolder folder;
  REQUIRE(wbench("run " + kTiny + "--json r.json --html r.html --junit r.xml").code == kSuccess);
  CHECK(wbench("report r.json --html -").out == read_file("r.html"));
  CHECK_THAT(read_file("r.xml"), ContainsSubstring("tests=\"3\" failures=\"0\""));
  const Outcome verified = wbench("verify --op linear --n 2 --batch 2 --d 8 -d cpu -q --junit -");
  CHECK(verified.code == kSuccess);
  CHECK(verified.out.starts_with("<?xml"));
  CHECK_THAT(verified.out, ContainsSubstring("classname=\"linear\" name=\"wide n=2"));
  CHECK(wbench("run " + kTiny + "--junit - --html -").code == kUsage);
  CHECK(wbench("run " + kTiny + "--html /no/such/r.html").code == kRuntimeError);
}

TEST_CASE("an empty result exports as empty documents") {
  const RunResult empty;
  CHECK(export_jsonl(empty).empty());
  CHECK(json::parse(export_trace(empty)).at("traceEvents").empty());
  CHECK(json::parse(export_google_benchmark(empty)).at("benchmarks").empty());
  CHECK(json::parse(export_github_action(empty)) == json::array());
}

TEST_CASE("run and show export to files and to standard output") {
  test::TemporaryFolder folder;
  REQUIRE(
      wbench("run " + kTiny + "--json r.json --export trace=t.json --export jsonl=r.jsonl").code ==
      kSuccess);
  CHECK(json::parse(read_file("t.json")).contains("traceEvents"));
  CHECK(wbench("show r.json --export jsonl=-").out == read_file("r.jsonl"));
  CHECK(wbench("show r.json --export csv=r.csv").out.empty());
  CHECK_THAT(read_file("r.csv"), ContainsSubstring(",axis_n"));
  const auto [line, message] = GENERATE(table<std::string, std::string>(
      {{"show r.json --export trce=-", "did you mean trace?"},
       {"show r.json --export trace", "expected trace=FILE"},
       {"show r.json --export trace=", "expected trace=FILE"},
       {"show r.json r.json --export trace=-", "2 results, expected one"},
       {"run " + kTiny + "--json - --export trace=-", "standard output takes one"},
       {"run " + kTiny + "--export trce=x", "did you mean trace?"}}));
  const Outcome o = wbench(line);
  INFO(line);
  CHECK(o.code == kUsage);
  CHECK_THAT(o.err, ContainsSubstring(message));
  CHECK(wbench("show r.json --export trace=/no/such/t.json").code == kRuntimeError);
}

}  // namespace wide::bench
