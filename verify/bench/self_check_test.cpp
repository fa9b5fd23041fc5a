// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `info --self-check`: every check fails on numbers that are wrong, and where nothing can be
// measured; what runs on the CPU, and what is said of a GPU that is not there.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "bench/process/exit_code.hpp"
#include "bench/process/interrupt.hpp"
#include "bench/self_check/report.hpp"
#include "bench/self_check/run.hpp"
#include "host/core/file.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/bench/hand_made_monitor.hpp"
#include "verify/support/folder.hpp"
#include "wide/context.hpp"
#include "wide/error.hpp"

namespace wide::bench {
namespace {

using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST_CASE("every check passes within its limits, and fails outside and without a number") {
  std::set<std::pair<std::string_view, DeviceType>> names;
  for (const Limit& limit : limits()) {
    INFO(limit.name);
    CHECK(names.emplace(limit.name, limit.device).second);
    REQUIRE(limit.least <= limit.most);
    CHECK(judge(limit, "cuda:0", limit.least).status == CheckStatus::passed);
    CHECK(judge(limit, "cuda:0", limit.most).status == CheckStatus::passed);
    CHECK(judge(limit, "cuda:0", limit.least - 1e-3).status == CheckStatus::failed);
    CHECK(judge(limit, "cuda:0", limit.most + 1e-3).status == CheckStatus::failed);
    const SelfCheck none = judge(limit, "cuda:0", kNan);
    CHECK((none.status == CheckStatus::failed && !none.measured));
    CHECK_FALSE(limit.why.empty());
  }
  CHECK_THROWS_AS(limit_of("event_quantum", DeviceType::cpu), Error);
}

TEST_CASE("what a check says of itself") {
  const SelfCheck check = judge(limit_of("event_quantum", DeviceType::cuda), "cuda:1", 32);
  CHECK((check.name == "event_quantum" && check.device == "cuda:1" && check.measured == 32));
  CHECK((check.unit == "ns" && check.expected == "1 to 1000 ns"));
  const Limit& held = limit_of("blocker_holds", DeviceType::cuda);
  CHECK(judge(held, "cuda:0", 1).expected == "0 early ends");
  const SelfCheck lost = broken(held, "cuda:0", "no device");
  CHECK((lost.status == CheckStatus::failed && lost.text == "no device" && !lost.measured));
  CHECK(skipped(held, "cuda", "none here").status == CheckStatus::skipped);
}

TEST_CASE("numbers that are made of others") {
  CHECK(disagreement_pct(101, 100) == Approx(1));
  CHECK(disagreement_pct(98, 100) == Approx(2));
  CHECK(growth(100, 128, 800, 1024) == Approx(1));
  CHECK(growth(100, 128, 100, 1024) == Approx(0.125));  // launches that were left out
  CHECK(backward_steps(std::vector<double>{1, 1, 2, 1.5, 3, 2}) == 2);
  const std::vector<double> times{0, 10, 20, 30, 40, 50, 60, 70};
  CHECK(period_of(times, std::vector<double>{5, 5, 6, 6, 7, 7, 8, 8}) == Approx(20));
  CHECK(std::isnan(period_of(times, std::vector<double>(8, 5))));
  CHECK(std::isnan(period_of(times, std::vector<double>{5, 6, 6, 6, 6, 6, 6, 7})));
}

/// Baselines beside themselves, of these ratios.
CaseResult twins_of(const std::vector<double>& ratios, int64_t pairs = 12) {
  CaseResult c;
  for (const double ratio : ratios) {
    c.noise_floors.push_back(
        {Baseline::loop, Regime::cpu, pairs, ratio, ratio - 1e-3, ratio + 1e-3, 0});
  }
  return c;
}

TEST_CASE("baselines that differ from themselves are counted, and more than 5 % of them fail") {
  const Limit& limit = limit_of("aa", DeviceType::cuda);
  const auto outcome = [&](const std::vector<CaseResult>& cases) {
    return judge_aa(limit, "cuda:0", aa_cells(cases));
  };
  const CaseResult same = twins_of(std::vector<double>(20, 1.001));
  CHECK(outcome({same}).status == CheckStatus::passed);
  CHECK(outcome({same}).expected == "0 to 1 told apart, of 20");
  CHECK(outcome({twins_of(std::vector<double>(19, 1)), twins_of({1.2})}).status ==
        CheckStatus::passed);
  const SelfCheck biased = outcome({twins_of(std::vector<double>(18, 1)), twins_of({1.2, 0.8})});
  CHECK((biased.status == CheckStatus::failed && biased.measured == 2));
  CHECK(outcome({}).status == CheckStatus::failed);
  // Too few pairs for a verdict are none.
  CHECK(aa_cells(std::vector<CaseResult>{twins_of({1.2}, 5)}).cells == 0);
}

SelfCheck found(const std::vector<SelfCheck>& checks, const std::string& name) {
  for (const SelfCheck& check : checks) {
    if (check.name == name) return check;
  }
  FAIL("no check " << name);
  return {};
}

std::vector<SelfCheck> nvml_checks(std::unique_ptr<HandMadeMonitor> monitor) {
  SelfChecks checks(DeviceType::cuda, "cuda:0");
  const auto load = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  check_nvml(checks, {std::move(monitor), ""}, load);
  return checks.in_order();
}

TEST_CASE("a device's clocks, power and energy are checked under load") {
  auto monitor = std::make_unique<HandMadeMonitor>();
  monitor->readings = {clock_of(1980)};
  const auto good = nvml_checks(std::move(monitor));
  REQUIRE(good.size() == 4);
  for (const SelfCheck& check : good) {
    INFO(check.name);
    CHECK(check.status == CheckStatus::passed);
  }
  CHECK(found(good, "nvml_clock").measured == 1980);
  CHECK(*found(good, "energy_period").measured >= 2);
  CHECK(*found(good, "clocks_settle").measured > 0.15);
}

TEST_CASE("a counter of energy may step every 200 ms, and is watched for long enough to see it") {
  struct Slow final : HandMadeMonitor {
    std::optional<double> total_energy_j() override {
      const auto now = std::chrono::steady_clock::now();
      if (!first) first = now;
      return std::floor((now - *first) / std::chrono::milliseconds(190));
    }
    std::optional<std::chrono::steady_clock::time_point> first;
  };
  auto monitor = std::make_unique<Slow>();
  monitor->readings = {clock_of(1980)};
  const auto slow = nvml_checks(std::move(monitor));
  CHECK(found(slow, "energy_period").measured.value_or(0) > 150);
  const Limit& limit = limit_of("energy_period", DeviceType::cuda);
  CHECK(judge(limit, "cuda:0", 200).status == CheckStatus::passed);
  CHECK(judge(limit, "cuda:0", 201).status == CheckStatus::failed);
}

TEST_CASE("clocks that are not known fail, energy that is not counted is skipped") {
  SelfChecks checks(DeviceType::cuda, "cuda:0");
  auto monitor = std::make_unique<HandMadeMonitor>();
  monitor->readings = {clock_of(1980)};
  monitor->readings[0].power_w.reset();
  monitor->counts = false;
  const auto outcomes = nvml_checks(std::move(monitor));
  CHECK(found(outcomes, "nvml_power").status == CheckStatus::failed);
  CHECK(found(outcomes, "energy_period").status == CheckStatus::skipped);
  check_nvml(checks, {nullptr, "no driver here"}, [] {});
  REQUIRE(checks.in_order().size() == 4);
  for (const SelfCheck& check : checks.in_order())
    CHECK((check.status == CheckStatus::skipped && check.text == "no driver here"));
}

TEST_CASE("a check that throws has failed, and what was not run is skipped") {
  SelfChecks checks(DeviceType::cuda, "cuda:0");
  checks.measure("event_quantum",
                 []() -> double { throw Error(ErrorCode::cuda, "the device is gone"); });
  checks.skip_rest("nobody asked");
  const auto outcomes = checks.in_order();
  CHECK(outcomes.size() == skip_cuda("").size());
  CHECK(found(outcomes, "event_quantum").status == CheckStatus::failed);
  CHECK(found(outcomes, "event_quantum").text == "the device is gone");
  CHECK(found(outcomes, "aa").status == CheckStatus::skipped);
  CHECK(has_failed(outcomes));
  CHECK_FALSE(has_failed(skip_cuda("none")));
}

TEST_CASE("an interrupt skips the rest, and each check is told when it has ended") {
  set_interrupted(false);
  std::vector<size_t> ended;
  const auto interrupt_first = [&](const std::vector<SelfCheck>& checks) {
    const auto is_to_come = [](const SelfCheck& check) {
      return check.text == "the process has ended before";
    };
    ended.push_back(checks.size() -
                    static_cast<size_t>(std::count_if(checks.begin(), checks.end(), is_to_come)));
    set_interrupted(true);
  };
  const auto checks = check_device(Context::cpu(), interrupt_first);
  CHECK(ended == std::vector<size_t>{1, 2, 3, 4, 5});
  REQUIRE(checks.size() == ended.size());
  CHECK(found(checks, "clock_monotonic").status == CheckStatus::passed);
  for (const char* name : {"clock_quantum", "clock_floor", "empty_launch", "aa"}) {
    INFO(name);
    CHECK(found(checks, name).status == CheckStatus::skipped);
    CHECK(found(checks, name).text == "interrupted");
  }
  SelfChecks meanwhile(DeviceType::cuda, "cuda:0");
  set_interrupted(false);
  meanwhile.measure("event_quantum", [] {
    set_interrupted(true);
    return 32.0;
  });
  CHECK(meanwhile.in_order().front().text == "interrupted");
  CHECK(check_device(Context::cpu()).front().text == "interrupted");
  set_interrupted(false);
}

TEST_CASE("on the CPU the host's clock is checked, and what a GPU alone has is skipped") {
  const test::TemporaryFolder folder;
  const Outcome o = wbench("--no-gpu info --self-check --json check.json --json -");
  const nlohmann::json document = nlohmann::json::parse(o.out);
  CHECK(read_file("check.json") == o.out);
  const nlohmann::json& found = document["self_check"];
  CHECK(o.code == (found["failed"] == 0 ? kSuccess : kEnvironment));
  CHECK(found["checks"].size() == limits().size());
  for (const nlohmann::json& check : found["checks"]) {
    INFO(check.dump());
    if (check["device"] == "cuda") {
      CHECK(check["status"] == "skipped");
      CHECK_THAT(check["text"], ContainsSubstring("--no-gpu"));
    } else {
      CHECK(check["device"] == "cpu");
      // Two cores that others use, too, may tell a baseline from itself.
      if (check["name"] != "aa") CHECK(check["status"] == "passed");
      CHECK(check["measured"].is_number());
    }
  }
}

TEST_CASE("a signal ends it with what was checked, which is written before the end") {
  const test::TemporaryFolder folder;
  std::thread other([] {
    for (int i = 0; i < 60'000 && !std::filesystem::exists("check.json"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::raise(SIGINT);
  });
  const Outcome o = wbench("--no-gpu info --self-check -d cpu --json check.json");
  other.join();
  const nlohmann::json found = nlohmann::json::parse(read_file("check.json"))["self_check"];
  CHECK(o.code == (found["failed"] == 0 ? kInterrupted : kEnvironment));
  REQUIRE(found["checks"].size() == 5);
  CHECK(found["checks"][0]["measured"].is_number());
  CHECK(found["checks"][4]["name"] == "aa");
  CHECK(found["checks"][4]["text"] == "interrupted");
}

TEST_CASE("a device that cannot be had is no self-check") {
  CHECK(wbench("info --self-check -d gpu").code == kUsage);
  CHECK(wbench("--no-gpu info --self-check -d cuda").code == kUsage);
  if (query_cuda().num_devices > 0) return;
  CHECK(wbench("info --self-check -d cuda").code == kEnvironment);
}

}  // namespace
}  // namespace wide::bench
