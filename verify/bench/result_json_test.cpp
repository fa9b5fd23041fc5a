// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Results as files: what is written is read back bit for bit, and whatever else a file holds is
// refused with a message that names the place.
#include "bench/document/result_json.hpp"
#include "host/core/file.hpp"

#include <sys/resource.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <limits>
#include <tuple>

#include "verify/bench/sample_result.hpp"
#include "verify/support/folder.hpp"
#include "verify/support/refusals.hpp"
#include "verify/support/sanitizers.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

const size_t kTimesSlower = test::is_watched() ? 8 : 1;

std::string sample_text() {
  return to_json(sample_result()).dump();
}

json sample_document() {
  return json::parse(sample_text());
}

std::string refusal(const std::string& text) {
  return test::refusal_of([&] { (void)parse_result(text); });
}

int64_t num_files() {
  return std::distance(std::filesystem::directory_iterator("."), {});
}

}  // namespace

TEST_CASE("a result is read back as it was written, every bit of every double") {
  const RunResult result = sample_result();
  const RunResult loaded = parse_result(sample_text());
  CHECK(to_json(loaded).dump() == sample_text());
  REQUIRE(loaded.cases.size() == result.cases.size());
  for (size_t i = 0; i < result.cases.size(); ++i) {
    const CaseResult &before = result.cases[i], &after = loaded.cases[i];
    CHECK(after.point == before.point);
    CHECK(after.strategies == before.strategies);
    CHECK(after.baselines == before.baselines);
    CHECK(after.speedups == before.speedups);
    CHECK(after.cost.flops == before.cost.flops);
    CHECK(after.cost.bytes_read == before.cost.bytes_read);
    CHECK(after.cost.bytes_written == before.cost.bytes_written);
    CHECK(after.footprint_bytes == before.footprint_bytes);
    CHECK(after.floor_ns == before.floor_ns);
    CHECK(after.case_id + after.reproduce == before.case_id + before.reproduce);
    CHECK((after.status == before.status && after.reason == before.reason));
  }
  CHECK(loaded.config == result.config);
  CHECK(loaded.calibration == result.calibration);
  CHECK(loaded.op_summaries == result.op_summaries);
  CHECK(loaded.devices[0].device == Device{DeviceType::cuda, 1});
  CHECK(loaded.devices[0].memory_bytes == result.devices[0].memory_bytes);
  CHECK(loaded.locked_clocks == result.locked_clocks);
  CHECK(loaded.argv == result.argv);
  CHECK((loaded.flags == result.flags && loaded.cuda_flags == result.cuda_flags));
  CHECK(loaded.tolerances == result.tolerances);
  CHECK((loaded.note == result.note && loaded.context == result.context));
  CHECK((loaded.tags == result.tags && loaded.parent_suite == result.parent_suite));
  CHECK(loaded.devices.at(0).state == result.devices.at(0).state);
  CHECK(loaded.devices[0].uuid == result.devices[0].uuid);
  CHECK(loaded.devices[0].state == result.devices[0].state);
  CHECK(loaded.devices[0].pci_bus_id == result.devices[0].pci_bus_id);
  CHECK(loaded.hostname == result.hostname);
  CHECK(loaded.host_state == result.host_state);
  CHECK(loaded.impossible_reasons == result.impossible_reasons);
  CHECK(loaded.impossible_cases == 3);
}

TEST_CASE("results before 1.3 lack some statistics, and are read all the same") {
  json document = sample_document();
  document["schema"]["version"] = "1.2.0";
  json& stats = document["cases"][0]["strategies"][0]["measurements"][0]["stats"];
  stats["ci"]["method"] = "percentile_bootstrap";
  stats["ci"].erase("resamples");
  for (const char* key : {"p99_ns", "iqr_ns", "ci_mean_t", "outliers", "normality",
                          "trend_pct_per_s", "autocorr_lag1", "between_round_cv_pct"})
    CHECK(stats.erase(key) == 1);
  const RunResult result = parse_result(document.dump());
  const Statistics& s = result.cases[0].strategies[0].measurements[0].stats;
  CHECK(s.ci_method == "percentile_bootstrap");
  CHECK(s.ci_resamples == 0);
  CHECK_FALSE((s.ci_mean_lo_ns || s.normality || s.trend_pct_per_s));
  CHECK(s.median_ns == sample_result().cases[0].strategies[0].measurements[0].stats.median_ns);
}

