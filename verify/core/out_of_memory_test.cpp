// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Every allocation of a call fails once: the call says so, and leaves what it was given as it was.
// What changes members is in model_out_of_memory_test.
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <string>
#include <vector>

#include "verify/support/allocations.hpp"
#include "wide/graph.hpp"
#include "wide/model_plan.hpp"
#include "wide/models.hpp"

using namespace wide;
using test::AllocationFailure;
using test::runs_out;

namespace {

/// Until no allocation is left to fail: then the call succeeds.
void check(const std::function<void()>& call) {
  for (int64_t k = 1;; ++k) {
    CAPTURE(k);
    bool has_failed = false, was_reached = false;
    {
      const AllocationFailure failure(k);
      has_failed = runs_out(call);
      was_reached = failure.was_reached();
    }
    // A sort does without its buffer.
    REQUIRE((was_reached || !has_failed));
    if (was_reached) continue;
    CHECK(k > 1);
    return;
  }
}

}  // namespace

TEST_CASE("out of memory: what a builder declares is declared in full, or not at all") {
  using Declare = std::function<void(GraphBuilder&)>;
  const std::string name = "a name that no string has room for by itself";
  const std::vector<Declare> calls{
      [&](GraphBuilder& g) {
        g.input(name, {kBatch, 4});
      },
      [&](GraphBuilder& g) {
        g.shared_input(name, {kBatch, 4});
      },
      [&](GraphBuilder& g) { g.parameter(name, {4}); },
  };
  for (const Declare& declare : calls) {
    for (int64_t k = 1;; ++k) {
      CAPTURE(k);
      GraphBuilder g("graph");
      bool has_failed = false;
      {
        const AllocationFailure failure(k);
        has_failed = runs_out([&] { declare(g); });
      }
      if (!has_failed) break;
      CHECK(g.graph().num_values() == 0);
      declare(g);
      CHECK(g.graph().num_values() == 1);
      CHECK(g.graph().inputs().size() + g.graph().parameters().size() == 1);
    }
  }
}

TEST_CASE("out of memory: plans, those that copy values included") {
  const Context cpu = Context::cpu({.num_threads = 1, .allocator = nullptr});
  const Graph agent = make_named_model("agent");
  const ModelPlan plan = make_model_plan(cpu, agent, {.num_members = 2, .batch = 3});
  CHECK(plan.explain().find("copies") != std::string::npos);
  check([&] { make_model_plan(cpu, agent, {.num_members = 2, .batch = 3}); });
}
