// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What `wbench list` says, and whether it is so.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "bench/document/metrics.hpp"
#include "bench/process/exit_code.hpp"
#include "host/core/file.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/support/folder.hpp"
#include "verify/support/refusals.hpp"
#include "wide/catalog.hpp"

namespace wide::bench {

namespace {

using Catch::Matchers::ContainsSubstring;
using test::TemporaryFolder;

}  // namespace

TEST_CASE("list and info need no device") {
  const std::string what = GENERATE("list", "list ops", "list strategies", "list axes --op linear",
                                    "list presets", "list tolerances", "list dtypes",
                                    "list devices", "list metrics", "list refused", "info");
  const Outcome text = wbench(what + " --no-gpu"), document = wbench(what + " --json -");
  CHECK(text.code == kSuccess);
  CHECK(!text.out.empty());
  CHECK(document.code == kSuccess);
  CHECK(!nlohmann::json::parse(document.out).empty());
}

TEST_CASE("what is refused is not there") {
  const auto rows = [](const std::string& what) {
    return nlohmann::json::parse(wbench("list " + what + " --json -").out);
  };
  std::set<std::string> with_vendors;
  for (const auto& row : rows("strategies"))
    if (row.at("kind") == "vendor") with_vendors.insert(row.at("op"));
  CHECK(with_vendors.contains("linear"));
  int64_t found = 0;
  for (const auto& row : rows("refused")) {
    const std::string what = row.at("what");
    const size_t end = what.find(" by vendors' libraries");
    if (end == std::string::npos) continue;
    std::istringstream ops(what.substr(0, end));
    for (std::string op; std::getline(ops >> std::ws, op, ','); ++found) {
      INFO(op);
      CHECK_NOTHROW(catalog::find_primitive(op));
      CHECK_FALSE(with_vendors.contains(op));
    }
  }
  CHECK(found >= 5);
}

TEST_CASE("metrics are listed by the names that compare knows") {
  const std::string text = wbench("list metrics").out;
  for (const Metric& metric : metrics()) CHECK_THAT(text, ContainsSubstring(metric.name));
  for (const auto& row : nlohmann::json::parse(wbench("list metrics --json -").out)) {
    const std::string name = row.at("metric");
    const std::string refusal = test::refusal_of([&] { (void)find_measured_metric(name); });
    INFO(name);
    if (row.at("compared") == "yes") {
      CHECK(refusal == "nothing was thrown");
    } else {
      CHECK_THAT(refusal, ContainsSubstring("metric " + name +
                                            ": no metric of single times, "
                                            "expected one of time_ns, flops_per_s"));
    }
  }
}

TEST_CASE("a list's numbers are numbers in JSON, too") {
  for (const auto& row : nlohmann::json::parse(wbench("list dtypes --json -").out)) {
    CHECK(row.at("bytes").get<int64_t>() > 0);
    const bool is_integer = row.at("dtype").get<std::string>().find("int") != std::string::npos;
    CHECK(row.at("sums in") == (is_integer ? "no sums" : "fp32"));
  }
  for (const auto& row : nlohmann::json::parse(wbench("list presets --json -").out)) {
    CHECK(row.at("cases").is_number_integer());
    CHECK(row.at("axes").is_string());
  }
}

TEST_CASE("preset ci is preset quick of two member counts, of what a peer has such presets of") {
  std::map<std::pair<std::string, std::string>, std::string> axes;
  for (const auto& row : nlohmann::json::parse(wbench("list presets --json -").out))
    axes[{row.at("op"), row.at("preset")}] = row.at("axes");
  for (const char* op : {"linear", "conv1d", "conv2d", "attention", "embedding", "layernorm",
                         "batchnorm1d", "batchnorm2d"}) {
    const std::string quick = axes[{op, "quick"}], ci = axes[{op, "ci"}];
    REQUIRE(quick.starts_with("n=4,8,16,32 "));
    const char* more = op == std::string("layernorm") ? " routed=no,yes" : "";
    CHECK(ci == "n=4,16 " + quick.substr(quick.find(' ') + 1) + more);
  }
  CHECK(axes[{"embedding", "quick"}] == "n=4,8,16,32 batch=8 vocab=1000 dim=256 seq=128");
}

TEST_CASE("list suites is suite list, and lists go to files") {
  CHECK(wbench("list suites").out == wbench("suite list").out);
  CHECK_THAT(wbench("list suites").out, ContainsSubstring("end_to_end"));
  const TemporaryFolder folder;
  const Outcome written = wbench("list suites --json suites.json");
  CHECK((written.code == kSuccess && written.out.empty()));
  CHECK(read_file("suites.json") == wbench("list suites --json -").out);
  CHECK(wbench("list dtypes --json /no/such/folder/x").code == kRuntimeError);
  CHECK_THAT(wbench("info --help").out, ContainsSubstring("--peaks"));
}

TEST_CASE("every primitive is listed with its family, the folder that it is in") {
  const auto rows = nlohmann::json::parse(wbench("list ops --json -").out);
  CHECK(rows.size() == catalog::primitives().size());
  std::set<std::string> families;
  for (const auto& row : rows) {
    const std::string op = row.at("op"), family = row.at("family");
    families.insert(family);
    INFO(op << " of " << family);
    bool is_there = false;
    for (const auto& file :
         std::filesystem::directory_iterator(WIDE_SOURCE_DIR "/host/" + family)) {
      const std::string path = file.path().string();
      is_there = is_there || (path.ends_with("_spec.cpp") &&
                              read_file(path).find("& " + op + "_spec() {") != std::string::npos);
    }
    CHECK(is_there);
  }
  CHECK((families.contains("norm") && families.contains("conv") && families.size() >= 9));
  for (const auto& row : nlohmann::json::parse(wbench("list models --json -").out))
    CHECK(row.at("family") == "model");
}

TEST_CASE("every strategy is listed with device, kind, state and summary") {
  const auto rows = nlohmann::json::parse(wbench("list strategies --json -").out);
  size_t strategies = 0;
  for (const auto* spec : catalog::primitives()) strategies += spec->strategies.size();
  CHECK(rows.size() == strategies);
  for (const auto& row : rows) {
    for (const char* key : {"op", "strategy", "device", "kind", "verified", "summary"})
      CHECK(!row.at(key).get<std::string>().empty());
  }
}

}  // namespace wide::bench