TEST_CASE("an empty result goes through, and what is not finite becomes null") {
  RunResult result;
  result.devices.push_back({});
  result.duration_s = std::numeric_limits<double>::quiet_NaN();
  result.calibration.mem_bw_bytes_per_s = std::numeric_limits<double>::infinity();
  const std::string text = to_json(result).dump();
  CHECK_THAT(text, ContainsSubstring("\"duration_s\":null"));
  CHECK_THAT(text, ContainsSubstring("\"mem_bw_bytes_per_s\":null"));
  CHECK_THAT(text, !ContainsSubstring("nan") && !ContainsSubstring("inf"));
  CHECK(parse_result(text).duration_s == 0);
}

TEST_CASE("errors name the field, what it is and what it should be") {
  const auto with = [](const char* place, const json& value) {
    json document = sample_document();
    document[json::json_pointer(place)] = value;
    return refusal(document.dump());
  };
  CHECK_THAT(
      with("/cases/0/strategies/1/measurements/0/stats/n", "many"),
      ContainsSubstring(
          "$.cases[0].strategies[1].measurements[0].stats.n is \"many\", expected an integer"));
  CHECK_THAT(with("/cases/1/status", "fine"),
             ContainsSubstring("$.cases[1].status is \"fine\", expected"));
  CHECK_THAT(with("/run/complete", 1),
             ContainsSubstring("$.run.complete is 1, expected true or false"));
  CHECK_THAT(with("/run/argv", json::object()), ContainsSubstring("expected an array"));
  const std::string first = sample_document()["cases"][0]["strategies"][0]["name"];
  CHECK_THAT(with("/cases/0/strategies/1/name", first),
             ContainsSubstring("$.cases[0].strategies[1].name is \"" + first +
                               "\", expected another name than an earlier strategy's"));
  CHECK_THAT(with("/host", 3), ContainsSubstring("expected an object"));
  CHECK_THAT(with("/cases/0/axes/n", 1.5),
             ContainsSubstring("$.cases[0].axes.n is 1.5, expected an integer or a word"));
  CHECK_THAT(with("/config/init/seed", 18446744073709551615u), ContainsSubstring("64 bits"));
  for (const char* seed : {"/config/init/seed", "/config/order_seed",
                           "/cases/0/strategies/0/measurements/0/stats/ci/seed"}) {
    CHECK(with(seed, int64_t{1} << 53) == "nothing was thrown");
    CHECK_THAT(with(seed, (int64_t{1} << 53) + 1),
               ContainsSubstring("seed is 9007199254740993, expected an integer from 0 to 2^53"));
  }
  CHECK_THAT(with("/run/exit_code", int64_t{1} << 40), ContainsSubstring("32 bits"));
  CHECK_THAT(with("/cases/0/strategies/0/measurements/0/samples/round", json::array({1})),
             ContainsSubstring("40 samples with 1 rounds"));
  for (const std::string column : {"sm_mhz", "order", "t_rel_s", "flags"}) {
    const std::string place = "/cases/0/strategies/0/measurements/0/samples/" + column;
    CHECK_THAT(with(place.c_str(), json::array({1})),
               ContainsSubstring("40 samples with 1 " + column));
  }
  CHECK_THAT(with("/cases/0/strategies/0/measurements/0/samples/order/1", 1.5),
             ContainsSubstring("samples.order[1] is 1.5, expected an integer"));
}

TEST_CASE("times that are none are refused, not shown") {
  const auto with = [](const char* text) {
    json document = sample_document();
    document["cases"][0]["strategies"][0]["measurements"][0]["samples"]["time_ns"][3] = "HERE";
    std::string whole = document.dump();
    return refusal(whole.replace(whole.find("\"HERE\""), 6, text));
  };
  const std::string place = "result: $.cases[0].strategies[0].measurements[0].samples.time_ns[3]";
  CHECK(with("12.5") == "nothing was thrown");
  CHECK(with("0") == "nothing was thrown");
  CHECK(with("-5") == place + " is -5, expected a number, 0 or above");
  CHECK(with("-1e-300") == place + " is -1e-300, expected a number, 0 or above");
  CHECK(with("null") == place + " is null, expected a number");
  CHECK(with("1e18") == "nothing was thrown");
  CHECK(with("1e300") == place + " is 1e+300, expected a time of at most 10^18 ns");
  CHECK_THAT(with("-1e999"), ContainsSubstring("not JSON"));
  CHECK_THAT(with("Infinity"), ContainsSubstring("not JSON"));
}

