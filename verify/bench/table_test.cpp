// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Tables for people: the width is kept, numbers stay whole, what matters stays.
#include "bench/report/table.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <sstream>

#include "bench/report/report.hpp"
#include "bench/report/terminal.hpp"
#include "verify/bench/sample_result.hpp"

namespace wide::bench {

namespace {

using Catch::Matchers::ContainsSubstring;

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string without_color(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = text.find('m', i);
    } else {
      plain += text[i];
    }
  }
  return plain;
}

/// But of commands, which stay whole.
int widest(const std::string& text) {
  int width = 0;
  for (const std::string& line : lines_of(text)) {
    if (line.rfind("  wbench ", 0) != 0) width = std::max(width, display_width(line));
  }
  return width;
}

std::string line_with(const std::string& text, const std::string& part) {
  for (const std::string& line : lines_of(text)) {
    if (line.find(part) != std::string::npos) return line;
  }
  return "";
}

}  // namespace

TEST_CASE("no line is wider than the width, whatever is shown") {
  const int width = GENERATE(80, 81, 100, 119, 120, 121, 160, 199, 200);
  const bool has_color = GENERATE(false, true);
  const auto content =
      GENERATE(ReportContent::times, ReportContent::checks, ReportContent::counters);
  const std::string text =
      report_text(sample_result(),
                  {.width = width, .has_color = has_color, .explain = true, .content = content});
  INFO(text);
  CHECK(widest(without_color(text)) <= width);
  CHECK((text.find('\x1b') != std::string::npos) == has_color);
}

TEST_CASE("at 200 columns everything is there") {
  const std::string text = report_text(sample_result(), {.width = 200});
  const auto lines = lines_of(text);
  INFO(text);
  CHECK(lines[0] == "cuda:1: NVIDIA H200, 132 SMs, driver 13.0, CUDA 13.0.88");
  CHECK(lines[1] ==
        "regimes: stream graph; ceilings: 4.10 TB/s, 52.0 TFLOP/s fp32, 770 TFLOP/s fp16; empty "
        "launch 2.35 us");
  CHECK(lines[3] == "linear  batch=16  d=256");
  CHECK(lines[4] ==
        "case             strategy    regime     time    +-          rate  bandwidth  of floor"
        "             vs loop          vs streams            vs graph  err/tol   n  status");
  CHECK(lines[5] ==
        "n=4 dtype=fp16   (loop)      stream  61.2 us  0.0%  12.3 TFLOP/s   686 GB/s       62%"
        "                                                              0.31 @3  40  ok");
  CHECK(line_with(text, "simt") ==
        "                 simt        stream  12.3 us  0.0%  12.3 TFLOP/s   686 GB/s       62%"
        "  4.96x [4.95, 4.97]  4.96x [4.95, 4.97]                      0.31 @3  40  unverified");
  CHECK_THAT(text, ContainsSubstring(
                       "stream vs loop: crossover N 4 (maybe 2), threshold none, wins: simt 3"));
  CHECK_THAT(text, ContainsSubstring("impossible: 3 points: linear: 12 heads do not divide 256"));
  CHECK_THAT(text, ContainsSubstring("\nwarn: clocks are unknown: no \"library\"\nincomplete: the "
                                     "sweep was ended before its last case"));
}

TEST_CASE("at 80 columns the case, the strategy, the time and the speedups stay, and whole") {
  const std::string text = report_text(sample_result(), {.width = 80});
  INFO(text);
  const std::string header = line_with(text, "strategy");
  for (const char* title : {"case", "strategy", "regime", "time", "vs loop", "vs graph", "status"})
    CHECK_THAT(header, ContainsSubstring(title));
  for (const char* title : {"bandwidth", " rate", "+-"})
    CHECK_THAT(header, !ContainsSubstring(title));
  CHECK_THAT(line_with(text, "simt"), ContainsSubstring("12.3 us") && ContainsSubstring("4.96x"));
}

