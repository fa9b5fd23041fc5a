// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What top_k refuses, and how its rows become blocks.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <functional>
#include <vector>

#include "kernels/routing/top_k_blocks.hpp"
#include "wide/error.hpp"
#include "wide/top_k.hpp"

namespace wide::test {
namespace {

using Catch::Matchers::Message;

const Context kCpu = Context::cpu();

/// Right operands of 3 rows, 5 members and 2 choices, to be made wrong.
struct Operands {
  std::vector<float> scores = std::vector<float>(20), gates = std::vector<float>(10);
  std::vector<int64_t> ids = std::vector<int64_t>(10);
  TopKArguments arguments{ConstTensorView(scores.data(), Dtype::fp32, {3, 5}, Device{}),
                          TensorView(ids.data(), Dtype::int64, {3, 2}, Device{}),
                          TensorView(gates.data(), Dtype::fp32, {3, 2}, Device{})};
};

void check_operands(const std::function<void(TopKArguments&)>& change, const char* message) {
  Operands operands;
  change(operands.arguments);
  CHECK_THROWS_MATCHES(describe_top_k(operands.arguments), Error, Message(message));
}

void check_problem(const TopKProblem& problem, const char* message) {
  CHECK_THROWS_MATCHES(make_top_k_plan(kCpu, problem), Error, Message(message));
}

}  // namespace

TEST_CASE("top_k: what operands show of a problem") {
  Operands operands;
  TopKArguments& a = operands.arguments;
  TopKProblem expected{.num_members = 5, .rows = 3, .choices = 2, .has_gates = true};
  expected.gate = GateFunction::sigmoid;
  expected.scores_row_stride = 5;
  const auto described = [&] { return describe_top_k(a, {.gate = GateFunction::sigmoid}); };
  CHECK(described() == expected);
  a.scores.strides = {6, 1};
  expected.scores_row_stride = 6;
  CHECK(described() == expected);
  a.gates = {};
  expected.has_gates = false;
  CHECK(described() == expected);
  // Leading axes are rows.
  a.scores.shape = {3, 1, 5}, a.scores.strides = {5, 5, 1};
  a.ids.shape = {3, 1, 2}, a.ids.strides = {2, 2, 1};
  expected.scores_row_stride = 5;
  CHECK(described() == expected);
}

TEST_CASE("top_k: operands of a wrong shape, dtype, device or place are refused") {
  check_operands([](auto& a) { a.scores = {}; }, "top_k: scores is [], expected [.., num_members]");
  check_operands([](auto& a) { a.ids = {}; }, "top_k: ids is [], expected [.., choices]");
  check_operands(
      [](auto& a) {
        a.ids.shape = {4, 2};
      },
      "top_k: ids is [4, 2], expected the rows of scores = [3, 5]");
  check_operands(
      [](auto& a) {
        a.gates.shape = {3, 3};
      },
      "top_k: gates is [3, 3], expected that of ids = [3, 2]");
  check_operands([](auto& a) { a.scores.dtype = Dtype::int32; },
                 "top_k: dtype is int32, expected fp32, fp16 or bf16");
  check_operands([](auto& a) { a.ids.dtype = Dtype::fp32; },
                 "top_k: id_dtype is fp32, expected int32 or int64");
  check_operands([](auto& a) { a.gates.dtype = Dtype::bf16; },
                 "top_k: gates is bf16, expected dtype = fp32");
  check_operands(
      [](auto& a) {
        a.scores.device = {DeviceType::cuda, 1};
      },
      "top_k: scores is on cuda:1, expected the plan's device = cpu");
  check_operands(
      [](auto& a) {
        a.ids.strides = {3, 1};
      },
      "top_k: ids has strides [3, 1], expected contiguous ones");
  check_operands(
      [](auto& a) {
        a.gates.strides = {3, 1};
      },
      "top_k: gates has strides [3, 1], expected contiguous ones");
  check_operands([](auto& a) { a.scores.data = a.ids.data; },
                 "top_k: ids overlaps scores, expected memory of its own");
  check_operands([](auto& a) { a.scores.data = a.gates.data; },
                 "top_k: gates overlaps scores, expected memory of its own");
  check_operands([](auto& a) { a.gates.data = a.ids.data; },
                 "top_k: gates overlaps ids, expected memory of its own");
}

TEST_CASE("top_k: problems without that many members are refused") {
  check_problem({.num_members = 0}, "top_k: num_members is 0, expected >= 1");
  check_problem({.num_members = int64_t{1} << 31},
                "top_k: num_members is 2147483648, expected up to 2^31 - 1");
  check_problem({.rows = -1}, "top_k: rows is -1, expected >= 0");
  check_problem({.num_members = 4, .choices = 0},
                "top_k: choices is 0, expected from 1 to num_members = 4");
  check_problem({.num_members = 4, .choices = 5},
                "top_k: choices is 5, expected from 1 to num_members = 4");
}

TEST_CASE("top_k: a plan takes its own problem's operands and device") {
  Operands operands;
  TopKArguments& a = operands.arguments;
  const TopKPlan plan = make_top_k_plan(kCpu, describe_top_k(a));
  CHECK(plan.workspace_bytes() == 0);
  CHECK(plan.strategy() == "wide");
  CHECK_NOTHROW(plan.run(a, {Stream::cpu()}));
  a.gates = {};
  CHECK_THROWS_MATCHES(plan.run(a, {Stream::cpu()}), Error,
                       Message("top_k: gates is absent, expected one as in the plan's problem"));
  a.ids.device = {DeviceType::cuda, 0};
  CHECK_THROWS_MATCHES(plan.run(a, {Stream::cpu()}), Error,
                       Message("top_k: ids is on cuda:0, expected the plan's device = cpu"));
  CHECK_THROWS_MATCHES(
      make_top_k_plan(kCpu, {}, {.policy = "small"}), Error,
      Message("top_k: policy is \"small\", expected none: its strategies have no policies"));
}

TEST_CASE("top_k: gate functions have names") {
  for (const GateFunction gate : kAllGateFunctions)
    CHECK(parse_gate_function(gate_function_name(gate)) == gate);
  CHECK_FALSE(parse_gate_function("softplus").has_value());
}

TEST_CASE("top_k: a warp has a row of up to 256 members, a block a longer one") {
  using namespace kernels;
  CHECK(top_k_warps(256) == 1);
  CHECK(top_k_warps(257) == 2);
  CHECK(top_k_warps(100000) == 32);
  CHECK(top_k_blocks(256, 9) == 3);
  CHECK(top_k_blocks(257, 9) == 9);
  CHECK(top_k_blocks(8, 0) == 0);
}

}  // namespace wide::test