TEST_CASE("statistics that are no times are refused, not shown") {
  json document = sample_document();
  json& stats = document["cases"][0]["strategies"][0]["measurements"][0]["stats"];
  for (const char* name : {"mean_ns", "median_ns", "max_ns", "mad_ns", "p99_ns"}) {
    const json was = std::exchange(stats[name], 1e300);
    CHECK_THAT(refusal(document.dump()), ContainsSubstring(std::string(name) + " is 1e+300"));
    stats[name] = was;
  }
}

TEST_CASE("a key that an object has twice is refused with its path") {
  const auto with = [](const std::string& before, const std::string& more) {
    std::string text = sample_text();
    return refusal(text.insert(text.find(before) + before.size(), more));
  };
  CHECK(with("\"run\":{", "\"id\":1,") == "result: $.run.id is given twice, expected once");
  CHECK(with("{", "\"cases\":[[],{\"a\":{},\"b\":[1,{\"c\":1,\"c\":2}]}],") ==
        "result: $.cases[1].b[1].c is given twice, expected once");
  CHECK(with("{", "\"totals\":{},") == "result: $.totals is given twice, expected once");
  // Other objects may have the same keys, and strings may look like them.
  CHECK(with("{", "\"more\":[{\"run\":{\"run\":\"\\\"run\\\":1\"}},{\"run\":1}],") ==
        "nothing was thrown");
}

TEST_CASE("a higher major version is refused, a higher minor one and unknown keys are not") {
  json document = sample_document();
  document["schema"]["version"] = "1.8.0";
  document["cases"][0]["a_key_of_the_future"] = {1, 2, 3};
  CHECK(parse_result(document.dump()).cases.size() == 4);
  CHECK(schema_note(parse_result(document.dump())) == "");
  document["schema"]["version"] = "1.99.0";
  CHECK(schema_note(parse_result(document.dump())) ==
        "what a later wbench added is not shown: its schema is 1.99.0, this one's " +
            std::string(kSchemaVersion));
  for (const char* version :
       {"2.0.0", "10.0.0", "0.9.0", "", "one", "-1.0.0", "1.-3.0", "1.", "1.2", "1.2.", "1.2.3.4",
        "1.2.x", "1. 2.0", "1.+2.0", "1.99999999999.0"}) {
    document["schema"]["version"] = version;
    CHECK_THAT(refusal(document.dump()), ContainsSubstring("expected wbench.result 1.x.y"));
  }
  document["schema"] = {{"name", "nvbench"}, {"version", "1.0.0"}};
  CHECK_THAT(refusal(document.dump()), ContainsSubstring("schema is nvbench"));
  CHECK(refusal("{}") == "result: $.schema is missing, expected wbench.result 1.x.y");
}

TEST_CASE("a document that ends anywhere is refused, and never crashes the reader") {
  const std::string text = to_json(short_sample_result()).dump();
  for (size_t length = 0; length < text.size(); length += 1 + 62 * kTimesSlower) {
    if (refusal(text.substr(0, length)) == "nothing was thrown")
      FAIL("accepted " << length << " bytes");
  }
  SUCCEED();
}

TEST_CASE("a document with a damaged byte is read or refused, and never crashes the reader") {
  const std::string text = to_json(short_sample_result()).dump();
  for (size_t place = 0; place < text.size(); place += 1 + 60 * kTimesSlower) {
    std::string damaged = text;
    damaged[place] = static_cast<char>(damaged[place] ^ (1 << (place % 7)));
    (void)refusal(damaged);
  }
  SUCCEED();
}

