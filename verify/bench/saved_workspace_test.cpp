// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// --save-workspace: which calls are kept, and that a file alone is enough to compute them again.
#include "bench/document/saved_workspace.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>

#include "bench/cli/cli.hpp"
#include "bench/document/result_json.hpp"
#include "bench/process/exit_code.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/bench/runner_case.hpp"
#include "verify/support/folder.hpp"
#include "wide/error.hpp"
#include "wide/safetensors.hpp"

namespace wide::bench {
namespace {

using Catch::Matchers::ContainsSubstring;
using When = SavingRule::When;

template <class T>
std::vector<T> values_of(const Safetensors& file, const std::string& name) {
  const SafetensorsEntry* entry = file.find(name);
  REQUIRE(entry != nullptr);
  std::vector<T> values(static_cast<size_t>(entry->bytes) / sizeof(T));
  std::memcpy(values.data(), entry->data, values.size() * sizeof(T));
  return values;
}

std::set<std::string> files_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

/// One strategy that is right and one that is wrong.
RunResult run_two(FakePrimitive& fake, const SavingRule& saving, bool is_adversarial = false) {
  const catalog::PrimitiveSpec spec = fake.spec();
  RunPlan plan = fake_plan(spec, short_config());
  plan.verify_only = true;
  plan.config.is_adversarial = is_adversarial;
  plan.saving = saving;
  plan.reproduce_suffix = " --device cpu";
  RunResult result;
  run_plan(plan, result);
  return result;
}

FakePrimitive right_and_wrong() {
  FakePrimitive fake = fake_with({{"right", ""}, {"wrong", ""}});
  fake.strategies[1].factor = 3;
  return fake;
}

const RunnerResult& strategy_of(const RunResult& result, size_t i) {
  return result.cases.at(0).strategies.at(i);
}

TEST_CASE("saving rules are read from words") {
  CHECK(parse_saving_rule("never").when == When::never);
  CHECK(parse_saving_rule("incorrect").when == When::incorrect);
  CHECK(parse_saving_rule("incorrect").folder == "workspace");
  CHECK(parse_saving_rule("always:a:b/c").when == When::always);
  CHECK(parse_saving_rule("always:a:b/c").folder == "a:b/c");
  for (const char* bad : {"", "Always", "never:", "never:x", "incorrect:", ":x", "always "}) {
    INFO(bad);
    CHECK_THROWS_WITH(parse_saving_rule(bad), ContainsSubstring("expected never, incorrect"));
  }
}

TEST_CASE("runs of one command have folders of their own") {
  CHECK(numbered_saving("never", 2) == "never");
  CHECK(numbered_saving("always", 2) == "always:workspace-2");
  CHECK(numbered_saving("incorrect:a:b", 3) == "incorrect:a:b-3");
  const test::TemporaryFolder folder;
  CHECK(wbench("verify -q --op linear --n 2 --batch 2 --d 4 -d cpu --strategy wide --baseline none "
               "--save-workspace always:w")
            .code == kSuccess);
  CHECK(files_in("w").size() == 1);
}

TEST_CASE("what is wrong is saved, and says where") {
  const test::TemporaryFolder folder;
  FakePrimitive fake = right_and_wrong();
  const RunResult result = run_two(fake, {When::incorrect, "w"});
  REQUIRE(files_in("w").size() == 1);
  const std::string path = "w/" + *files_in("w").begin();
  CHECK(path == "w/fake-" + result.cases[0].case_id + "-wrong-before.safetensors");
  CHECK(strategy_of(result, 0).verify.saved.empty());
  const RunnerResult& wrong = strategy_of(result, 1);
  CHECK(wrong.verify.saved == std::vector<std::string>{path});
  CHECK(wrong.reason == wrong.verify.message + "; saved as " + path);

  const Safetensors file = Safetensors::open(path);
  const auto& metadata = file.metadata();
  CHECK(metadata.at("finding") == wrong.verify.message);
  CHECK(metadata.at("strategy") == "wrong");
  CHECK(metadata.at("reproduce").ends_with(" --device cpu"));
  const auto x = values_of<float>(file, "x"), got = values_of<float>(file, "got");
  const auto expected = values_of<double>(file, "expected");
  CHECK(file.find("got")->shape == Shape{3, 1, 4});
  CHECK(file.find("expected")->shape == Shape{3, 4});
  CHECK(values_of<int64_t>(file, "member") == std::vector<int64_t>{0, 1, 2});
  CHECK(values_of<int64_t>(file, "row") == std::vector<int64_t>{0, 0, 0});
  for (size_t i = 0; i < x.size(); ++i) {
    CHECK(got[i] == 3 * x[i]);
    CHECK(expected[i] == 2 * x[i]);
  }
  CHECK(values_of<double>(file, "tolerance") == std::vector<double>(12, 1e-6));
}

TEST_CASE("always: every phase and fill, of baselines too; never: nothing") {
  const test::TemporaryFolder folder;
  FakePrimitive fake = fake_with({{"right", ""}});
  const RunResult result = run_two(fake, {When::always, "w"}, true);
  std::set<std::string> expected;
  for (const char* name : {"right", "loop"}) {
    for (const char* phase : {"before", "whole-numbers", "NaN-and-infinities", "sums-that-cancel",
                              "subnormals", "a-wide-range", "sums-of-one-sign"}) {
      expected.insert("fake-" + result.cases[0].case_id + "-" + name + "-" + phase +
                      ".safetensors");
    }
  }
  CHECK(files_in("w") == expected);
  CHECK(strategy_of(result, 0).verify.saved.size() == 7);
  CHECK(strategy_of(result, 0).reason.empty());
  CHECK(run_two(fake, {When::never, "v"}).cases[0].status == Status::ok);
  CHECK_FALSE(std::filesystem::exists("v"));
}

TEST_CASE("a file that cannot be written does not hide what was found") {
  FakePrimitive fake = right_and_wrong();
  const RunResult result = run_two(fake, {When::always, "/dev/null/x"});
  CHECK(strategy_of(result, 0).status == Status::failed);
  CHECK_THAT(strategy_of(result, 0).reason, ContainsSubstring("cannot write /dev/null/x/fake-"));
  CHECK(strategy_of(result, 1).status == Status::verify_failed);
  CHECK_THAT(strategy_of(result, 1).reason,
             ContainsSubstring("member 2") && ContainsSubstring("; not saved: cannot write"));
  CHECK(strategy_of(result, 1).verify.saved.empty());
}

TEST_CASE("a saved call can be computed again from its file") {
  const test::TemporaryFolder folder;
  const Outcome outcome = wbench(
      "verify -q --op linear --n 3 --batch 2 --d 5 -d cpu --strategy wide --baseline none "
      "--save-workspace always:w");
  REQUIRE(outcome.code == kSuccess);
  const Safetensors file = Safetensors::open("w/" + *files_in("w").begin());
  std::set<std::string> names;
  for (const SafetensorsEntry& entry : file.entries()) names.insert(entry.name);
  CHECK(names == std::set<std::string>{"x", "weight", "bias", "got", "expected", "tolerance",
                                       "member", "row"});
  const auto x = values_of<float>(file, "x"), w = values_of<float>(file, "weight"),
             b = values_of<float>(file, "bias"), got = values_of<float>(file, "got");
  const auto expected = values_of<double>(file, "expected");
  const auto tolerance = values_of<double>(file, "tolerance");
  REQUIRE(expected.size() == 30);
  REQUIRE(got.size() == 30);
  CHECK(file.find("x")->shape == Shape{2, 15});  // [B, N*D]
  for (size_t i = 0; i < expected.size(); ++i) {
    const size_t member = i / 10, row = i / 5 % 2, out = i % 5;
    double y = b[member * 5 + out];
    for (size_t k = 0; k < 5; ++k)
      y += static_cast<double>(x[row * 15 + member * 5 + k]) * w[(member * 5 + out) * 5 + k];
    CHECK(std::fabs(y - expected[i]) < 1e-12);
    CHECK(std::fabs(y - got[i]) <= tolerance[i]);
  }
  const Outcome ragged = wbench(
      "verify -q --op ragged_linear --n 2 --batch 8 --d 4 --spread 75 -d cpu --baseline none "
      "--save-workspace always:g --json g.json");
  const Safetensors members = Safetensors::open("g/" + *files_in("g").begin());
  const int64_t rows = members.find("got.0")->shape[0] + members.find("got.1")->shape[0];
  CHECK(static_cast<double>(rows) == load_result("g.json").cases.at(0).cost.items);
  CHECK(rows < 16);  // those of two of the largest
  const Outcome models = wbench(
      "verify -q --op model:mlp --n 2 --batch 2 -d cpu --strategy compiled --baseline loop "
      "--save-workspace always:m --json m.json");
  INFO(models.out << models.err);
  CHECK(files_in("m").size() == 2);
  CHECK(load_result("m.json").cases.at(0).cost.items == 4);
  for (const std::string& name : files_in("m")) CHECK(name.starts_with("model-mlp-"));
}

}  // namespace
}  // namespace wide::bench
