// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "wide/plan.hpp"

#include <catch2/catch_test_macros.hpp>
#include <optional>
#include <string>
#include <utility>

#include "wide/linear.hpp"
#include "wide/softmax.hpp"

using namespace wide;

namespace {

/// What all plans say of themselves, whichever primitive's they are.
template <class Problem>
std::string text_of(const PrimitivePlan<Problem>& plan) {
  return std::to_string(plan.problem().num_members) + " members by " +
         std::string(plan.strategy()) + ", policy \"" + std::string(plan.policy()) + "\", " +
         std::to_string(plan.workspace_bytes()) + " bytes" +
         (plan.vendor_calls().any() ? ", by a vendor" : "") + ": " + plan.explain();
}

}  // namespace

TEST_CASE("plan: every primitive's says the same of itself") {
  const Context cpu = Context::cpu();
  CHECK(text_of(make_softmax_plan(cpu, {.num_members = 3, .rows = 2, .features = 5})) ==
        "3 members by wide, policy \"\", 0 bytes: wide: one pass over all members keeps "
        "every thread busy");
  CHECK(text_of(make_linear_plan(
            cpu, {.num_members = 2, .batch = 1, .in_features = 4, .out_features = 4},
            {.strategy = "sequential"})) ==
        "2 members by sequential, policy \"\", 0 bytes: sequential: asked for by name");
}

static_assert(!VendorCalls{}.any() && VendorCalls{.cublas = true}.any() &&
              VendorCalls{.cudnn = true}.any());

TEST_CASE("plan: copies share what they say, and one that was moved from takes another") {
  const Context cpu = Context::cpu();
  std::optional<SoftmaxPlan> plan(
      make_softmax_plan(cpu, {.num_members = 3, .rows = 2, .features = 5}));
  SoftmaxPlan copy = *plan;
  CHECK(&copy.problem() == &plan->problem());
  plan.reset();
  CHECK(copy.problem().x == RowStrides{.row = 15, .member = 5});

  const SoftmaxPlan moved = std::move(copy);
  CHECK(moved.problem().num_members == 3);
  copy = moved;
  CHECK(&copy.problem() == &moved.problem());
}
