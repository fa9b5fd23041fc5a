// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What counts as a run to a comparison: a process, however many runs it has measured. Which cold
// calls are comparable, and what earlier runs say of a cell's noise.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "bench/compare/notes.hpp"
#include "bench/compare/verdicts.hpp"
#include "verify/bench/compare_case.hpp"
#include "wide/error.hpp"

namespace wide::bench {
namespace {

using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

TEST_CASE("runs of one process are one run") {
  const auto in_processes = [](std::vector<RunResult> runs, const std::vector<std::string>& names) {
    for (size_t i = 0; i < runs.size(); ++i) {
      runs[i].config.isolate = false;
      runs[i].process = names[i];
    }
    return runs;
  };
  const auto base = runs_of({1000}), slow = runs_of({1300});
  const auto cell_of = [&](const std::vector<std::string>& names) {
    return compare(in_processes(base, names), in_processes(slow, names), options_of()).cells.at(0);
  };
  const ComparedCell apart = cell_of({"a", "b", "c", "d", "e"});
  CHECK((apart.base.count == 5 && apart.judgement.verdict == Verdict::slower));
  CHECK(apart.judgement.reason == "interval");
  const ComparedCell together = cell_of({"a", "a", "a", "a", "a"});
  CHECK((together.base.count == 1 && together.candidate.count == 1));
  CHECK((together.judgement.verdict == Verdict::ambiguous && !together.p && !together.tests));
  CHECK(together.judgement.reason == "unknown_noise");
  const ComparedCell pairs = cell_of({"a", "b", "a", "b", "c"});
  CHECK(pairs.base.count == 3);
  CHECK(*pairs.base.median == Approx(1000 * std::sqrt(1.001 * 0.999)));  // of a, b and c
  const Comparison three = compare(in_processes(base, {"a", "b", "a", "b", "c"}),
                                   in_processes(slow, {"a", "a", "a", "a", "b"}), options_of());
  CHECK((three.base_processes == 3 && three.candidate_processes == 2));
  CHECK_THAT(compare_text(three, {}), ContainsSubstring("base: 5 runs in 3 processes of") &&
                                          ContainsSubstring("candidate: 5 runs in 2 processes"));
}

TEST_CASE("copies of a run are that run") {
  const auto copied = [](double time_ns) {
    std::vector<RunResult> runs(5, run_of({time_ns}));
    for (RunResult& run : runs) run.config.isolate = true;
    return runs;
  };
  const ComparedCell cell = compare(copied(1000), copied(1300), options_of()).cells.at(0);
  CHECK((cell.base.count == 1 && cell.candidate.count == 1));
  CHECK(cell.judgement.verdict == Verdict::ambiguous);
}

TEST_CASE("clocks of one process are one, too") {
  auto base = runs_of({1000}, 3), fast = runs_of({900}, 3);
  for (auto* runs : {&base, &fast}) {
    for (RunResult& run : *runs) {
      run.config.isolate = false;
      run.process = runs == &base ? "a" : "b";
      for (auto& m : run.cases[0].strategies[0].measurements)
        m.clocks = Clocks{runs == &base ? 1800. : 2000., 1800, {}, {}, {}};
    }
  }
  const ComparedCell cell = compare(base, fast, options_of()).cells.at(0);
  REQUIRE(cell.judgement.cycles_change_pct.has_value());
  CHECK(std::fabs(*cell.judgement.cycles_change_pct) < 1e-9);
}

TEST_CASE("runs that one command repeated before results said their process are one run") {
  auto base = runs_of({1000}), lone = runs_of({1000});
  for (size_t i = 0; i < base.size(); ++i) {
    for (RunResult* run : {&base[i], &lone[i]}) {
      run->config.isolate = false;
      run->process.clear();
    }
    base[i].config.repeat_index = static_cast<int64_t>(i);
    base[i].config.repeat_count = 5;
    lone[i].config.repeat_index = 0;
    lone[i].config.repeat_count = 1;
  }
  CHECK(count_processes(base) == 1);
  CHECK(count_processes(lone) == 5);
  base[4].hostname = "another";
  base[3].argv.emplace_back("--seed=2");
  CHECK(count_processes(base) == 3);
  for (RunResult& run : base) run.config.isolate = true;  // a process for every case
  CHECK(count_processes(base) == 5);
}

/// Of cold calls alone, in this way.
std::vector<RunResult> cold_runs(const std::vector<double>& times, Cache cache,
                                 double l2_factor = 2, int64_t buffers = 1) {
  std::vector<RunResult> runs = runs_of(times);
  for (RunResult& run : runs) {
    run.config.cache = cache;
    run.config.l2_factor = l2_factor;
    for (CaseResult& c : run.cases) {
      Measurement& m = c.strategies[0].measurements[0];
      m.regime = Regime::cold;
      m.cache = cache;
      m.buffers_rotated = buffers;
    }
  }
  return runs;
}

std::string verdict_of(const Comparison& c) {
  const Judgement& j = c.cells.at(0).judgement;
  return std::string(to_string(j.verdict)) + " " + std::string(j.reason);
}

TEST_CASE("cold calls of different methods are not compared") {
  const auto flush = cold_runs({1000, 2000}, Cache::flush);
  const auto verdict = [&](const std::vector<RunResult>& candidate) {
    return verdict_of(compare(flush, candidate, options_of()));
  };
  const std::string otherwise = "INVALID measured_otherwise";
  CHECK(verdict(cold_runs({1000, 2000}, Cache::flush)) == "SAME within_threshold");
  CHECK(verdict(cold_runs({1300, 2600}, Cache::rotate, 2, 8)) == otherwise);
  CHECK(verdict(cold_runs({1300, 2600}, Cache::flush, 3)) == otherwise);
  // Behind a flush a call is as cold as any other, however many there are, but not timed alone.
  CHECK(verdict(cold_runs({1300, 2600}, Cache::flush, 2, 8)) == otherwise);
  CHECK(verdict_of(compare(cold_runs({1000}, Cache::flush, 2, 8),
                           cold_runs({1300}, Cache::flush, 2, 5), options_of())) ==
        "SLOWER interval");
  const auto rotated = cold_runs({1000}, Cache::rotate, 2, 8);
  auto fewer = cold_runs({1300}, Cache::rotate, 2, 7);
  CHECK(verdict_of(compare(rotated, fewer, options_of())) == otherwise);
  // Other L2s are covered by other numbers of the same operands.
  for (RunResult& run : fewer) run.devices[0].last_level_cache_bytes -= 1 << 20;
  CHECK(verdict_of(compare(rotated, fewer, options_of())) == "SLOWER interval");
  // Both ways on one side are as bad, even where the other has both, too.
  auto both = flush;
  both[4] = cold_runs({1300, 2600}, Cache::rotate, 2, 8)[4];
  CHECK(verdict_of(compare(both, both, options_of())) == otherwise);
  // Of what is not cold, only the configuration differs.
  auto warm = runs_of({1000}), other = warm;
  for (RunResult& run : other) run.config.l2_factor = 3;
  CHECK(verdict_of(compare(warm, other, options_of())) == "SAME within_threshold");
}

TEST_CASE("cells that were measured otherwise say how, and count for nothing else") {
  auto base = cold_runs({1000, 2000}, Cache::flush);
  auto candidate = cold_runs({1300, 2000}, Cache::flush);
  for (size_t i = 0; i < base.size(); ++i) {
    Measurement& m = candidate[i].cases[0].strategies[0].measurements[0];
    m.cache = Cache::rotate;
    m.buffers_rotated = 8;
    m.stats.median_ns *=
        1 + 0.2 * static_cast<double>(i);  // noise that is none of the other cell's
  }
  const Comparison c = compare(base, candidate, options_of());
  CHECK(verdict_of(c) == "INVALID measured_otherwise");
  CHECK(c.cells[1].judgement.verdict == Verdict::same);
  CHECK((c.noise_floor_pct.value() < 1 && !c.cells[0].p && !c.cells[0].tests));
  CHECK(c.geomean_change_pct.value() == Approx(0).margin(1e-9));
  CHECK(c.notes ==
        std::vector{"cold calls are cold by flush of 2 x L2 in base, by rotation over 2 x L2, 8 "
                    "buffers in candidate (1 of 2 cells, the first: " +
                    c.label(c.cells[0]) +
                    "): by another method times differ, whatever is measured"});
  CHECK(compare(base, base, options_of()).notes.empty());
  const json row = json::parse(compare_json(c, {}))["rows"][0];
  CHECK(row["base"]["cold_methods"] == json{"flush of 2 x L2"});
  CHECK(row["candidate"]["cold_methods"] == json{"rotation over 2 x L2, 8 buffers"});
  CHECK_THAT(compare_text(c, {}), ContainsSubstring("INVALID: measured_otherwise"));
  CHECK(exit_code_of(c, {}) == 4);
  CHECK(exit_code_of(c, parse_fail_on("regression")) == 0);
}

TEST_CASE("clocks that were locked otherwise are said") {
  auto base = runs_of({1000}, 2), candidate = base;
  CHECK(compare(base, candidate, options_of()).notes.empty());
  candidate[1].locked_clocks.reset();
  CHECK(compare(base, candidate, options_of()).notes ==
        std::vector<std::string>{"base's clocks are locked at 1980 MHz, candidate's locked at 1980 "
                                 "MHz, not locked: times change with them"});
  candidate[1].locked_clocks = LockedClocks{"max", std::nullopt};
  CHECK_THAT(compare(base, candidate, options_of()).notes.at(0),
             ContainsSubstring(", locked at max: times"));
}

TEST_CASE("series are in the order of their numbers") {
  std::vector<HistoryPoint> points;
  for (const char* axes : {"n=16 batch=2", "n=4 batch=16", "n=4 batch=2"}) {
    HistoryPoint& point = points.emplace_back();
    point.axes = point.case_id = axes, point.median_ns = 100;
  }
  std::vector<std::string> order;
  for (const HistorySeries& series : series_of(points)) order.push_back(series.last.axes);
  CHECK(order == std::vector<std::string>{"n=4 batch=2", "n=4 batch=16", "n=16 batch=2"});
}

TEST_CASE("a cold cell's floor is of earlier runs by its method") {
  const auto base = cold_runs({1000}, Cache::flush), candidate = cold_runs({1200}, Cache::flush);
  std::vector<HistoryPoint> points;
  const auto add = [&](Cache cache, double spread) {
    for (int i = 0; i < 3; ++i) {
      const int64_t buffers = cache == Cache::rotate ? 8 : 1;
      RunResult run = cold_runs({1000 * (1 + spread * i)}, cache, 2, buffers)[2];
      run.id = std::string(to_string(cache)) + "-" + std::to_string(i);
      run.cases[0].baselines.clear();
      for (const HistoryPoint& p : record_of(run, "").points) points.push_back(p);
    }
  };
  add(Cache::rotate, 0.5);
  CompareOptions options = options_of();
  options.history = series_of(points);
  Comparison c = compare(base, candidate, options);
  CHECK_FALSE(c.cells[0].has_history_floor);
  CHECK(c.cells[0].judgement.verdict == Verdict::slower);
  add(Cache::flush, 0.001);
  options.history = series_of(points);
  REQUIRE(options.history->size() == 2);
  CHECK(options.history->at(0).last.regime == "cold: flush of 2 x L2");
  CHECK(options.history->at(1).last.regime == "cold: rotation over 2 x L2, 8 buffers");
  c = compare(base, candidate, options);
  CHECK((c.cells[0].has_history_floor && c.cells[0].noise_floor_pct.value() < 1));
}

TEST_CASE("a cell's floor is the history's where that knows the cell on the device") {
  const auto base = runs_of({1000, 2000}), candidate = runs_of({1100, 2200});
  const std::string device = history_device(base[0]);
  CompareOptions options = options_of();
  options.history.emplace();
  const auto add = [&](size_t cell, const std::string& on, size_t runs) {
    HistorySeries s;
    s.last.case_id = base[0].cases[cell].case_id;
    s.last.runner = "simt", s.last.regime = "stream", s.last.device = on;
    for (size_t i = 0; i < runs; ++i) {
      s.medians_ns.push_back(100. + 10 * static_cast<double>(i));
      s.codes.emplace_back("c0ffee");
    }
    options.history->push_back(s);
  };
  add(0, device, 3);
  add(1, device, 2);         // too few
  add(1, "another GPU", 3);  // noisy, but not ours
  const Comparison c = compare(base, candidate, options);
  CHECK(c.cells[0].noise_floor_pct == noise_band((*options.history)[0])->floor_pct);
  CHECK((c.cells[0].has_history_floor && !c.cells[1].has_history_floor));
  CHECK(c.cells[0].judgement.reason == "noise_floor");
  CHECK(c.cells[1].noise_floor_pct == c.noise_floor_pct);
  CHECK(c.cells[1].judgement.verdict == Verdict::slower);
  CHECK_THAT(
      summary_line(c),
      ContainsSubstring("noise floor by the history; of 1 of 2 cells, which it lacks: 0.317%"));
  Comparison certain = c;
  certain.cells[1].p = 1e-300;
  CHECK_THAT(compare_markdown(certain, {}), ContainsSubstring("| <1e-06 |"));
  options.history->clear();
  CHECK_THAT(summary_line(compare(base, candidate, options)),
             ContainsSubstring("noise floor 0.317% by the runs, of no cell by the history"));
  const json rows = json::parse(compare_json(c, {}))["rows"];
  CHECK((rows[0]["noise_floor"] == "history" && rows[1]["noise_floor"] == "runs"));
}

/// A history of ten runs of one build for each of run_of()'s cells, and two runs more: all differ
/// by half a percent, three in ten are disturbed by 10 to 50 %.
struct DisturbedMachine {
  explicit DisturbedMachine(uint64_t seed) : random(seed) {
    constexpr size_t kCells = 10;
    std::vector<double> before, after;
    for (size_t cell = 0; cell < kCells; ++cell) {
      HistorySeries s = quiet_history();
      s.last.case_id.back() = static_cast<char>('0' + cell);
      s.medians_ns.clear();
      for (int i = 0; i < 10; ++i) s.medians_ns.push_back(time());
      s.codes.assign(10, "c0ffee");
      before.push_back(s.medians_ns.back());
      after.push_back(time());
      history.push_back(s);
    }
    base = {run_of(before)}, candidate = {run_of(after)};
    candidate[0].id += "-later";
  }
  double time() {
    const double disturbed = std::uniform_real_distribution(0., 1.)(random) < 0.3
                                 ? std::uniform_real_distribution(1.1, 1.5)(random)
                                 : 1;
    return 1e5 * disturbed * std::normal_distribution(1., 0.005)(random);
  }
  std::mt19937_64 random;
  std::vector<HistorySeries> history;
  std::vector<RunResult> base, candidate;
};

TEST_CASE("a single run of the same build is not slower for a machine that is often disturbed") {
  int64_t wrong = 0, cells = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const DisturbedMachine machine(seed);
    CompareOptions options = options_of();
    options.history = machine.history;
    const Comparison c = compare(machine.base, machine.candidate, options);
    wrong += c.count(Verdict::slower) + c.count(Verdict::faster);
    cells += std::ssize(c.cells);
  }
  REQUIRE(cells == 500);
  CHECK(wrong < 20);  // 200 and more exceed the floor of five runs
}

TEST_CASE("few runs, of which one is unreliable, are not judged by their samples' ranges") {
  auto base = runs_of({1000}, 1), candidate = runs_of({1200}, 1);
  CompareOptions options = options_of();
  options.history = {quiet_history()};
  CHECK(compare(base, candidate, options).cells[0].judgement.verdict == Verdict::slower);
  candidate[0].cases[0].strategies[0].measurements[0].stats.doubts = {"drift"};
  const Judgement doubted = compare(base, candidate, options).cells[0].judgement;
  CHECK((doubted.verdict == Verdict::ambiguous && doubted.reason == kDoubtedRanges));
  CHECK(doubted.severity == Severity::none);
  CHECK(compare(candidate, base, options).cells[0].judgement.verdict == Verdict::ambiguous);
  // A floor that is given is the user's word; and five runs speak for themselves.
  options.noise_floor_pct = 5, options.history.reset();
  CHECK(compare(base, candidate, options).cells[0].judgement.verdict == Verdict::slower);
  auto many = runs_of({1200});
  for (RunResult& run : many) run.cases[0].strategies[0].measurements[0].stats.doubts = {"drift"};
  CHECK(compare(runs_of({1000}), many, options_of()).cells[0].judgement.verdict == Verdict::slower);
}

TEST_CASE("what a comparison cannot be held to is noted") {
  const auto base = runs_of({1000, 2000}), same = runs_of({1000, 2300});
  const auto notes_with = [&](const auto& change) {
    auto candidate = same;
    for (RunResult& run : candidate) change(run);
    std::string text;
    for (const std::string& note : compare(base, candidate, options_of()).notes)
      text += note + "\n";
    return text;
  };
  CHECK_THAT(notes_with([](RunResult&) {}), !ContainsSubstring("change with them"));
  CHECK_THAT(notes_with([](RunResult& r) { r.build_type = "Debug"; }),
             ContainsSubstring("build type of base: Release; of candidate: Debug; times"));
  CHECK_THAT(notes_with([](RunResult& r) { r.flags = ""; }),
             ContainsSubstring("flags of base: -O3 -DNAME=\"x\"; of candidate: unknown"));
  CHECK_THAT(notes_with([](RunResult& r) { r.cuda_flags = "-G"; }),
             ContainsSubstring("of candidate: -G"));
  CHECK_THAT(notes_with([](RunResult& r) { r.compiler = "Clang"; }), ContainsSubstring("Clang"));
  CHECK_THAT(notes_with([](RunResult& r) { r.cuda_toolkit = "12.8"; }), ContainsSubstring("12.8"));
  CHECK_THAT(notes_with([](RunResult& r) { r.hostname = "other"; }),
             ContainsSubstring("candidate on other"));
  CHECK_THAT(notes_with([](RunResult& r) { r.config.is_adversarial = true; }),
             ContainsSubstring("candidate with hostile operands, too"));
  CHECK_THAT(notes_with([](RunResult& r) { r.complete = r.id.ends_with("1"); }),
             ContainsSubstring("4 of candidate's 5 runs ended before the last case"));
  CHECK_THAT(notes_with([](RunResult& r) { r.cases[0].op_version = 2; }),
             ContainsSubstring("linear is of version 1 in base, 1 and 2 in candidate"));
}

TEST_CASE("other work is not comparable, and what nobody checked is tagged") {
  const auto base = runs_of({1000, 2000});
  auto candidate = runs_of({1000, 2300});
  for (RunResult& run : candidate) run.cases[1].cost.flops *= 2;
  Comparison c = compare(base, candidate, options_of());
  CHECK(c.cells[0].judgement.verdict == Verdict::same);
  CHECK(c.cells[1].judgement.verdict == Verdict::invalid);
  CHECK(c.cells[1].judgement.reason == kOtherWork);
  CHECK_THAT(c.notes.at(0),
             ContainsSubstring("a call does 1e+09 FLOP, 4000000 B in base, 2e+09 FLOP, "
                               "4000000 B in candidate (1 of 2 cells, the first: linear"));
  CHECK_THAT(compare_text(c, {}), ContainsSubstring("INVALID: other_work"));
  candidate = runs_of({1000, 2300});
  VerifyOutcome& verify = candidate[4].cases[1].strategies[0].verify;
  verify.before = verify.after = "not_run";
  c = compare(base, candidate, options_of());
  CHECK_THAT(c.notes.at(0), ContainsSubstring("candidate's outputs are unchecked in 1 of 2 cells"));
  CHECK_THAT(compare_text(c, {}), ContainsSubstring("SLOWER, moderate, unchecked"));
  CHECK_THAT(compare_text(compare(candidate, base, options_of()), {}),
             !ContainsSubstring("unchecked"));
}

TEST_CASE("a narrow table keeps what the change is of, and metrics have their units") {
  CompareOptions options = options_of("items_per_s");
  auto base = runs_of({1000, 2000}), candidate = runs_of({1000, 2300});
  const Comparison c = compare(base, candidate, options);
  for (const int width : {80, 100, 120})
    CHECK_THAT(compare_text(c, {width, false, true, false}), ContainsSubstring(" base "));
  CHECK_THAT(compare_text(c, {80, false, true, false}), !ContainsSubstring("regime"));
  CHECK_THAT(compare_text(c, {200, false, true, false}), ContainsSubstring("regime") &&
                                                             ContainsSubstring("Mitems/s") &&
                                                             !ContainsSubstring("%  "));
  CHECK(format_metric(find_measured_metric("pct_of_floor"), 61.5) == "61.5 %");
  CHECK_THROWS_AS(format_metric({"new", "volume", Better::lower, nullptr}, 1), Error);
  options.noise_floor_pct = 0;
  CHECK_THAT(summary_line(compare(base, candidate, options)),
             ContainsSubstring("noise floor none"));
}

TEST_CASE("what is compared with itself is refused, and what shares a process is noted") {
  auto base = runs_of({1000}), candidate = runs_of({1000});
  CHECK_THROWS_AS(shared_runs_note(base, candidate), Error);
  for (RunResult& run : candidate) run.id += "-later";
  CHECK(shared_runs_note(base, candidate) == "");
  candidate[1].id = base[3].id;
  CHECK_THAT(shared_runs_note(base, candidate),
             ContainsSubstring("1 process measured runs of base"));
  candidate[1].id = "copy";
  for (RunResult* run : {&candidate[1], &base[3]}) run->process = "p", run->config.isolate = false;
  CHECK_THAT(shared_runs_note(base, candidate),
             ContainsSubstring("1 process measured runs of base"));
}

}  // namespace
}  // namespace wide::bench
