// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Every way to misuse routed_mlp, with the message that it gets.
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <limits>

#include "host/fused/routed_mlp_problem.hpp"
#include "verify/fused/routed_mlp_case.hpp"
#include "verify/linear/routed_refusals.hpp"

namespace wide::test {
namespace {

using P = RoutedMlpProblem;
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST_CASE("routed_mlp: impossible problems") {
  const P good{.num_members = 2,
               .num_rows = 6,
               .widths = {3, 5, 4},
               .gathers = true,
               .choices = 2,
               .has_bias = true};
  const Refusal<P> refusals[] = {
      {[](P& p) { p.widths = {3}; },
       "routed_mlp: widths has 1 entry, expected in and out at least: 2"},
      {[](P& p) { p.widths[1] = 0; }, "routed_mlp: widths[1] is 0, expected >= 1"},
      {[](P& p) { p.y_row_stride = 3; },
       "routed_linear: y_row_stride is 3, expected >= out_features = 4"},
      {[](P& p) { p.weights_member_stride = 4; },
       "routed_mlp: weights has member stride 4, expected a multiple of 4, at least 124"},
      {[](P& p) { p.weights_member_stride = 126; },
       "routed_mlp: weights has member stride 126, expected a multiple of 4, at least 124"},
      {[](P& p) { p.weights_member_stride = kMost / 4 * 4; },
       "routed_mlp: weights of 2 members with member stride 9223372036854775804, expected an "
       "extent that fits in 64 bits"},
      {[](P& p) { p.x_row_stride = kMost / 4; },
       "routed_linear: x of [1, 3, 3] with strides {row 2305843009213693951, member 0}, expected "
       "an extent that fits in 64 bits"},
  };
  const auto complete = [](const P& p) { (void)complete_routed_mlp_problem(p); };
  check_refusals(good, refusals, complete);
  check_refused_rows<P>("routed_mlp: ", good, complete);
}

TEST_CASE("routed_mlp: strides are packed where none is given, or nothing steps along them") {
  P p{.num_members = 2, .num_rows = 6, .widths = {3, 5, 4}};
  p.gathers = true, p.choices = 6;
  p.x_row_stride = 99;  // one row
  const P complete = complete_routed_mlp_problem(p);
  CHECK((complete.x_row_stride == 3 && complete.y_row_stride == 4));
  CHECK(complete.weights_member_stride == mlp_member_elements(networks_of(p)));
  CHECK(complete_routed_mlp_problem(complete) == complete);
  p.num_members = 1, p.weights_member_stride = 4000;
  CHECK(complete_routed_mlp_problem(p).weights_member_stride == complete.weights_member_stride);
}

TEST_CASE("routed_mlp: operands that do not fit each other, or the plan") {
  TestDevice bench(Context::cpu());
  const Routing routing = routing_of_counts({2, 3}, 1);
  P problem = routed_mlp_problem(routing, {3, 5, 4});
  problem.gathers = true, problem.choices = 2, problem.has_gates = true;
  const auto plan = make_routed_mlp_plan(bench.context(), problem);
  PlacedRoutedMlp placed(bench, problem, routing);
  const RoutedMlpArguments good = placed.arguments();
  const auto refused = [&](const std::function<void(RoutedMlpArguments&)>& spoil) {
    RoutedMlpArguments bad = good;
    spoil(bad);
    return refusal_of([&] { plan.run(bad, bench.execution(plan.workspace_bytes())); });
  };
  using A = RoutedMlpArguments;
  SECTION("of any routed rows") {
    RefusedOperands<A>("routed_mlp: ", refused).check();
  }
  SECTION("weights") {
    CHECK(refused([](A& a) { a.weights = {}; }) ==
          "routed_mlp: weights is absent, expected [num_members, elements] with elements = 124");
    CHECK(refused([](A& a) { a.weights.shape[1] = 123; }) ==
          "routed_mlp: weights is [2, 123], expected [num_members, elements] of widths 3-5-4 = "
          "[2, 124]");
    CHECK(refused([](A& a) { a.weights.dtype = Dtype::fp16; }) ==
          "routed_mlp: weights is fp16, expected dtype = fp32");
    CHECK(refused([](A& a) { a.weights.strides[0] = 0; }) ==
          "routed_mlp: weights has strides [0, 1], expected members of their own: a first stride "
          "above 0");
    CHECK(refused([](A& a) {
            a.weights.data = static_cast<const float*>(a.weights.data) + 1;
          }).find("bytes, expected 16") != std::string::npos);
  }
  SECTION("no workspace") {
    CHECK(refusal_of([&] { plan.run(good, {Stream::cpu()}); }).find("workspace") !=
          std::string::npos);
  }
}

TEST_CASE("routed_mlp: strategies, policies and counts of members") {
  const Context context = Context::cpu();
  const P problem = routed_mlp_problem(routing_of_counts({2, 3}), {3, 5, 4});
  const auto make = [&](const PlanOptions& options) {
    return make_routed_mlp_plan(context, problem, options);
  };
  CHECK(refusal_of([&] { make({.strategy = "wid"}); }) ==
        "routed_mlp: strategy is \"wid\", did you mean wide?");
  CHECK_THROWS_AS(make({.strategy = "wide", .policy = "m16n64"}), Error);
  CHECK(make({.strategy = "sequential"}).explain() ==
        "sequential: asked for by name; routed_linear by sequential");
  const auto plan = make({});
  CHECK(plan.strategy() == "wide");
  Tensor weights(context, Dtype::fp32, {2, 124});
  std::vector<MlpMember> members(1);
  CHECK(refusal_of([&] { plan.prepare_weights(members, weights, Stream::cpu()); }) ==
        "routed_mlp: members has 1 entry, expected num_members = 2");
  members.resize(2);
  CHECK(refusal_of([&] { plan.prepare_weights(members, weights, Stream::cpu()); }) ==
        "routed_mlp: layers of member 0 has 0 entries, expected 2: widths is 3-5-4");
  CHECK(refusal_of([&] { plan.restore_weights(weights, {}, Stream::cpu()); }) ==
        "routed_mlp: members has 0 entries, expected num_members = 2");
}

}  // namespace
}  // namespace wide::test
