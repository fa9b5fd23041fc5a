// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The choice of a strategy from a table, on a primitive that is none.
#include "host/core/strategy_choice.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <set>
#include <string>
#include <vector>

#include "verify/support/error_of.hpp"
#include "verify/support/known_devices.hpp"
#include "wide/error.hpp"

namespace wide::test {
namespace {

using Catch::Matchers::Message;

enum class Way : uint8_t { sequential, fast, steady, vendor, odd, wide };

std::string_view strategy_name(Way way) {
  static constexpr std::string_view kNames[] = {"sequential", "fast", "steady",
                                                "vendor",     "odd",  "wide"};
  return kNames[static_cast<size_t>(way)];
}

/// What the ways are told of.
struct Work {
  bool is_small = false;
  std::set<Way> impossible{};
};

bool is_small(const Work& work, const DeviceInfo&) {
  return work.is_small;
}
bool never(const Work&, const DeviceInfo&) {
  return false;
}

constexpr StrategyRow<Way, Work> kWays[] = {
    {Way::fast, DeviceType::cuda, false, "it is small", is_small},
    {Way::steady, DeviceType::cuda, false, "one launch"},
    {Way::fast, DeviceType::cuda, false, "it is slow, and there", never},
    {Way::vendor, DeviceType::cuda, true, "one call"},
    {Way::sequential, DeviceType::cuda, false, "member after member"},
    {Way::odd, DeviceType::cuda},
    {Way::wide, DeviceType::cpu, false, "all threads"},
    {Way::sequential, DeviceType::cpu, false, "member after member"},
};

std::string why_not(Way way, const Work& work, const DeviceInfo&) {
  return work.impossible.contains(way) ? "it cannot" : "";
}

struct Chooser {
  StrategyChoice<Way> operator()(std::string_view name, const Work& work = {}) const {
    const StrategyRequest request{
        "play", device, name,
        [&](std::string_view way) { return verified.contains(std::string(way)); }, member_kernel};
    return choose_strategy<Way, Work>(request, kWays, work, why_not,
                                      [&](Way, std::string_view policy) {
                                        CHECK(policy.empty());
                                        ++asked;
                                        return refusal;
                                      });
  }