TEST_CASE("hostile documents are refused") {
  CHECK_THAT(refusal(std::string(1'000'000, '[')), ContainsSubstring("nested deeper than 64"));
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  CHECK_THAT(refusal(deep), ContainsSubstring("nested deeper than 64"));
  CHECK_THAT(refusal("{\"schema\": 1e999}"), ContainsSubstring("not JSON"));
  CHECK_THAT(refusal("\xff\xfe{}"), ContainsSubstring("not JSON"));
  CHECK_THAT(refusal("{\"a\": \"\xc3\"}"), ContainsSubstring("not JSON"));
  CHECK_THAT(refusal("NaN"), ContainsSubstring("not JSON: parse error at line 1, column 1: "));
  CHECK(refusal("") == "result: not JSON: it is empty");
  CHECK_THAT(refusal("null"), ContainsSubstring("expected an object"));
  // Brackets inside strings do not nest.
  json document = sample_document();
  document["run"]["argv"] = {std::string(200, '['), "\"{{{{\\"};
  CHECK(refusal(document.dump()) == "nothing was thrown");
}

TEST_CASE("what is there twice is refused, not averaged") {
  const auto with_again = [](const char* place) {
    json document = sample_document();
    json& all = document[json::json_pointer(place)];
    all.push_back(all[0]);
    return refusal(document.dump());
  };
  CHECK_THAT(with_again("/cases"),
             ContainsSubstring("$.cases[4].case_id is \"") &&
                 ContainsSubstring("expected another than an earlier case's"));
  CHECK_THAT(with_again("/cases/0/strategies"), ContainsSubstring("an earlier strategy's"));
  CHECK_THAT(
      with_again("/cases/0/baselines"),
      ContainsSubstring("$.cases[0].baselines[3].name is \"loop\", expected another name than "
                        "an earlier baseline's"));
  CHECK_THAT(with_again("/cases/0/strategies/1/measurements"),
             ContainsSubstring("measurements[2].regime is \"stream\", expected another regime"));
  CHECK_THAT(with_again("/cases/0/baselines/0/measurements"), ContainsSubstring("another regime"));
}

/// Loads a consistent result of which one value is another.
std::string complaint_with(const std::string& place, const json& value) {
  json document = json::parse(to_json(consistent(sample_result())).dump());
  document.at(json::json_pointer(place)) = value;
  write_file("x.json", document.dump());
  return test::refusal_of([] { (void)load_result("x.json"); });
}