TEST_CASE("the columns that are asked for, and no others") {
  ReportOptions options{.width = 200};
  options.metrics = parse_metrics("time,stopped by,speedup");
  const std::string text = report_text(sample_result(), options);
  CHECK_THAT(text, ContainsSubstring("case") && ContainsSubstring("strategy") &&
                       ContainsSubstring("time") && ContainsSubstring("vs loop") &&
                       ContainsSubstring("stopped by") && ContainsSubstring("status"));
  for (const char* title : {"bandwidth", "of floor", "err/tol", "+-", "throttled", "autocorr"})
    CHECK_THAT(text, !ContainsSubstring(title));
  options.metrics = parse_metrics("rate");  // nothing of the details
  CHECK_THAT(report_text(sample_result(), options), !ContainsSubstring("stopped by"));
  CHECK_THROWS_WITH(parse_metrics("time,bandwith"), ContainsSubstring("did you mean bandwidth?"));
  CHECK(parse_metrics("").empty());
}

TEST_CASE("failures are told in full, once, with the command that repeats them") {
  const std::string text = report_text(sample_result(), {.width = 200});
  INFO(text);
  CHECK_THAT(
      line_with(text, "FAILED layernorm n=100 batch=16 d=256 dtype=fp32 wrong: VERIFY FAILED"),
      ContainsSubstring("got nan, expected 0.123456789, tolerance 1.2e-05, and more"));
  CHECK_THAT(text, ContainsSubstring("\n  wbench run --op layernorm --n 100 --device cuda\n"));
  CHECK_THAT(text, ContainsSubstring("inf @3"));
  const std::string too_good =
      "FAILED layernorm n=100 batch=16 d=256 dtype=fp32 too_good: implausible";
  CHECK(text.find(too_good) != std::string::npos);
  CHECK(text.find(too_good) == text.rfind(too_good));
  CHECK(line_with(text, "FAILED layernorm n=100 batch=16 d=256 dtype=fp32 absent").empty());
}

TEST_CASE("right results that have other bits each time are told once, and wrong ones as wrong") {
  RunResult result = sample_result();
  CHECK_THAT(report_text(result, {.width = 200}), !ContainsSubstring("UNSTABLE"));
  result.cases.front().strategies.at(1).verify.bitwise_stable = false;
  result.cases.back().strategies.at(0).verify.bitwise_stable = true;
  for (RunnerResult& runner : result.cases.back().strategies) {
    if (runner.status != Status::ok) runner.verify.bitwise_stable = false;
  }
  const std::string text = report_text(result, {.width = 200});
  INFO(text);
  const std::string name = result.cases.front().strategies[1].name;
  CHECK_THAT(line_with(text, "UNSTABLE linear"),
             ContainsSubstring(" " + name + ": calls that were checked gave different bits"));
  CHECK(text.find("UNSTABLE") == text.rfind("UNSTABLE"));
}

TEST_CASE("what a file says cannot steer the terminal") {
  RunResult result = sample_result();
  result.devices[0].name = "\x1b]0;title\x07";
  result.op_summaries[0].best_case = "\x1b[2J";
  const std::string text = report_text(result, {.width = 120});
  CHECK(text.find('\x1b') == std::string::npos);
}

TEST_CASE("-t keeps the rows of the largest speedups") {
  RunResult result = sample_result();
  result.cases[1].speedups[3].speedup_ratio = 99.5;
  const std::string text = report_text(result, {.width = 200, .top = 1});
  INFO(text);
  CHECK_THAT(line_with(text, "99.5x"),
             ContainsSubstring("n=16 dtype=fp16") && ContainsSubstring("simt"));
  CHECK_THAT(text, !ContainsSubstring("(loop)"));
  CHECK_THAT(text, !ContainsSubstring("0.90x") && !ContainsSubstring("layernorm  "));
}

TEST_CASE("a case that failed before anything ran has a row") {
  RunResult result = sample_result();
  result.cases.resize(1);
  result.cases[0].strategies.clear();
  result.cases[0].baselines.clear();
  result.cases[0].speedups.clear();
  result.cases[0].status = Status::failed;
  result.cases[0].reason = "no memory for the operands";
  const std::string text = report_text(result, {.width = 120});
  CHECK_THAT(line_with(text, "n=4 "), ContainsSubstring("failed: no memory for the operands"));
  CHECK_THAT(text,
             ContainsSubstring("FAILED linear n=4 batch=16 d=256 dtype=fp16: failed: no memory"));
}

