// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// bench/compare/compare.schema.json: what `wbench compare --format json` writes fits it, what is no
// comparison does not, and the document is still the one that version 1.0 wrote.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "bench/compare/verdicts.hpp"
#include "host/core/file.hpp"
#include "verify/bench/compare_case.hpp"
#include "verify/support/schema.hpp"

namespace wide::bench {
namespace {

using nlohmann::json;

std::string complaint(const json& document) {
  return test::schema_complaint("bench/compare/compare.schema.json", document.dump());
}

json document_of(const Comparison& comparison) {
  return json::parse(compare_json(comparison, {}));
}

/// A cell of every verdict, and a note.
json sample_document() {
  auto base = runs_of({1000, 2000, 3000, 4000, 5000, 6000});
  auto candidate = runs_of({1000, 2300, 2700, 4060, 5000, 6000, 7000});
  for (RunResult& run : candidate) {
    run.cases.erase(run.cases.begin() + 5);
    run.locked_clocks.reset();
  }
  candidate[1].cases[4].strategies[0].measurements[0].below_resolution = true;
  Comparison c = compare(base, candidate, options_of());
  for (auto* ids : {&c.base_ids, &c.candidate_ids})
    ids->assign(ids->size(), sample_result().id);  // as the files of earlier versions have them
  return document_of(c);
}

/// Numbers but for the last digits, which compilers differ in.
void check_alike(const json& got, const json& expected, const std::string& place) {
  INFO(place);
  REQUIRE(got.type_name() == std::string(expected.type_name()));
  if (expected.is_number_float()) {
    CHECK(got.get<double>() == Catch::Approx(expected.get<double>()).epsilon(1e-9).margin(1e-9));
  } else if (expected.is_structured()) {
    REQUIRE(got.size() == expected.size());
    for (const auto& item : expected.items()) {
      const json& ours = got.is_array() ? got.at(std::stoul(item.key())) : got.at(item.key());
      check_alike(ours, item.value(), place + "/" + item.key());
    }
  } else {
    CHECK(got == expected);
  }
}

TEST_CASE("every comparison fits the schema") {
  const auto base = runs_of({1000, 2000}), candidate = runs_of({1000, 2300});
  CompareOptions options = options_of("flops_per_s");
  for (const CompareMethod method :
       {CompareMethod::automatic, CompareMethod::bootstrap, CompareMethod::mwu,
        CompareMethod::welch, CompareMethod::student, CompareMethod::interval}) {
    options.method = method;
    CHECK(complaint(document_of(compare(base, candidate, options))) == "");
  }
  options.device_pairs = {{"1", "NVIDIA H200"}};
  options.history.emplace();
  options.min_effect_pct = 5;
  CHECK(complaint(document_of(compare(base, candidate, options))) == "");
  CHECK(complaint(document_of(compare(runs_of({1000}, 1), runs_of({2000}, 2), options_of()))) ==
        "");
  CHECK(complaint(document_of(compare({}, {}, options_of()))) == "");
  CompareOptions history = options_of();
  history.history = {quiet_history()};
  auto doubted = runs_of({2000}, 1);
  doubted[0].cases[0].strategies[0].measurements[0].stats.doubts = {"drift"};
  const json unreliable = document_of(compare(runs_of({1000}, 1), doubted, history));
  CHECK(unreliable["rows"][0]["reason"] == "doubts");
  CHECK(complaint(unreliable) == "");
  auto flushed = base, rotated = base;
  for (auto* runs : {&flushed, &rotated}) {
    for (RunResult& run : *runs) {
      Measurement& m = run.cases[0].strategies[0].measurements[0];
      m.regime = Regime::cold;
      m.cache = runs == &flushed ? Cache::flush : Cache::rotate;
    }
  }
  const json otherwise = document_of(compare(flushed, rotated, options_of()));
  CHECK(otherwise["rows"][0]["reason"] == "measured_otherwise");
  CHECK(complaint(otherwise) == "");
  auto worked = base;
  for (RunResult& run : worked) run.cases[0].cost.flops *= 2;
  const json other = document_of(compare(base, worked, options_of()));
  CHECK(other["rows"][0]["reason"] == "other_work");
  CHECK(complaint(other) == "");
}

TEST_CASE("the document is what version 1.8 wrote, and what earlier ones wrote fits the schema") {
  const auto document_in = [](const std::string& version) {
    return json::parse(
        read_file(WIDE_SOURCE_DIR "/verify/bench/results/compare_" + version + ".json"));
  };
  for (const char* earlier : {"1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7"})
    CHECK(complaint(document_in(earlier)) == "");
  const json golden = document_in("1.8");
  CHECK(complaint(golden) == "");
  json document = sample_document();
  document["tool"]["version"] = golden["tool"]["version"];
  check_alike(document, golden, "");
}

TEST_CASE("the schema of comparisons misses every key that is taken away") {
  const json whole = sample_document();
  for (const std::string place : {"", "/schema", "/tool", "/base", "/method", "/rows/1",
                                  "/rows/1/candidate", "/rows/1/candidate/ci", "/rows/1/tests",
                                  "/rows/1/tests/levene", "/summary", "/summary/counts", "/gate"}) {
    for (const auto& item : whole[json::json_pointer(place)].items()) {
      INFO(place << " without " << item.key());
      json document = whole;
      document[json::json_pointer(place)].erase(item.key());
      const std::set<std::string> later{"uuids",         "doubts", "unreliable",  // 1.1
                                        "gate_p",                                 // 1.3
                                        "n_processes",                            // 1.4
                                        "cold_methods",                           // 1.5
                                        "notes",                                  // 1.6
                                        "geometric_mean"};                        // 1.7
      CHECK((complaint(document) == "") == later.contains(item.key()));
    }
  }
}

TEST_CASE("the schema of comparisons refuses what is none") {
  const std::vector<std::pair<const char*, json>> mutations = {
      {"/schema/name", "wbench.result"},
      {"/schema/version", "2.0.0"},
      {"/base/runs", "a"},
      {"/method/method", "anova"},
      {"/method/interval", "guess"},
      {"/method/alpha", 1},
      {"/method/better", "none"},
      {"/method/noise_floor", "guess"},
      {"/method/min_effect_pct", -1},
      {"/method/device_pairs", {{{"base", "0"}}}},
      {"/rows/0/case_id", "xyz"},
      {"/rows/0/axes/n", 1.5},
      {"/rows/0/metric", "speedup_ratio"},
      {"/rows/0/base/median", 0},
      {"/rows/0/base/geometric_mean", 0},
      {"/rows/0/base/doubts", "drift"},
      {"/rows/0/base/cold_methods", "flush"},
      {"/summary/unreliable", -1},
      {"/base/uuids", "GPU-0"},
      {"/notes", "clocks"},
      {"/notes/0", ""},
      {"/base/n_processes", -1},
      {"/rows/0/base/ci/lo", nullptr},
      {"/rows/0/change_pct", "5%"},
      {"/rows/0/tests/chosen", "anova"},
      {"/rows/0/tests/p", 1.5},
      {"/rows/0/tests/effect", "huge"},
      {"/rows/0/noise_floor_pct", -1},
      {"/rows/0/gate_p", 2},
      {"/rows/0/status", "FAST"},
      {"/rows/0/severity", "fatal"},
      {"/rows/0/reason", "because"},
      {"/summary/counts/SAME", -1},
      {"/gate/tripped", 1},
      {"/gate/rules/0", "luck"},
      {"/exit_code", 3}};
  for (const auto& [place, value] : mutations) {
    INFO(place << " = " << value.dump());
    json document = sample_document();
    document[json::json_pointer(place)] = value;
    CHECK(complaint(document) != "");
  }
}

}  // namespace
}  // namespace wide::bench
