// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Results as files: what is written is read back bit for bit, fits the schema in the repository,
// and whatever else a file holds is refused with a message that names the place.
#include "bench/result_json.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>

#include "verify/sample_result.hpp"
#include "wide/error.hpp"

#if !__has_include(<valijson/validator.hpp>)
#error "valijson is missing: install libvalijson-dev (scripts/setup.sh does)"
#endif
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

namespace wide::bench {

namespace {

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

std::string sample_text() {
  return to_json(sample_result()).dump();
}

json sample_document() {
  return json::parse(sample_text());
}

std::string refusal(const std::string& text) {
  try {
    (void)parse_result(text);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
    return error.what();
  }
  return "";
}

/// "" where the document fits the schema, else the first complaint.
std::string complaint(const json& document) {
  static const auto schema = [] {
    std::ifstream file(WIDE_SOURCE_DIR "/bench/result.schema.json");
    const json text = json::parse(file);
    auto parsed = std::make_unique<valijson::Schema>();
    valijson::SchemaParser(valijson::SchemaParser::kDraft7)
        .populateSchema(valijson::adapters::NlohmannJsonAdapter(text), *parsed);
    return parsed;
  }();
  valijson::ValidationResults results;
  valijson::Validator validator;
  if (validator.validate(*schema, valijson::adapters::NlohmannJsonAdapter(document), &results))
    return "";
  valijson::ValidationResults::Error error;
  std::string text = "refused";
  while (results.popError(error)) text += ": " + error.description;
  return text;
}

/// A folder of one test, gone with it.
struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("wide-result-" + std::to_string(std::rand()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  size_t files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path), {}));
  }
};

}  // namespace

TEST_CASE("a result is read back as it was written, every bit of every double") {
  const RunResult result = sample_result();
  const RunResult loaded = parse_result(sample_text());
  CHECK(to_json(loaded).dump() == sample_text());
  REQUIRE(loaded.cases.size() == result.cases.size());
  const Measurement& before = result.cases[0].strategies[1].measurements[0];
  const Measurement& after = loaded.cases[0].strategies[1].measurements[0];
  CHECK(after.samples_ns == before.samples_ns);
  CHECK(after.walltime_s == 0.1 + 0.2);
  CHECK(after.stats.max_ns == before.stats.max_ns);
  CHECK(after.stats.mad_ns == 5e-324);
  CHECK(loaded.cases[0].cost.flops == 1e9 + 1. / 3);
  CHECK(loaded.cases[0].point == result.cases[0].point);
  CHECK(loaded.cases[0].speedups.size() == 6);
  CHECK(loaded.cases[0].speedups[3].strategy == "simt");
  CHECK(loaded.devices[0].device == Device{DeviceType::cuda, 1});
  CHECK(loaded.cases[3].strategies[0].verify.worst_error_ratio == std::nullopt);
  CHECK(loaded.hostname == result.hostname);
  CHECK(loaded.impossible_cases == 3);
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

TEST_CASE("what is written fits the schema") {
  CHECK(complaint(sample_document()) == "");
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
      {"/host/cores", 1.5},
      {"/devices", json::array()},
      {"/devices/0/device", "gpu"},
      {"/devices/0/compute_capability", "9.0"},
      {"/devices/0/sm_count", -1},
      {"/calibration/mem_bw_bytes_per_s", 0},
      {"/calibration/flops_per_s/fp32", "fast"},
      {"/config/regimes/0", "cold"},
      {"/config/preset", "quik"},
      {"/config/verify", true},
      {"/config/init/seed", -1},
      {"/cases", nullptr},
      {"/cases/0/case_id", "xyz"},
      {"/cases/0/status", "fine"},
      {"/cases/0/axes/n", 4.5},
      {"/cases/0/reproduce", "rm -r"},
      {"/cases/0/work/flops", -1},
      {"/cases/0/strategies/0/name", ""},
      {"/cases/0/strategies/0/verify/before", "passed"},
      {"/cases/0/strategies/0/verify/worst_error_ratio", "inf"},
      {"/cases/0/strategies/0/verify/worst_member", -1},
      {"/cases/0/strategies/0/measurements/0/regime", "warm"},
      {"/cases/0/strategies/0/measurements/0/iters_per_sample", 0},
      {"/cases/0/strategies/0/measurements/0/samples/time_ns/0", nullptr},
      {"/cases/0/strategies/0/measurements/0/samples/round", 3},
      {"/cases/0/strategies/0/measurements/0/stats/median_ns", "12 us"},
      {"/cases/0/strategies/0/measurements/0/warnings", "none"},
      {"/cases/0/strategies/0/vs_baseline/0/speedup_ratio", 0},
      {"/cases/0/strategies/0/vs_baseline/0/verdict", "better"},
      {"/cases/0/baselines/0/name", "loops"},
      {"/metrics_meta/time_ns/better", "less"},
      {"/op_summaries/0/crossover_n", 4},
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
                                           "/calibration",
                                           "/config",
                                           "/config/stop",
                                           "/config/warmup",
                                           "/cases/0",
                                           "/cases/0/work",
                                           "/cases/0/strategies/0",
                                           "/cases/0/strategies/0/verify",
                                           "/cases/0/strategies/0/measurements/0",
                                           "/cases/0/strategies/0/measurements/0/samples",
                                           "/cases/0/strategies/0/measurements/0/stats",
                                           "/cases/0/strategies/0/measurements/0/stats/ci",
                                           "/cases/0/strategies/0/measurements/0/rates",
                                           "/cases/0/strategies/0/vs_baseline/0",
                                           "/op_summaries/0"};
  const json whole = sample_document();
  for (const std::string& place : places) {
    for (const auto& item : whole[json::json_pointer(place)].items()) {
      INFO(place << " without " << item.key());
      json document = whole;
      document[json::json_pointer(place)].erase(item.key());
      CHECK(complaint(document) != "");
      const std::string message = refusal(document.dump());
      if (!message.empty()) CHECK_THAT(message, ContainsSubstring(item.key() + " is missing"));
    }
  }
  CHECK_THAT(refusal(json::object().dump()), ContainsSubstring("$.schema is missing"));
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
  CHECK_THAT(with("/host", 3), ContainsSubstring("expected an object"));
  CHECK_THAT(with("/cases/0/axes/n", 1.5),
             ContainsSubstring("$.cases[0].axes.n is 1.5, expected an integer or a word"));
  CHECK_THAT(with("/config/init/seed", 18446744073709551615u), ContainsSubstring("64 bits"));
  CHECK_THAT(with("/run/exit_code", int64_t{1} << 40), ContainsSubstring("32 bits"));
  CHECK_THAT(with("/cases/0/strategies/0/measurements/0/samples/round", json::array({1})),
             ContainsSubstring("40 samples with 1 rounds"));
}

