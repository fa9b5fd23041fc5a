// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// bench/result.schema.json: what wbench writes fits it, and what is no result does not. A check of
// the check, too: every document here that must be refused differs from a good one in one place.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <set>

#include "bench/document/result_json.hpp"
#include "bench/process/exit_code.hpp"
#include "host/core/file.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/bench/sample_result.hpp"
#include "verify/support/refusals.hpp"
#include "verify/support/schema.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Catch::Matchers::ContainsSubstring;

using nlohmann::json;

std::string sample_text() {
  return to_json(short_sample_result()).dump();
}

json sample_document() {
  return json::parse(sample_text());
}

std::string refusal(const std::string& text) {
  return test::refusal_of([&] { (void)parse_result(text); });
}

std::string complaint(const json& document) {
  return test::schema_complaint("bench/result.schema.json", document.dump());
}

}  // namespace

TEST_CASE("what is written fits the schema") {
  CHECK(complaint(sample_document()) == "");
}

/// 1.0 to 1.2 are 1.3's (1.1: the simulated GPU's) without what came later, as the schemas and the
/// writers of those versions have it, 1.13 is 1.12's with a device's clocks, 1.14 that with what is
/// set up, 1.15 that with flags and what checks found, 1.16 that with a heavy tail, 1.17 that
/// with a cache that cases choose, 1.18 that with a flush, and 1.19 that with what warming up took
/// and the like; the others were written by their own.
TEST_CASE("results that earlier versions wrote are read, shown, and fit the schema") {
  for (const std::string version :
       {"1.0",  "1.1",  "1.2",  "1.3",  "1.4",  "1.5",  "1.6",  "1.7",  "1.8",  "1.9",
        "1.10", "1.11", "1.12", "1.13", "1.14", "1.15", "1.16", "1.17", "1.18", "1.19"}) {
    INFO(version);
    const std::string file = WIDE_SOURCE_DIR "/verify/bench/results/" + version + ".json";
    const std::string text = read_file(file);
    CHECK_THAT(text, ContainsSubstring("\"version\":\"" + version + ".0\""));
    CHECK(complaint(json::parse(text)) == "");
    const RunResult result = load_result(file);
    REQUIRE(result.cases.size() == 1);
    const RunnerResult& runner = result.cases[0].strategies.at(0);
    const Outcome shown = wbench("show -v " + file);
    CHECK(shown.code == kSuccess);
    CHECK_THAT(shown.out, ContainsSubstring("linear") && ContainsSubstring(runner.name));
    if (version == "1.1") {
      CHECK(runner.launches.size() == 1);
      CHECK_THAT(shown.out, ContainsSubstring("instructions"));
    } else {
      const Measurement& m = runner.measurements.at(0);
      CHECK(m.stats.n >= 3);
      CHECK(m.stats.n == static_cast<int64_t>(m.samples_ns.size()));
      const bool has_peer = version == "1.9";
      CHECK(result.cases[0].speedups.size() == (has_peer ? 4 : 2));
      CHECK(result.cases[0].baselines.back().peer.empty() == !has_peer);
      CHECK_THAT(shown.out, ContainsSubstring("vs loop"));
    }
    // Written again it is a result of today.
    CHECK(complaint(json::parse(to_json(result).dump())) == "");
  }
  CHECK(std::string(kSchemaVersion) == "1.19.0");  // whose file has to be among them
}

