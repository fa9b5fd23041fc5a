// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What counts as a run to a comparison: a process, however many runs it has measured. And what
// earlier runs say of a cell's noise.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/compare/verdicts.hpp"
#include "verify/compare_case.hpp"

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
      ContainsSubstring("noise floor by the history, in 1 of 2 cells that it has too little of "
                        "0.317% by the runs"));
  const json rows = json::parse(compare_json(c, {}))["rows"];
  CHECK((rows[0]["noise_floor"] == "history" && rows[1]["noise_floor"] == "runs"));
}

}  // namespace
}  // namespace wide::bench