TEST_CASE("columns give way by importance, then briefly, then texts are cut, never numbers") {
  Table table({{"name", false, Column::kNeverDropped},
               {"extra", true, 1},
               {"ratio", true, Column::kNeverDropped},
               {"unused", true, Column::kNeverDropped}});
  table.add(
      {{"a name of some length"}, {"12345"}, {"4.96x [4.95, 4.97]", Tone::plain, "4.96x"}, {}});
  CHECK(table.render(80, false) ==
        "name                   extra               ratio\n"
        "a name of some length  12345  4.96x [4.95, 4.97]");
  CHECK(table.render(45, false) ==
        "name                                ratio\n"
        "a name of some length  4.96x [4.95, 4.97]");
  CHECK(table.render(30, false) ==
        "name                   ratio\n"
        "a name of some length  4.96x");
  CHECK(table.render(20, false) ==
        "name           ratio\n"
        "a name of s..  4.96x");
}

TEST_CASE("why something did not run is said in full where its cell is cut, once") {
  RunResult result = sample_result();
  const std::string reason = "skipped: needs dtype fp16 and a reason that is longer than any cell";
  for (CaseResult& c : result.cases) {
    if (c.point.op() != "linear") continue;
    RunnerResult absent;
    absent.name = "absent";
    absent.status = Status::skipped;
    absent.reason = reason.substr(std::string("skipped: ").size());
    c.strategies.push_back(absent);
  }
  for (const ReportContent content :
       {ReportContent::times, ReportContent::checks, ReportContent::counters}) {
    const std::string text = report_text(result, {.width = 100, .content = content});
    INFO(text);
    CHECK(text.find(reason) != std::string::npos);
    if (content == ReportContent::times) CHECK(text.find(reason) == text.rfind(reason));
  }
  CHECK_THAT(report_text(result, {.width = 100}),
             ContainsSubstring("\n  absent: " + reason + "\n"));
  CHECK_THAT(report_text(result, {.width = 100, .top = 1}), !ContainsSubstring("absent"));
  CHECK(cut_texts("a  one two", {{"b", "one two"}, {"c", "two\nthree"}, {"c", "two\nthree"}}, 80) ==
        "  c: two three\n");
}

TEST_CASE("text is cut between code points, and control characters are spaces") {
  CHECK(fit("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6", 4) == "\xc3\xa4\xc3\xb6..");
  CHECK(fit("a\nb\tc\x1b[31m", 20) == "a b c [31m");
  CHECK(wrap("one two three four five", 12) == "one two\n    three\n    four\n    five");
  CHECK(wrap("aaaaaaaaaaaaaaaaaaaa", 12) == "aaaaaaaaaaaa\n    aaaaaaaa");
}

TEST_CASE("commands stay whole, for they are pasted into a shell") {
  const std::string command = "  wbench run --peer 'python3 peer.py'\n";
  CHECK(wrap("of no command\n" + command, 12) == "of no\n    command\n" + command);
}

TEST_CASE("listings wrap their last column and lose nothing") {
  CHECK(listing_text({{"op", "summary"}, {"linear", "one two three four five six seven"}}, 30) ==
        "op      summary\n"
        "linear  one two three four\n"
        "        five six seven\n");
}

TEST_CASE("times and rates have three digits and a unit") {
  CHECK(format_time(0.5) == "0.50 ns");
  CHECK(format_time(12345.6) == "12.3 us");
  CHECK(format_time(999.6e3) == "1.00 ms");
  CHECK(format_time(2.5e9) == "2.50 s");
  CHECK(format_rate(4.81e12, "B/s") == "4.81 TB/s");
  CHECK(format_rate(5e5, "FLOP/s") == "0.50 MFLOP/s");
}