TEST_CASE("the schema refuses documents that are not results") {
  const std::vector<std::pair<const char*, json>> mutations = {
      {"/schema/name", "nvbench"},
      {"/schema/version", "2.0.0"},
      {"/schema/version", 1},
      {"/run/complete", "yes"},
      {"/run/exit_code", 4},
      {"/run/started", "today"},
      {"/run/duration_s", -1},
      {"/run/argv", "wbench"},
      {"/run/tool/git_dirty", nullptr},
      {"/tolerances/linear", 4},
      {"/run/tool/flags", ""},
      {"/run/tool/cuda_flags", 3},
      {"/host/cores", 1.5},
      {"/host/governor", ""},
      {"/host/container", "docker"},
      {"/host/numa_node", -1},
      {"/host/numa_nodes", 0},
      {"/devices", json::array()},
      {"/devices/0/device", "gpu"},
      {"/devices/0/compute_capability", "9.0"},
      {"/devices/0/sm_count", -1},
      {"/devices/0/clocks/locked/asked", "fast"},
      {"/devices/0/clocks/sm_max_mhz", 0},
      {"/devices/0/mig", "on"},
      {"/devices/0/compute_mode", "shared"},
      {"/devices/0/power_limit_w", 0},
      {"/devices/0/other_processes", -1},
      {"/devices/0/clocks/locked/sm_mhz", 0},
      {"/calibration/mem_bw_bytes_per_s", 0},
      {"/calibration/flops_per_s/fp32", "fast"},
      {"/config/regimes/0", "hot"},
      {"/config/cache", "cold"},
      {"/config/throttle/policy", "drop"},
      {"/config/stop/criterion", "guess"},
      {"/run/process_isolated", 1},
      {"/calibration/flush_ns", 0},
      {"/environment_checks/0/code", "nvml"},
      {"/cases/0/noise_floors/0/floor_pct", -1},
      {"/cases/0/strategies/0/memory/peak_device_bytes", -1},
      {"/cases/0/strategies/0/setup/plan_ns", -1},
      {"/cases/0/strategies/0/setup/first_call_ns", "long"},
      {"/cases/0/strategies/0/kernels/0/grid", {8, 1}},
      {"/cases/0/strategies/0/kernels/0/occupancy_pct", 101},
      {"/cases/0/strategies/0/launches_per_call", 1.5},
      {"/cases/0/strategies/0/measurements/0/cache", "auto"},
      {"/cases/0/strategies/0/measurements/0/buffers_rotated", 0},
      {"/cases/0/strategies/0/measurements/0/samples/sm_mhz/0", nullptr},
      {"/cases/0/strategies/0/measurements/0/clocks/sm_mhz_min", -1},
      {"/cases/0/strategies/0/measurements/0/clocks/sm_mhz_stable", -1},
      {"/cases/0/strategies/0/measurements/0/energy/method", "guess"},
      {"/cases/0/strategies/0/measurements/0/host/enqueue_ns_per_call", -1},
      {"/config/preset", "quik"},
      {"/config/verify", true},
      {"/config/init/seed", -1},
      {"/config/init/seed", 9007199254740994},
      {"/config/order_seed", 9007199254740994},
      {"/config/init/dist", "random"},
      {"/config/init/min", "low"},
      {"/config/stop/min_time_s", -1},
      {"/config/cooldown_s", nullptr},
      {"/run/repeat_index", -1},
      {"/run/repeat_count", 0},
      {"/cases", nullptr},
      {"/cases/0/case_id", "xyz"},
      {"/cases/0/status", "fine"},
      {"/cases/0/axes/n", 4.5},
      {"/cases/0/reproduce", "rm -r"},
      {"/cases/0/work/flops", -1},
      {"/cases/0/work/items", -1},
      {"/cases/0/strategies/0/verify/saved", "w/1.safetensors"},
      {"/cases/0/strategies/0/measurements/0/rates/items_per_s", -1},
      {"/cases/0/strategies/0/name", ""},
      {"/cases/0/strategies/0/verify/before", "passed"},
      {"/cases/0/strategies/0/verify/bitwise_stable", 1},
      {"/cases/0/strategies/0/verify/worst_error_ratio", "inf"},
      {"/cases/0/strategies/0/verify/worst_member", -1},
      {"/cases/0/strategies/0/measurements/0/regime", "warm"},
      {"/cases/0/strategies/0/measurements/0/iters_per_sample", 0},
      {"/cases/0/strategies/0/measurements/0/samples/time_ns/0", nullptr},
      {"/cases/0/strategies/0/measurements/0/samples/round", 3},
      {"/cases/0/strategies/0/measurements/0/samples/order/0", 0.5},
      {"/cases/0/strategies/0/measurements/0/samples/t_rel_s/0", -1},
      {"/cases/0/strategies/0/measurements/0/samples/flags/0", 8},
      {"/cases/0/strategies/0/measurements/0/stats/median_ns", "12 us"},
      {"/cases/0/strategies/0/measurements/0/stats/ci/method", "guess"},
      {"/cases/0/strategies/0/measurements/0/stats/outliers/removed", 1},
      {"/cases/0/strategies/0/measurements/0/stats/outliers/mild_low", -1},
      {"/cases/0/strategies/0/measurements/0/stats/normality/p", 1.5},
      {"/cases/0/strategies/0/measurements/0/stats/autocorr_lag1", -2},
      {"/cases/0/strategies/0/measurements/0/stats/trend_p", 2},
      {"/cases/0/strategies/0/measurements/0/stats/dip/statistic", 0.3},
      {"/cases/0/strategies/0/measurements/0/stats/dip/p", -1},
      {"/cases/0/strategies/0/measurements/0/stats/dip/test", "silverman"},
      {"/cases/0/strategies/0/measurements/0/stats/modes", 3},
      {"/cases/0/strategies/0/measurements/0/stats/reliable", "yes"},
      {"/cases/0/strategies/0/measurements/0/stats/doubts", {"a_hunch"}},
      {"/cases/0/strategies/0/measurements/0/kept_throttle", -1},
      {"/cases/0/strategies/0/measurements/0/warmup_s", -1},
      {"/cases/0/strategies/0/measurements/0/samples/time_ns", {{"offset", 0}}},
      {"/cases/0/strategies/0/measurements/0/samples/round", {{"offset", -1}, {"count", 1}}},
      {"/samples_file", {{"file", "x"}, {"dtype", "f32le"}, {"bytes", 0}}},
      {"/devices/0/uuid", "H200"},
      {"/run/note", ""},
      {"/run/context/ci_job", 123},
      {"/run/tags", "main"},
      {"/run/parent_suite", ""},
      {"/devices/0/driver", 580},
      {"/cases/0/strategies/0/measurements/0/stats/normality/normal", 1},
      {"/cases/0/strategies/0/vs_baseline/0/p_wilcoxon", 1.5},
      {"/devices/0/pci_bus", "3b"},
      {"/cases/0/strategies/0/measurements/0/warnings", "none"},
      {"/cases/0/strategies/0/vs_baseline/0/speedup_ratio", 0},
      {"/cases/0/strategies/0/vs_baseline/0/verdict", "better"},
      {"/cases/0/baselines/0/name", "loops"},
      {"/cases/3/baselines/3/name", "torch bmm"},
      {"/cases/3/baselines/3/peer", nullptr},
      {"/cases/0/baselines/0/peer", ""},
      {"/cases/0/strategies/0/vs_baseline/0/peer", 1},
      {"/metrics_meta/time_ns/better", "less"},
      {"/op_summaries/0/crossover_n", 4},
      {"/op_summaries/0/crossover_n/ci_lo", "n"},
      {"/op_summaries/0/scaling_fit/0/axis", "batch"},
      {"/op_summaries/0/scaling_fit/0/model", "a*n"},
      {"/op_summaries/0/scaling_fit/0/points", 2},
      {"/op_summaries/0/scaling_fit/0/b_ns", -1},
      {"/cases/0/strategies/0/measurements/0/stats/ci/seed", -1},
      {"/cases/0/strategies/0/measurements/0/stats/ci/seed", 9007199254740994},
      {"/cases/0/strategies/0/measurements/0/rates/roofline_bound", "cache"},
      {"/cases/0/strategies/0/measurements/0/rates/pct_of_mem_peak", -1},
      {"/totals/ok", -1},
      {"/impossible/x", 0}};
  for (const auto& [place, value] : mutations) {
    INFO(place << " = " << value.dump());
    json document = sample_document();
    document[json::json_pointer(place)] = value;
    CHECK(complaint(document) != "");
  }
}