  DeviceInfo device = kH200;
  std::set<std::string> verified{};
  std::string member_kernel{}, refusal{};
  mutable int asked = 0;
};

}  // namespace

TEST_CASE("explanations tell once what all parts have, and what was told") {
  using Names = std::vector<std::string>;
  CHECK(part_strategies_text({}) == "");
  CHECK(part_strategies_text(Names{"wide"}) == "wide");
  CHECK(part_strategies_text(Names{"wide", "wide", "wide"}) == "wide");
  CHECK(part_strategies_text(Names{"simt", "gemv", "simt"}) == "simt, gemv, simt");
  CHECK(unless_told("sequential: asked for by name", "it is odd") == ": it is odd");
  CHECK(unless_told("sequential: slower; cudnn: it is odd", "it is odd") == "");
}

TEST_CASE("strategy choice: by name") {
  Chooser choose;
  CHECK(choose("odd").explain == "odd: asked for by name; unverified on compute capability 90");
  choose.verified = {"odd"};
  CHECK(choose("odd").strategy == Way::odd);
  CHECK(choose("odd").explain == "odd: asked for by name");
  CHECK(choose("vendor").explain == "vendor: asked for by name");
  CHECK(choose.asked == 0);
  CHECK(choose("sequential").explain == "sequential: asked for by name");
  choose.member_kernel = "fast";
  CHECK(choose("sequential").explain ==
        "sequential: asked for by name; a launch per member of fast, which is unverified on "
        "compute capability 90");
  CHECK_THROWS_MATCHES(choose("odd", {.impossible = {Way::odd}}), Error,
                       Message("play: strategy odd cannot run this problem: it cannot"));
  CHECK(test::error_of([&] { choose("wide"); }, ErrorCode::unsupported) ==
        "play: strategy is \"wide\", which runs on the CPU only, expected one of auto, "
        "auto_unverified, fast, steady, vendor, sequential, odd");
  CHECK(test::error_of([&] { choose("zzzzz"); }, ErrorCode::invalid_argument) ==
        "play: strategy is \"zzzzz\", expected one of auto, auto_unverified, fast, steady, vendor, "
        "sequential, odd");
  CHECK_THROWS_MATCHES(choose("vendr"), Error,
                       Message("play: strategy is \"vendr\", did you mean vendor?"));
}

TEST_CASE("strategy choice: auto takes the first that runs, is proved and is expected to win") {
  Chooser choose;
  choose.verified = {"fast", "steady", "odd"};
  CHECK(choose("auto", {.is_small = true}).explain == "fast: it is small");
  CHECK(choose("auto").explain == "steady: one launch");
  choose.verified = {"fast", "odd"};
  CHECK(choose("auto").explain == "vendor: one call; steady: unverified on compute capability 90");
  CHECK(choose.asked == 1);
  choose.verified = {};
  CHECK(choose("auto").explain ==
        "vendor: one call; steady: unverified on compute capability 90");  // fast would not win
  CHECK(choose("auto", {.is_small = true}).explain ==
        "vendor: one call; fast, steady: unverified on compute capability 90");
  choose.refusal = "no engine";
  CHECK(choose("auto", {.impossible = {Way::steady}}).explain ==
        "sequential: member after member; steady: it cannot; vendor: no engine");
}

TEST_CASE("strategy choice: auto takes what is slow for want of another, and odd ones never") {
  Chooser choose;
  choose.verified = {"fast", "odd"};
  Work work{.impossible = {Way::steady, Way::vendor, Way::sequential}};
  CHECK(choose("auto", work).explain ==
        "fast: nothing that is expected to be faster can run it; steady, vendor, sequential: it "
        "cannot");
  work.impossible.insert(Way::fast);
  CHECK_THROWS_MATCHES(
      choose("auto", work), Error,
      Message("play: no strategy for \"auto\"; fast, steady, vendor, sequential: it cannot"));
  choose.verified = {};
  work.impossible.erase(Way::fast);
  CHECK_THROWS_MATCHES(
      choose("auto", work), Error,
      Message("play: no strategy for \"auto\"; fast: unverified on compute capability 90; steady, "
              "vendor, sequential: it cannot; ask for an unverified one by name, or for "
              "\"auto_unverified\""));
}

TEST_CASE(
    "strategy choice: auto_unverified chooses as if all were verified, and says what is not") {
  Chooser choose;
  CHECK(choose("auto_unverified").explain ==
        "steady: one launch, unverified on compute capability 90");
  CHECK(choose("auto_unverified", {.is_small = true}).strategy == Way::fast);
  const Work work{.impossible = {Way::steady, Way::vendor, Way::sequential}};
  CHECK(choose("auto_unverified", work).explain ==
        "fast: nothing that is expected to be faster can run it, unverified on compute capability "
        "90; steady, vendor, sequential: it cannot");
  choose.verified = {"steady"};
  CHECK(choose("auto_unverified").explain == choose("auto").explain);
  CHECK(choose("auto_unverified", {.impossible = {Way::steady}}).explain ==
        "vendor: one call; steady: it cannot");
  choose.device = DeviceInfo{};
  CHECK(choose("auto_unverified").explain == "wide: all threads");
}

TEST_CASE("strategy choice: sequential says which kernel of ours it launches") {
  Chooser choose;
  choose.member_kernel = "steady";
  const Work work{.impossible = {Way::fast, Way::vendor}};
  CHECK(choose("auto", work).explain ==
        "sequential: a launch per member of steady, which is unverified on compute capability 90; "
        "no vendor's library can run it; vendor: it cannot");
  choose.device = DeviceInfo{};
  CHECK(choose("auto", work).explain == "wide: all threads");
  CHECK(choose("sequential", work).explain == "sequential: asked for by name");
}

}  // namespace wide::test
