// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Every call to the CUDA runtime fails once, in every public entry point: what comes out is a
// wide::Error of the right code, nothing leaks, and the next call gives the right result. Needs
// the simulated runtime, which can be told to fail.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "verify/catalog/fault_scenarios.hpp"
#include "verify/support/cases.hpp"
#include "verify/support/simulation.hpp"

namespace wide::test {
namespace {

constexpr int kOutOfMemory = 2;      // cudaErrorMemoryAllocation
constexpr int kLaunchFailure = 719;  // cudaErrorLaunchFailure: sticky
constexpr int kIllegalAddress = 700;

/// What a run came to.
struct Outcome {
  bool was_reached = true;  ///< there was a k-th call, where that was to fail
  bool has_thrown = false;
  ErrorCode code{};
  std::string message;
  Bytes result;
};

Outcome attempt(const Scenario& scenario) {
  Outcome outcome;
  try {
    outcome.result = scenario.run();
  } catch (const Error& thrown) {
    outcome.has_thrown = true;
    outcome.code = thrown.code();
    outcome.message = thrown.what();
  }
  return outcome;
}

Outcome run_failing(const Scenario& scenario, int64_t k, int error, bool is_sticky) {
  Simulation::fail_at(k, error, is_sticky);
  Outcome outcome = attempt(scenario);
  outcome.was_reached = !Simulation::failed_call().empty();
  Simulation::fail_at(0, 0, false);
  return outcome;
}

}  // namespace

TEST_CASE("no primitive is without a scenario") {
  for (const catalog::PrimitiveSpec* spec : catalog::primitives()) {
    INFO(spec->name);
    CHECK(std::ranges::any_of(scenarios(), [&](const Scenario& scenario) {
      return (std::string(scenario.name) + " ").starts_with(plan_name(*spec) + " ");
    }));
  }
}

TEST_CASE("every runtime call may run out of memory: an error, no leak, and the next call works") {
  require_simulation();
  for (const Scenario& scenario : scenarios()) {
    const Bytes expected = scenario.run();
    int64_t num_errors = 0, k = 1;
    for (;; ++k) {
      INFO(scenario.name << ", call " << k);
      const Outcome outcome = run_failing(scenario, k, kOutOfMemory, false);
      if (!outcome.was_reached) break;
      INFO(Simulation::failed_call() << " failed: " << outcome.message);
      num_errors += outcome.has_thrown ? 1 : 0;
      // An error may be survived (a handle that is optional); a wrong result may not.
      if (!outcome.has_thrown) CHECK(outcome.result == expected);
      if (outcome.has_thrown) {
        CHECK((outcome.code == ErrorCode::out_of_memory || outcome.code == ErrorCode::cuda));
        CHECK(!outcome.message.empty());
      }
      CHECK(Simulation::leaks() == "");
      REQUIRE(scenario.run() == expected);
    }
    CHECK(num_errors >= 3);
    CHECK(k > 10);
  }
  CHECK(Simulation::findings() == "");
}

TEST_CASE("a sticky error is an error of every call after it, until the device is reset") {
  require_simulation();
  for (const Scenario& scenario : scenarios()) {
    const Bytes expected = scenario.run();
    for (const int error : {kLaunchFailure, kIllegalAddress}) {
      int64_t num_errors = 0, k = 1;
      for (;; ++k) {
        INFO(scenario.name << ", call " << k << ", error " << error);
        const Outcome outcome = run_failing(scenario, k, error, true);
        if (!outcome.was_reached) break;
        INFO(outcome.message);
        num_errors += outcome.has_thrown ? 1 : 0;
        // What only releases memory has nobody to tell.
        if (!outcome.has_thrown) CHECK(outcome.result == expected);
        if (outcome.has_thrown) CHECK(outcome.code == ErrorCode::cuda);
        const Outcome next = attempt(scenario);
        INFO("and then: " << next.message);
        CHECK((next.has_thrown && next.code == ErrorCode::cuda));
        Simulation::reset_device();
        Simulation::clear_findings();
        REQUIRE(scenario.run() == expected);
      }
      CHECK(num_errors >= 3);
      CHECK(k > 10);
    }
  }
}

}  // namespace wide::test