TEST_CASE("the schema and the reader miss every key that is taken away") {
  const std::vector<std::string> places = {"",
                                           "/schema",
                                           "/run",
                                           "/run/tool",
                                           "/host",
                                           "/devices/0",
                                           "/devices/0/clocks",
                                           "/devices/0/clocks/locked",
                                           "/calibration",
                                           "/config",
                                           "/config/stop",
                                           "/config/init",
                                           "/config/warmup",
                                           "/cases/0",
                                           "/cases/0/work",
                                           "/cases/0/peaks",
                                           "/cases/0/strategies/0",
                                           "/cases/0/strategies/0/verify",
                                           "/cases/0/strategies/0/measurements/0",
                                           "/cases/0/strategies/0/measurements/0/samples",
                                           "/cases/0/strategies/0/measurements/0/stats",
                                           "/cases/0/strategies/0/measurements/0/stats/ci",
                                           "/cases/0/strategies/0/measurements/0/stats/ci_mean_t",
                                           "/cases/0/strategies/0/measurements/0/stats/outliers",
                                           "/cases/0/strategies/0/measurements/0/stats/normality",
                                           "/cases/0/strategies/0/measurements/0/stats/dip",
                                           "/cases/0/strategies/0/measurements/0/rates",
                                           "/cases/0/strategies/0/measurements/0/clocks",
                                           "/cases/0/strategies/0/measurements/0/energy",
                                           "/cases/0/strategies/0/kernels/0",
                                           "/cases/0/noise_floors/0",
                                           "/environment_checks/0",
                                           "/cases/0/strategies/0/vs_baseline/0",
                                           "/op_summaries/0",
                                           "/op_summaries/0/crossover_n",
                                           "/op_summaries/0/scaling_fit/0"};
  const json whole = sample_document();
  for (const std::string& place : places) {
    for (const auto& item : whole[json::json_pointer(place)].items()) {
      INFO(place << " without " << item.key());
      json document = whole;
      document[json::json_pointer(place)].erase(item.key());
      // What came with a later minor version, and whose lack tells a result of an earlier one.
      const std::set<std::string> later{
          "strategy",
          "policy",    // 1.2
          "outliers",  // 1.3
          "doubts",    // 1.6
          "kept_throttle",  "note",         "context",          "p_wilcoxon",
          "uuid",           "pci_bus",      "process_isolated", "environment_checks",
          "noise_floors",  // 1.4
          "host_launch_ns", "throttle",     "kernels",          "sm_mhz",
          "cache",          "aa_floor_pct", "max_noise_pct",    "clock_tol_pct",
          "clocks",  // 1.5: a device's
          "min_time_s",     "cooldown_s",   "repeat_index",     "order",
          "t_rel_s",        "flags",        "governor",         "mig",
          "scaling_fit",    "seed",         "roofline_bound",   "items",
          "items_per_s",    "saved",        "adversarial",      "peer",
          "unit",           "peaks",        "process",          "zeros",
          "sm_mhz_stable",  "setup",       // 1.14
          "bitwise_stable", "tolerances",  // 1.15; and a tool's flags
          "warmup_s",       "tags",         "parent_suite",     "driver",
          "normal"};  // 1.19
      // The same words are needed elsewhere.
      const std::set<std::string> needed{
          "/config/cache",
          "/config/init/seed",
          "/cases/0/strategies/0/measurements/0/clocks",
          "/devices/0/clocks",  // since 1.7
          "/cases/0/strategies/0/measurements/0/stats/normality/unit",
          "/cases/0/strategies/0/measurements/0/stats/dip/unit",
          "/devices/0/clocks/locked/sm_mhz",
          "/op_summaries/0/scaling_fit/0/strategy"};
      if (later.contains(item.key()) && !needed.contains(place + "/" + item.key())) {
        CHECK((complaint(document) == "" && refusal(document.dump()) == "nothing was thrown"));
        continue;
      }
      CHECK(complaint(document) != "");
      const std::string message = refusal(document.dump());
      if (message == "nothing was thrown") continue;
      CHECK_THAT(message, ContainsSubstring(item.key() + " is missing"));
    }
  }
  CHECK_THAT(refusal(json::object().dump()), ContainsSubstring("$.schema is missing"));
}

