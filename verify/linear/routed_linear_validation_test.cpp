// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Every way to misuse routed_linear, with the message that it gets.
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <limits>

#include "host/linear/routed_linear_problem.hpp"
#include "verify/linear/routed_linear_case.hpp"
#include "verify/linear/routed_refusals.hpp"

namespace wide::test {
namespace {

using P = RoutedLinearProblem;
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST_CASE("routed_linear: impossible problems") {
  const P good{.num_members = 2,
               .num_rows = 6,
               .in_features = 3,
               .out_features = 4,
               .gathers = true,
               .choices = 2,
               .epilogue = {.has_bias = true,
                            .scale = OutputScale::per_output,
                            .residual = Residual::before_activation}};
  const Refusal<P> refusals[] = {
      {[](P& p) { p.in_features = -1; }, "routed_linear: in_features is -1, expected >= 0"},
      {[](P& p) { p.out_features = -1; }, "routed_linear: out_features is -1, expected >= 0"},
      {[](P& p) { p.weight_format = static_cast<WeightFormat>(9); },
       "routed_linear: weight_format is enumerator 9, expected one in [0, 5]"},
      {[](P& p) { p.weight_format = WeightFormat::int4, p.group_size = 32; },
       "routed_linear: group_size is 32, expected 64 or 128"},
      {[](P& p) { p.weight_format = WeightFormat::int4, p.weight.member = 552; },
       "routed_linear: weight has member stride 552 bytes, expected a multiple of 16, at least "
       "544"},
      {[](P& p) { p.weight_format = WeightFormat::int4, p.weight.member = kMost - 15; },
       "routed_linear: weight of [2, 1, 544] with strides {row 544, member 9223372036854775792}, "
       "expected an extent that fits in 64 bits"},
      {[](P& p) { p.epilogue.alpha = std::numeric_limits<float>::infinity(); },
       "routed_linear: alpha is inf, expected a finite factor"},
      {[](P& p) { p.residual_row_stride = -1; },
       "routed_linear: residual_row_stride is -1, expected >= 0"},
      {[](P& p) { p.weight.row = -1; }, "routed_linear: weight.row is -1, expected >= 0"},
      {[](P& p) { p.weight.member = -1; }, "routed_linear: weight.member is -1, expected >= 0"},
      {[](P& p) { p.bias_member_stride = -1; },
       "routed_linear: bias_member_stride is -1, expected >= 0"},
      {[](P& p) { p.scale_member_stride = -1; },
       "routed_linear: scale_member_stride is -1, expected >= 0"},
      {[](P& p) { p.y_row_stride = 3; },
       "routed_linear: y_row_stride is 3, expected >= out_features = 4"},
      {[](P& p) { p.x_row_stride = kMost / 4; },
       "routed_linear: x of [1, 3, 3] with strides {row 2305843009213693951, member 0}, expected "
       "an extent that fits in 64 bits"},
      {[](P& p) { p.weight.member = kMost / 2; },
       "routed_linear: weight of [2, 4, 3] with strides {row 0, member 4611686018427387903}, "
       "expected an extent that fits in 64 bits"},
      {[](P& p) { p.bias_member_stride = kMost / 2; },
       "routed_linear: bias of [2, 1, 4] with strides {row 0, member 4611686018427387903}, "
       "expected an extent that fits in 64 bits"},
      {[](P& p) { p.scale_member_stride = kMost; },
       "routed_linear: scale of [2, 1, 4] with strides {row 0, member 9223372036854775807}, "
       "expected an extent that fits in 64 bits"},
      {[](P& p) { p.y_row_stride = kMost / 4; },
       "routed_linear: y of [1, 6, 4] with strides {row 2305843009213693951, member 0}, expected "
       "an extent that fits in 64 bits"},
      {[](P& p) { p.residual_row_stride = kMost / 4; },
       "routed_linear: residual of [1, 6, 4] with strides {row 2305843009213693951, member 0}, "
       "expected an extent that fits in 64 bits"},
  };
  const auto complete = [](const P& p) { (void)complete_routed_linear_problem(p); };
  check_refusals(good, refusals, complete);
  check_refused_rows<P>("routed_linear: ", good, complete);
}

TEST_CASE("routed_linear: strides are packed where none is given, or nothing steps along them") {
  P p{.num_members = 2, .num_rows = 6, .in_features = 3, .out_features = 4};
  p.gathers = true, p.choices = 6;
  p.x_row_stride = 99;  // one row
  const P complete = complete_routed_linear_problem(p);
  CHECK((complete.x_row_stride == 3 && complete.y_row_stride == 4));
  CHECK((complete.residual_row_stride == 0 && complete.weight == RowStrides{3, 12}));
  CHECK((complete.bias_member_stride == 0 && complete.scale_member_stride == 0));
  CHECK(complete_routed_linear_problem(complete) == complete);
  p.epilogue = {
      .has_bias = true, .scale = OutputScale::per_output, .residual = Residual::after_activation};
  p.num_members = 1, p.bias_member_stride = p.scale_member_stride = 7;
  const P with_all = complete_routed_linear_problem(p);
  CHECK((with_all.residual_row_stride == 4 && with_all.bias_member_stride == 4));
  CHECK(with_all.scale_member_stride == 4);
  p.out_features = 1;
  CHECK(complete_routed_linear_problem(p).epilogue.scale == OutputScale::per_member);
}

TEST_CASE("routed_linear: operands that do not fit each other, or the plan") {
  TestDevice bench(Context::cpu());
  const Routing routing = routing_of_counts({2, 3}, 1);
  P problem = routed_problem(routing, 3, 4);
  problem.gathers = true, problem.choices = 2, problem.has_gates = true;
  problem.epilogue.scale = OutputScale::per_output;
  problem.epilogue.residual = Residual::after_activation;
  const auto plan = make_routed_linear_plan(bench.context(), problem);
  PlacedRouted placed(bench, problem, routing);
  const RoutedLinearArguments good = placed.arguments();
  const auto refused = [&](const std::function<void(RoutedLinearArguments&)>& spoil) {
    RoutedLinearArguments bad = good;
    spoil(bad);
    return refusal_of([&] { plan.run(bad, bench.execution(plan.workspace_bytes())); });
  };
  using A = RoutedLinearArguments;
  SECTION("of any routed rows") {
    RefusedOperands<A>("routed_linear: ", refused).check();
  }
  SECTION("absent") {
    CHECK(refused([](A& a) { a.weight = {}; }) ==
          "routed_linear: weight is absent, expected [num_members, out, in]");
    CHECK(refused([](A& a) { a.residual = {}; }) ==
          "routed_linear: residual is absent, expected one: the problem adds it");
    CHECK(refused([](A& a) { a.bias = {}; }) ==
          "routed_linear: bias is absent, expected one as in the plan's problem");
    CHECK(refused([](A& a) { a.scale = {}; }) ==
          "routed_linear: the operands' scale is none, expected the plan's = per_output");
  }
  SECTION("of another shape") {
    CHECK(refused([](A& a) {
            a.weight.shape = {8, 3}, a.weight.strides = {3, 1};
          }) == "routed_linear: weight is [8, 3], expected [num_members, out, in]");
    CHECK(refused([](A& a) {
            a.bias.shape[1] = 3;
          }).starts_with("routed_linear: bias is [2, 3], expected"));
    CHECK(refused([](A& a) {
            a.scale.shape[1] = 3;
          }).starts_with("routed_linear: scale is [2, 3], expected"));
    CHECK(refused([](A& a) {
            a.residual.shape[1] = 3;
          }).starts_with("routed_linear: residual is [6, 3], expected"));
  }
  SECTION("of another type") {
    CHECK(refused([](A& a) { a.weight.dtype = Dtype::fp16; }) ==
          "routed_linear: weight is fp16, expected dtype = fp32");
  }
  SECTION("of other strides") {
    CHECK(refused([](A& a) { a.y.strides[0] = 3; }) ==
          "routed_linear: y_row_stride is 3, expected >= out_features = 4");
    CHECK(refused([](A& a) {
            a.weight.strides = {0, 0, 1};
          }) ==
          "routed_linear: weight has strides [0, 0, 1], expected rows or members that do not all "
          "start at one place");
  }
  SECTION("in memory that does not do") {
    CHECK(refused([](A& a) {
            a.residual = a.y;
            a.residual.data = static_cast<float*>(a.y.data) + 4;
          }) == "routed_linear: y overlaps residual, expected memory of its own");
    RoutedLinearArguments in_place = good;
    in_place.residual = in_place.y;
    CHECK_NOTHROW(plan.run(in_place, bench.execution(plan.workspace_bytes())));
  }
}

TEST_CASE("routed_linear: blobs that are none") {
  TestDevice bench(Context::cpu());
  const Routing routing = routing_of_counts({2, 3}, 1);
  P problem = routed_problem(routing, 3, 4);
  problem.weight_format = WeightFormat::fp6_e3m2;
  const auto plan = make_routed_linear_plan(bench.context(), problem);
  CHECK(plan.weight_format() == "fp6_e3m2");
  PlacedRouted placed(bench, problem, routing);
  const RoutedLinearArguments good = placed.arguments();
  CHECK(describe_routed_linear(good, problem) == plan.problem());
  const auto refused = [&](const std::function<void(ConstTensorView&)>& spoil) {
    RoutedLinearArguments bad = good;
    spoil(bad.weight);
    return refusal_of([&] { plan.run(bad, bench.execution(plan.workspace_bytes())); });
  };
  CHECK(refused([](ConstTensorView& w) { w = {}; }) ==
        "routed_linear: weight is absent, expected [num_members, member_bytes]");
  CHECK(refused([](ConstTensorView& w) { w.shape[1] = 799; }) ==
        "routed_linear: weight is [2, 799], expected [num_members, member_bytes] = [2, 800]");
  CHECK(refused([](ConstTensorView& w) { w.dtype = Dtype::int32; }) ==
        "routed_linear: weight is int32, expected dtype = uint8");
  CHECK(refused([](ConstTensorView& w) { w.data = static_cast<const char*>(w.data) + 8; }) ==
        "routed_linear: weight is aligned to 8 bytes, expected 16: quantised");
  CHECK(refused([](ConstTensorView& w) { w.strides[0] = 816; }) ==
        "routed_linear: the operands' stride of weight is {row 800, member 816}, expected the "
        "plan's = {row 800, member 800}");
}

TEST_CASE("routed_linear: strategies, policies and counts of members") {
  const Context context = Context::cpu();
  const P problem = routed_problem(routing_of_counts({2, 3}), 3, 4);
  const auto make = [&](const PlanOptions& options) {
    return make_routed_linear_plan(context, problem, options);
  };
  CHECK(refusal_of([&] { make({.strategy = "wid"}); }) ==
        "routed_linear: strategy is \"wid\", did you mean wide?");
  CHECK_THROWS_AS(make({.strategy = "wide", .policy = "m16n64"}), Error);
  CHECK(make({.strategy = "sequential"}).explain() == "sequential: asked for by name");
  const auto plan = make({});
  CHECK(plan.strategy() == "wide");
  Tensor weight(context, Dtype::fp32, {2, 4, 3}), bias(context, Dtype::fp32, {2, 4});
  std::vector<LinearMember> members(1);
  CHECK(refusal_of([&] { plan.prepare_weights(members, weight, bias, Stream::cpu()); }) ==
        "routed_linear: members has 1 entry, expected num_members = 2");
  members.resize(2);
  CHECK(refusal_of([&] { plan.prepare_weights(members, weight, bias, Stream::cpu()); }) ==
        "routed_linear: bias of member 0 is absent, expected [out]");
  CHECK(refusal_of([&] { plan.prepare_weights(members, weight, {}, Stream::cpu()); }) ==
        "routed_linear: bias is absent, expected [num_members, out]");
  CHECK(refusal_of([&] { plan.restore_weights(weight, bias, {}, {}, Stream::cpu()); }) ==
        "routed_linear: member_weights has 0 entries, expected num_members = 2");
}

}  // namespace
}  // namespace wide::test
