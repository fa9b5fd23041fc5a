// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// When "auto" takes what a tuning cache says, on a primitive that is none.
#include "host/core/tuned_choice.hpp"

#include <catch2/catch_test_macros.hpp>
#include <set>

#include "verify/support/comma_locale.hpp"
#include "verify/support/known_devices.hpp"

namespace wide::test {
namespace {

constexpr std::string_view kProblem = "size=3";

struct Chooser {
  std::string operator()(std::string_view name = "auto") const {
    TuningCache cache;
    cache.set(kH200, "play", kProblem, entry);
    const StrategyRequest request{
        "play",        device,
        name,          [&](std::string_view way) { return verified.contains(std::string(way)); },
        member_kernel, {&cache, problem, kernel_hash},
        policy_reason};
    const auto none = [] { return std::string(); };
    const auto wins = [] { return true; };
    const auto cannot = [&] { return reason; };
    const auto takes = [](std::string_view) { return std::string(); };
    const auto refuses = [&](std::string_view policy) {
      return policy == refused_policy ? refusal : std::string();
    };
    const std::vector<StrategyCandidate> candidates{
        {"steady", false, "one launch", none, takes, wins},
        {"odd", false, "", cannot, takes, wins},
        {"vendor", true, "one call", none, refuses, wins},
        {"sequential", true, "one call a member", none, refuses, wins},
        {"sequential", false, "member after member", none, takes, wins}};
    const ChosenCandidate chosen = choose_candidate(request, candidates, {});
    CHECK(chosen.explain.starts_with(std::string(candidates[chosen.index].name) + ": "));
    return chosen.explain + (chosen.policy.empty() ? "" : " [" + chosen.policy + "]");
  }

  TuningEntry entry{"odd", "", 12.34567, 8, "hash"};
  DeviceInfo device = kH200;
  std::string problem{kProblem}, kernel_hash = "hash", member_kernel{}, reason{}, refusal{},
                                 refused_policy{};
  std::set<std::string> verified{"steady"};
  std::function<std::string(std::string_view, std::string_view)> policy_reason{};
};

const std::string kOtherwise = "steady: one launch; ";
const std::string kChanged =
    "its kernels have changed since, and it is not verified on this device";

TEST_CASE("tuned choice: an entry is taken, whatever the table expects") {
  Chooser choose;
  CHECK(choose() == "odd: tuned: 12.35 us on NVIDIA H200, the fastest of 8 candidates");
  choose.entry.is_autos_own = true;
  CHECK(choose() ==
        "odd: tuned: 12.35 us on NVIDIA H200, auto's own choice: no other of 8 candidates was "
        "faster");
  CHECK(choose("steady") == "steady: asked for by name");
}

TEST_CASE("tuned choice: numbers have points, whatever the program's locale") {
  const CommaLocale commas;
  CHECK(Chooser()().starts_with("odd: tuned: 12.35 us on "));
}

TEST_CASE("tuned choice: another problem or device is not in the cache") {
  Chooser choose;
  choose.problem = "size=4";
  CHECK(choose() == kOtherwise + "not in the tuning cache");
  choose = {};
  choose.device.num_multiprocessors -= 1;
  CHECK(choose() == kOtherwise + "not in the tuning cache");
}

TEST_CASE("tuned choice: our kernels need the hash that was measured, or evidence") {
  Chooser choose;
  choose.kernel_hash = "later";
  CHECK(choose() == kOtherwise + "tuned odd not taken: " + kChanged);
  choose.verified.insert("odd");
  CHECK(choose().starts_with("odd: tuned: "));
  choose = {};
  choose.entry.kernel_hash = choose.kernel_hash = "";  // a build that knows none
  CHECK(choose() == kOtherwise + "tuned odd not taken: " + kChanged);
  choose.entry.strategy = "vendor";
  CHECK(choose().starts_with("vendor: tuned: "));
  choose.entry.strategy = "sequential";
  choose.refusal = "no engine";  // for one of its rows
  CHECK(choose().starts_with("sequential: tuned: "));
}

TEST_CASE("tuned choice: a kernel of ours that sequential launches needs them, too") {
  Chooser choose;
  choose.entry.strategy = "sequential";
  choose.member_kernel = "odd";
  CHECK(choose() ==
        "sequential: tuned: 12.35 us on NVIDIA H200, the fastest of 8 candidates; a launch per "
        "member of odd, which is unverified on compute capability 90");
  choose.kernel_hash = "later";
  CHECK(choose() == kOtherwise + "tuned sequential not taken: " + kChanged);
  choose.member_kernel = "steady";
  CHECK(choose().ends_with("; a launch per member of steady"));
}

TEST_CASE("tuned choice: what cannot run is left alone, with the reason") {
  Chooser choose;
  choose.reason = "it cannot";
  CHECK(choose() == kOtherwise + "tuned odd not taken: it cannot");
  choose.entry.strategy = "gone";
  CHECK(choose() == kOtherwise + "tuned gone not taken: this build has no such strategy");
  choose.entry.strategy = "vendor";
  choose.refusal = "no engine";
  CHECK(choose() == kOtherwise + "tuned vendor not taken: no engine");
}

TEST_CASE("tuned choice: policies are the primitive's to judge") {
  Chooser choose;
  choose.entry.policy = "m16";
  CHECK(choose() == kOtherwise + "tuned odd not taken: it has no policies, the entry has m16");
  choose.policy_reason = [](std::string_view strategy, std::string_view policy) {
    return policy == "m16" ? "" : std::string(strategy) + " has no " + std::string(policy);
  };
  CHECK(choose() ==
        "odd: tuned: 12.35 us with m16 on NVIDIA H200, the fastest of 8 candidates [m16]");
  choose.entry.policy = "m17";
  CHECK(choose() == kOtherwise + "tuned odd not taken: odd has no m17");
  // The vendor is asked for the policy, not for any.
  choose.entry.strategy = "vendor";
  choose.entry.policy = "m16";
  choose.refusal = "no longer offered";
  CHECK(choose().ends_with("[m16]"));
  choose.refused_policy = "m16";
  CHECK(choose() == kOtherwise + "tuned vendor not taken: no longer offered");
}

}  // namespace
}  // namespace wide::test