TEST_CASE("numbers that contradict one another are refused") {
  const test::TemporaryFolder folder;
  CHECK(complaint_with("/run/note", "x") == "nothing was thrown");
  const std::string m = "/cases/0/strategies/0/measurements/0", peer = "/cases/3/baselines/3";
  const std::vector<std::tuple<std::string, json, std::string>> all = {
      {m + "/stats/median_ns", 1000,
       "strategies[0].measurements[0].stats.median_ns is 1000, expected 45678.9, its"},
      {m + "/stats/n", 7, "stats.n is 7, expected 40, its samples"},
      {m + "/stats/min_ns", 1, "stats.min_ns is 1, "},
      {m + "/stats/q1_ns", 1, "stats.q1_ns is 1, "},
      {m + "/stats/q3_ns", 1, "stats.q3_ns is 1, "},
      {m + "/stats/max_ns", 1, "stats.max_ns is 1, "},
      {m + "/samples/time_ns/3", 0, "stats.min_ns is 45675.9, expected 0, its samples'"},
      {m + "/samples/order/0", 41, "samples.order is 41 twice, expected it once"},
      {"/cases/0/strategies/0/vs_baseline/0/speedup_ratio", 1.345,
       "speedup of sequential vs loop (stream) is 1.345, expected 1.34"},
      {m + "/iters_per_sample", 0, "iters_per_sample is 0, expected 1 or more"},
      {m + "/stats/ci/hi_ns", 1, "stats.median_ns is 45678.9, expected a value in its interval, "},
      {m + "/stats/ci/lo_ns", 1e6, "stats.median_ns is 45678.9, expected a value in its interval"},
      {m + "/stats/trend_p", 4, "stats.trend_p is 4, expected at most 1"},
      {m + "/stats/dip/p", 4, "stats.dip.p is 4"},
      {m + "/stats/normality/p", 4, "stats.normality.p is 4"},
      {m + "/rates/pct_of_floor", 12, "rates.pct_of_floor is 12, expected 5.13"},
      {m + "/rates/flops_per_s", 1e18, "rates.flops_per_s is 1e+18, expected "},
      {m + "/rates/items_per_s", 1, "rates.items_per_s is 1, expected "},
      {"/cases/0/work/bytes_read", 1, "rates.mem_bw_bytes_per_s is "},
      {"/cases/0/strategies/0/vs_baseline/0/speedup_ratio", 9,
       "(stream) is 9, expected a value in"},
      {"/cases/0/strategies/0/vs_baseline/0/ci_lo", 5, "expected a value in its interval, 5 to "},
      {"/cases/0/strategies/0/vs_baseline/0/pairs", 9, "pairs is 9, expected 10, its rounds"},
      {"/cases/0/strategies/0/vs_baseline/0/verdict", "fastest",
       "verdict is fastest, expected one of faster"},
      {"/cases/0/strategies/0/vs_baseline/0/verdict", "slower",
       "verdict is slower, expected another"},
      {"/cases/0/strategies/0/vs_baseline/0/p_wilcoxon", 2, "p_wilcoxon is 2"},
      {"/cases/0/strategies/0/verify/after", "fail",
       "status is ok, expected another, as verify.after"},
      {"/cases/0/strategies/0/verify/before", "maybe", "verify.before is maybe, expected pass"},
      {"/cases/0/strategies/0/verify/mismatches", 500, "mismatches is 500, expected 0"},
      {"/cases/0/strategies/0/verify/worst_error_ratio", 1.5, "is 1.5, expected at most 1, as"},
      {peer + "/verify/worst_error_ratio", 17, "is 17, expected at most 16, as status is ok"},
      {"/cases/0/axes/n", 8, "$.cases[0].case_id is "},
      {"/cases/0/op", "softmax", "$.cases[0].case_id is "},
      {"/cases/0/op_version", 2, "$.cases[0].case_id is "},
      {"/cases/0/noise_floors/0/ratio", 2, "noise_floors' ratio is 2, expected a value in"},
      {"/devices/0/device", "cpu", "regime is stream, expected cpu, the run's only device"}};
  for (const auto& [place, value, message] : all) {
    INFO(place << " = " << value.dump());
    CHECK_THAT(complaint_with(place, value),
               ContainsSubstring("x.json: result: $.cases[") && ContainsSubstring(message));
  }
  CHECK(complaint_with(peer + "/verify/worst_error_ratio", 15.5) == "nothing was thrown");
  CHECK(complaint_with("/cases/0/strategies/0/vs_baseline/0/speedup_ratio", nullptr) ==
        "nothing was thrown");
}

TEST_CASE("files are written whole or not at all") {
  const test::TemporaryFolder folder;
  const std::string file = "r.json";
  write_file(file, "old");
  const std::string text = to_json(consistent(sample_result())).dump();
  write_file(file, text);
  CHECK(num_files() == 1);
  CHECK(to_json(load_result(file)).dump() == text);
  const auto io_error = [](const std::string& path) {
    return test::message_of(ErrorCode::io, [&] { write_file(path, "text"); });
  };
  CHECK_THAT(io_error("none/r.json"), ContainsSubstring("none/r.json: No such file"));
  CHECK_THAT(io_error(std::filesystem::current_path()), ContainsSubstring("directory"));
  CHECK_THAT(io_error("/dev/full"), ContainsSubstring("/dev/full: No space left"));
  CHECK_THAT(io_error(""), ContainsSubstring("cannot write"));
  write_file("/dev/null", "text");
  std::filesystem::create_directory("taken");
  CHECK_THAT(io_error("taken"), ContainsSubstring("taken"));
  CHECK(num_files() == 2);  // no temporary file is left behind
  CHECK_THROWS_AS(load_result("absent.json"), Error);
  write_file(file, "{");
  CHECK_THROWS_MATCHES(
      load_result(file), Error,
      Catch::Matchers::MessageMatches(ContainsSubstring("r.json: result: not JSON")));
}

TEST_CASE("a disk that fills up leaves the old file, and nothing else") {
  const test::TemporaryFolder folder;
  const std::string file = "r.json";
  write_file(file, "old");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{16, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  CHECK_THROWS_AS(write_file(file, sample_text()), Error);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(std::filesystem::file_size(file) == 3);
  CHECK(num_files() == 1);
}

}  // namespace wide::bench