TEST_CASE("the reader refuses the numbers below 0 that the schema does") {
  const json whole = sample_document(), leaves = whole.flatten();
  // What is only written: the reader finds it anew.
  const std::vector<std::string_view> derived{
      "/devices/0/id", "/summary/best_speedup_ratio", "/intensity_flop_per_byte",
      "/ci/level",     "/outliers/removed",           "/stats/modes"};
  const auto is_read = [&](std::string_view place) {
    return !place.starts_with("/totals") &&
           std::none_of(derived.begin(), derived.end(),
                        [&](std::string_view end) { return place.ends_with(end); });
  };
  int refused = 0;
  for (const auto& [place, value] : leaves.items()) {
    // Of every array its first.
    if (place.find_first_of("123456789") != std::string::npos) continue;
    if (!value.is_number() || !is_read(place)) continue;
    INFO(place);
    json document = whole;
    document[json::json_pointer(place)] = value.is_number_float() ? json(-1.) : json(-1);
    const std::string message = refusal(document.dump());
    if (complaint(document) == "") {
      CHECK(message == "nothing was thrown");
      continue;
    }
    CHECK_THAT(message, ContainsSubstring(" is -1") && ContainsSubstring(", 0 or above"));
    ++refused;
  }
  CHECK(refused > 100);
}

TEST_CASE("real runs fit the schema") {
  const std::string line = GENERATE_COPY("run " + kTiny, "verify --op all --n 2 -p ci -d cpu ",
                                         "run --dtype fp16 --strategy auto --verify off " + kTiny);
  INFO(line);
  CHECK(complaint(json::parse(wbench(line + " --json -").out)) == "");
}

}  // namespace wide::bench