TEST_CASE("names of other programs do not break Markdown's tables") {
  RunResult result = sample_result();
  result.devices.at(0).name = "a device\n| of | two lines |";
  result.cases.at(0).baselines.at(0).name = "torch|compile\n";
  const std::string text = report_markdown(result);
  CHECK_THAT(text, ContainsSubstring("| (torch\\|compile ) |") &&
                       !ContainsSubstring("torch|compile") && !ContainsSubstring("\n| of |"));
}

TEST_CASE("CSV and Markdown have one row per measurement, quoted where they must be") {
  const RunResult result = sample_result();
  const auto csv = lines_of(report_csv(result));
  const auto markdown = lines_of(report_markdown(result));
  CHECK(csv[0].starts_with("case_id,op,case,name,is_baseline,regime,status"));
  const std::string text = report_csv(result);
  CHECK_THAT(text, ContainsSubstring("\"a | pipe, a \"\"quote\"\", a line"));
  CHECK_THAT(report_markdown(result), ContainsSubstring("a \\| pipe"));
  std::ptrdiff_t columns = 0;
  for (size_t i = 2; i < markdown.size(); ++i) {
    if (i + 1 < markdown.size() && markdown[i + 1].starts_with("|---"))  // titles of a table
      columns = std::count(markdown[i].begin(), markdown[i].end(), '|');
    if (!markdown[i].starts_with("|")) continue;
    size_t bars = 0;
    for (size_t c = 0; c < markdown[i].size(); ++c)
      bars += markdown[i][c] == '|' && markdown[i][c - (c > 0)] != '\\';
    INFO(markdown[i]);
    CHECK(static_cast<std::ptrdiff_t>(bars) == columns);
  }
}

/// Text as words, so that widths do not matter.
std::string words_of(const std::string& text) {
  std::istringstream stream(text);
  std::string words;
  for (std::string word; stream >> word;) words += word + " ";
  return words;
}

TEST_CASE("details: how was measured, launches, kernels, energy, clocks and memory") {
  RunResult result = sample_result();
  ReportOptions options{280, false};
  const std::string plain = report_text(result, options);
  options.details = true;
  const std::string text = words_of(report_text(result, options));
  CHECK_THAT(plain, !ContainsSubstring("per launch") && !ContainsSubstring("registers"));
  CHECK_THAT(text, ContainsSubstring("warm-up 0.2 s, clocks within 1%; abba order, at least 12 "
                                     "rounds; stop by stdrel, 0.5%"));
  CHECK_THAT(text, ContainsSubstring("clocks locked: max, 1980 MHz"));
  CHECK_THAT(text, ContainsSubstring("warn: clocks are unknown"));
  CHECK_THAT(text,
             ContainsSubstring("note: a note with \"quotes\"") && ContainsSubstring("ci_job: 123"));
  CHECK_THAT(text, ContainsSubstring(
                       "cuda:1: GPU-01234567-89ab-cdef-0123-456789abcdef, PCI 0000:3b:00.0"));
  // Of a launch, the host's share may be negative; energy that is not valid says why.
  CHECK_THAT(text, ContainsSubstring(
                       "sequential stream 1 2.40 us -12.2 ns 5.00 M/s memory 333 mJ 400 W 1960 "
                       "MHz 3 (sw_power_cap hw_thermal) 0.3% -0.0015%/s -0.25"));
  CHECK_THAT(text, ContainsSubstring("256 B 4.00 MB 12.0 us 3.00 ms ci"));
  CHECK_THAT(text,
             ContainsSubstring("stream simt at batch=16 d=256 dtype=fp16: 1.23 us + 0.33 ns * "
                               "n, within 2.5% at 3 values of n"));
  CHECK_THAT(text, ContainsSubstring("stream sequential: 12.5 ns, within 0.1% at 4 values of n"));
  result.op_summaries[0].scaling_fits[0].a_ns = 0;
  CHECK_THAT(words_of(report_text(result, options)),
             ContainsSubstring("fp16: 0.33 ns * n, within"));
  CHECK_THAT(text, ContainsSubstring("window<1s"));
  CHECK_THAT(text, ContainsSubstring("sequential_kernel 8x1x1 128x1x1 64 50.2 kB 4 25%"));
  CHECK_THAT(text, ContainsSubstring("simt_kernel 8x1x1 128x1x1 50.2 kB 4 25%"));  // registers: no
  result.cases[0].strategies[0].kernels[0].name =
      "_ZN4wide7kernels12_GLOBAL__N_15twiceIfEEvPKT_PS3_";
  CHECK_THAT(report_text(result, options), ContainsSubstring("twice<float>(float const*"));
  options.content = ReportContent::checks;
  CHECK_THAT(report_text(result, options), !ContainsSubstring("method:"));
}