TEST_CASE("a higher major version is refused, a higher minor one and unknown keys are not") {
  json document = sample_document();
  document["schema"]["version"] = "1.7.0";
  document["cases"][0]["a_key_of_the_future"] = {1, 2, 3};
  CHECK(parse_result(document.dump()).cases.size() == 4);
  for (const char* version : {"2.0.0", "10.0.0", "0.9.0", "", "one", "-1.0.0"}) {
    document["schema"]["version"] = version;
    CHECK_THAT(refusal(document.dump()), ContainsSubstring("expected wbench.result 1.x.y"));
  }
  document["schema"] = {{"name", "nvbench"}, {"version", "1.0.0"}};
  CHECK_THAT(refusal(document.dump()), ContainsSubstring("schema is nvbench"));
}

TEST_CASE("a document that ends anywhere is refused, and never crashes the reader") {
  const std::string text = sample_text();
  for (size_t length = 0; length < text.size(); length += 64) {
    if (refusal(text.substr(0, length)).empty()) FAIL("accepted " << length << " bytes");
  }
  SUCCEED();
}

TEST_CASE("a document with a damaged byte is read or refused, and never crashes the reader") {
  const std::string text = sample_text();
  for (size_t place = 0; place < text.size(); place += 61) {
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
  CHECK_THAT(refusal("NaN"), ContainsSubstring("not JSON"));
  CHECK_THAT(refusal(""), ContainsSubstring("not JSON"));
  CHECK_THAT(refusal("null"), ContainsSubstring("expected an object"));
  // Brackets inside strings do not nest.
  json document = sample_document();
  document["run"]["argv"] = {std::string(200, '['), "\"{{{{\\"};
  CHECK(refusal(document.dump()).empty());
}

TEST_CASE("files are written whole or not at all") {
  const Folder folder;
  const std::string file = folder.path / "r.json";
  write_file(file, "old");
  write_file(file, sample_text());
  CHECK(folder.files() == 1);
  CHECK(to_json(load_result(file)).dump() == sample_text());
  const auto io_error = [](const std::string& path) {
    try {
      write_file(path, "text");
    } catch (const Error& error) {
      return error.code() == ErrorCode::io ? std::string(error.what()) : "wrong code";
    }
    return std::string();
  };
  CHECK_THAT(io_error(folder.path / "none" / "r.json"),
             ContainsSubstring("none/r.json: No such file"));
  CHECK_THAT(io_error(folder.path), ContainsSubstring("directory"));
  CHECK_THAT(io_error("/dev/full"), ContainsSubstring("/dev/full: No space left"));
  CHECK_THAT(io_error(""), ContainsSubstring("cannot write"));
  write_file("/dev/null", "text");
  std::filesystem::create_directory(folder.path / "taken");
  CHECK_THAT(io_error(folder.path / "taken"), ContainsSubstring("taken"));
  CHECK(folder.files() == 2);  // no temporary file is left behind
  CHECK_THROWS_AS(load_result(folder.path / "absent.json"), Error);
  write_file(file, "{");
  CHECK_THROWS_MATCHES(
      load_result(file), Error,
      Catch::Matchers::MessageMatches(ContainsSubstring("r.json: result: not JSON")));
}

}  // namespace wide::bench
