// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// bench/result.schema.json: what wbench writes fits it, and what is no result does not. A check of
// the check, too: every document here that must be refused differs from a good one in one place.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <memory>

#include "bench/result_json.hpp"
#include "verify/cli_case.hpp"
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

}  // namespace

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
      if (item.key() == "strategy" || item.key() == "policy") {  // older than 1.2
        CHECK((complaint(document) == "" && refusal(document.dump()) == ""));
        continue;
      }
      CHECK(complaint(document) != "");
      const std::string message = refusal(document.dump());
      if (!message.empty()) CHECK_THAT(message, ContainsSubstring(item.key() + " is missing"));
    }
  }
  CHECK_THAT(refusal(json::object().dump()), ContainsSubstring("$.schema is missing"));
}

TEST_CASE("real runs fit the schema") {
  const std::string line = GENERATE_COPY("run " + kTiny, "verify --op all --n 2 -p ci -d cpu ",
                                         "run --dtype fp16 --strategy auto --verify off " + kTiny);
  INFO(line);
  CHECK(complaint(json::parse(wbench(line + " --json -").out)) == "");
}

}  // namespace wide::bench