TEST_CASE("details in Markdown and CSV, and what is not known is left out") {
  RunResult result = sample_result();
  CHECK_THAT(report_markdown(result), ContainsSubstring("| per launch |") &&
                                          ContainsSubstring("| 3 (sw_power_cap hw_thermal) |"));
  const std::string csv = report_csv(result);
  CHECK_THAT(csv, ContainsSubstring(",enqueue_ns_per_call,launch_overhead_ns_per_launch,"
                                    "joules_per_call,avg_w,sm_mhz_median,"));
  CHECK_THAT(csv, ContainsSubstring(",1,2400.5,-12.25,0.3333333333333333,400.0,1960.5,1941.0,3,"));
  for (CaseResult& c : result.cases) {
    for (RunnerResult& r : c.strategies) {
      const std::string name = r.name;
      r = {};
      r.name = name;
    }
    c.baselines.clear();
  }
  ReportOptions options{200, false};
  options.details = true;
  CHECK_THAT(report_text(result, options), !ContainsSubstring("per launch"));
}

TEST_CASE("the width comes from COLUMNS, between 80 and 200") {
  const auto width_of = [](const char* columns) {
    setenv("COLUMNS", columns, 1);
    return output_width();
  };
  CHECK(width_of("100") == 100);
  CHECK(width_of("20") == 80);
  CHECK(width_of("5000") == 200);
  unsetenv("COLUMNS");
}

/// Makes standard output a terminal.
class OnTerminal {
 public:
  OnTerminal() : stdout_(::dup(STDOUT_FILENO)), master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    REQUIRE((::grantpt(master_) == 0 && ::unlockpt(master_) == 0));
    const int terminal = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
    REQUIRE(::dup2(terminal, STDOUT_FILENO) == STDOUT_FILENO);
    ::close(terminal);
  }
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;
  ~OnTerminal() {
    ::dup2(stdout_, STDOUT_FILENO);
    ::close(stdout_);
    ::close(master_);
  }

 private:
  int stdout_, master_;
};

TEST_CASE("colour is for those who ask, and for terminals without NO_COLOR that are not dumb") {
  CHECK(wants_color("always"));
  CHECK(!wants_color("never"));
  const auto is_colored = [](const char* no_color, const char* type) {
    setenv("NO_COLOR", no_color, 1);
    setenv("TERM", type, 1);
    bool is_so = false;
    {
      const OnTerminal terminal;
      is_so = wants_color("auto");
    }
    CHECK(wants_color("always"));
    unsetenv("NO_COLOR");
    unsetenv("TERM");
    return is_so;
  };
  CHECK(is_colored("", "xterm"));
  CHECK(!is_colored("1", "xterm"));
  CHECK(!is_colored("", "dumb"));
}

TEST_CASE("counters are shown as factors of what the operands need") {
  const RunResult result = sample_result();
  const std::string text = report_text(result, {.width = 200, .content = ReportContent::counters});
  // 5 MB requested, 1 MB of them again, of operands of 4 MB; 300 sectors where 200 would do; a
  // quarter of the passes lost.
  CHECK_THAT(text, ContainsSubstring("4.00 MB"));
  CHECK_THAT(text, ContainsSubstring("1.00x"));
  CHECK_THAT(text, ContainsSubstring("0.25x"));
  CHECK_THAT(text, ContainsSubstring("1.50x"));
  CHECK_THAT(text, ContainsSubstring("25.0%"));
  CHECK_THAT(text, ContainsSubstring("3.00 M"));
}

}  // namespace wide::bench
