// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What routing refuses, what it needs, and what is chosen for devices, at hand or not.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <functional>
#include <limits>
#include <vector>

#include "host/routing/routing_run.hpp"
#include "verify/support/known_devices.hpp"
#include "wide/error.hpp"
#include "wide/routing.hpp"

namespace wide::test {
namespace {

using Catch::Matchers::Message;

const Context kCpu = Context::cpu();

/// Right operands of 3 members and 6 rows, to be made wrong.
struct Operands {
  std::vector<int64_t> ids = std::vector<int64_t>(8);
  std::vector<int32_t> first_rows = std::vector<int32_t>(8), order = std::vector<int32_t>(8);
  RoutingArguments arguments{ConstTensorView(ids.data(), Dtype::int64, {6}, Device{}),
                             TensorView(first_rows.data(), Dtype::int32, {4}, Device{}),
                             TensorView(order.data(), Dtype::int32, {6}, Device{})};
};

void check_operands(const std::function<void(Operands&)>& change, const char* message) {
  Operands operands;
  change(operands);
  CHECK_THROWS_MATCHES(describe_routing(operands.arguments), Error, Message(message));
}

void check_problem(const RoutingProblem& problem, const char* message) {
  CHECK_THROWS_MATCHES(make_routing_plan(kCpu, problem), Error, Message(message));
}

}  // namespace

TEST_CASE("routing: what operands show of a problem") {
  const Operands operands;
  const RoutingProblem p = describe_routing(operands.arguments, {.first_id = 7});
  CHECK((p == RoutingProblem{.num_members = 3, .num_rows = 6, .first_id = 7}));
}

TEST_CASE("routing: operands of a wrong shape, dtype, device or place are refused") {
  check_operands([](Operands& o) { o.arguments.ids = {}; },
                 "routing: ids is [], expected [num_rows] or [batch, choices]");
  check_operands([](Operands& o) { o.arguments.first_rows.shape = {1}; },
                 "routing: first_rows is [1], expected [num_members + 1], of one member at least");
  check_operands([](Operands& o) { o.arguments.order.shape = {5}; },
                 "routing: order is [5], expected [num_rows] = [6]");
  check_operands([](Operands& o) { o.arguments.ids.dtype = Dtype::fp32; },
                 "routing: id_dtype is fp32, expected int32 or int64");
  check_operands([](Operands& o) { o.arguments.first_rows.dtype = Dtype::int64; },
                 "routing: first_rows is int64, expected dtype = int32");
  check_operands([](Operands& o) { o.arguments.order.dtype = Dtype::fp32; },
                 "routing: order is fp32, expected dtype = int32");
  check_operands(
      [](Operands& o) {
        o.arguments.ids.device = {DeviceType::cuda, 1};
      },
      "routing: ids is on cuda:1, expected the plan's device = cpu");
  check_operands([](Operands& o) { o.arguments.first_rows.data = nullptr; },
                 "routing: first_rows is a null pointer, expected [4] elements");
  check_operands([](Operands& o) { o.arguments.ids.strides = {2}; },
                 "routing: ids has strides [2], expected contiguous ones");
  check_operands([](Operands& o) { o.arguments.first_rows.strides = {2}; },
                 "routing: first_rows has strides [2], expected contiguous ones");
  check_operands([](Operands& o) { o.arguments.order.strides = {2}; },
                 "routing: order has strides [2], expected contiguous ones");
  check_operands([](Operands& o) { o.arguments.order.data = o.ids.data() + 5; },
                 "routing: order overlaps ids, expected memory of its own");
  check_operands([](Operands& o) { o.arguments.first_rows.data = o.ids.data(); },
                 "routing: first_rows overlaps ids, expected memory of its own");
  check_operands([](Operands& o) { o.arguments.first_rows.data = o.order.data() + 4; },
                 "routing: order overlaps first_rows, expected memory of its own");
}

TEST_CASE("routing: problems that cannot be counted are refused") {
  check_problem({.num_members = 0}, "routing: num_members is 0, expected >= 1");
  check_problem({.num_rows = -1}, "routing: num_rows is -1, expected >= 0");
  check_problem({.first_id = -2}, "routing: first_id is -2, expected >= 0");
  check_problem({.num_rows = int64_t{1} << 31},
                "routing: num_rows is 2147483648, expected up to 2^31 - 1: rows are counted in "
                "int32");
  check_problem({.num_members = int64_t{1} << 31},
                "routing: num_members is 2147483648, expected up to 2^31 - 1: rows are counted in "
                "int32");
  check_problem({.num_members = 2, .first_id = std::numeric_limits<int64_t>::max() - 1},
                "routing: first_id is 9223372036854775806, expected first_id + num_members in 64 "
                "bits, num_members is 2");
  check_problem({.id_dtype = Dtype::uint8}, "routing: id_dtype is uint8, expected int32 or int64");
}

TEST_CASE("routing: a plan takes its own problem's operands, device and workspace") {
  Operands operands;
  const RoutingPlan plan = make_routing_plan(kCpu, describe_routing(operands.arguments));
  CHECK(plan.workspace_bytes() == 256);
  const auto run = [&](const Workspace& workspace) {
    plan.run(operands.arguments, {Stream::cpu(), workspace});
  };
  CHECK_THROWS_MATCHES(run({}), Error,
                       Message("routing: workspace is 0 bytes, expected workspace_bytes = 256"));
  Tensor workspace(kCpu, Dtype::uint8, {256});
  CHECK_NOTHROW(run({workspace.data(), 256}));
  operands.arguments.ids.shape = operands.arguments.order.shape = {5};
  CHECK_THROWS_MATCHES(
      run({workspace.data(), 256}), Error,
      Message("routing: ids is [5] with 5 rows, expected the plan's num_rows = 6"));
  operands.arguments.order.device = {DeviceType::cuda, 0};
  CHECK_THROWS_MATCHES(run({workspace.data(), 256}), Error,
                       Message("routing: order is on cuda:0, expected the plan's device = cpu"));
}

TEST_CASE("routing: what a plan is on the CPU") {
  const RoutingPlan plan = make_routing_plan(kCpu, {.num_members = 4, .num_rows = 100000});
  CHECK(plan.strategy() == "wide");
  CHECK(plan.explain() == "wide: one pass over all members keeps every thread busy");
  // Thirteen chunks of 8192 rows, five counters each.
  CHECK(plan.workspace_bytes() == 512);
  CHECK(make_routing_plan(kCpu, {.num_members = 4, .num_rows = 100000}, {.strategy = "sequential"})
            .workspace_bytes() == 256);
  CHECK_THROWS_MATCHES(
      make_routing_plan(kCpu, {}, {.policy = "small"}), Error,
      Message("routing: policy is \"small\", expected none: its strategies have no policies"));
}

TEST_CASE("routing: wide is for as many members as a block has counters for") {
  const auto chosen = [](int64_t num_members, const DeviceInfo& device, bool is_verified) {
    const RoutingProblem problem{.num_members = num_members, .num_rows = 50000};
    return choose_wide_strategy("routing", device, "auto", is_verified,
                                routing_launches(problem, device));
  };
  CHECK(chosen(64, kH200, true).strategy == WideStrategy::wide);
  CHECK(chosen(64, kH200, false).strategy == WideStrategy::sequential);
  CHECK(chosen(13000, kA100, true).strategy == WideStrategy::wide);
  CHECK(chosen(14000, kA100, true).strategy == WideStrategy::sequential);
  CHECK(chosen(19000, kH200, true).strategy == WideStrategy::wide);
  CHECK(chosen(20000, kH200, true).strategy == WideStrategy::sequential);
  CHECK(routing_launches({.num_members = 20000}, kH200).wide ==
        "num_members is 20000, whose counters take 240140 bytes of shared memory, a block has up "
        "to 232448");
  CHECK(routing_launches({.num_members = 20000}, kH200).sequential.empty());
}

}  // namespace wide::test
