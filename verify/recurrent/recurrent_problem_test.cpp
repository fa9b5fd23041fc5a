// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// recurrent without a device: which strategy is taken and why, how the fused kernel divides shared
// memory, and what is refused, by name.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>

#include "host/recurrent/recurrent_problem.hpp"
#include "host/recurrent/recurrent_strategy.hpp"
#include "verify/recurrent/recurrent_case.hpp"
#include "verify/support/known_devices.hpp"
#include "verify/support/refusals.hpp"
#include "wide/error.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using kernels::recurrent_fused_shape, kernels::RecurrentMath;

namespace {

RecurrentProblem small_problem(RecurrentCell cell = RecurrentCell::lstm) {
  RecurrentProblem p;
  p.cell = cell;
  p.num_members = 2;
  p.batch = 3;
  p.steps = 4;
  p.in_features = 5;
  p.hidden = 6;
  p.has_bias = true;
  p.has_first_state = true;
  p.has_last_cell = cell == RecurrentCell::lstm;
  return p;
}

std::string reason(RecurrentProblem p, const DeviceInfo& device = test::kH200) {
  return recurrent_unsupported_reason(RecurrentStrategy::fused, complete_recurrent_problem(p),
                                      device);
}

}  // namespace

TEST_CASE("recurrent: auto takes what is verified and runs, and says why not the others") {
  const VerifiedStrategy both[] = {{"recurrent", "fused", 90}, {"recurrent", "stepwise", 90}};
  const auto choose = [&](const RecurrentProblem& p, std::span<const VerifiedStrategy> verified) {
    return choose_recurrent_strategy(complete_recurrent_problem(p), test::kH200, "auto", verified);
  };
  RecurrentProblem p = small_problem();
  CHECK(choose(p, both).strategy == RecurrentStrategy::fused);
  CHECK(choose(p, both).explain == "fused: all steps of all members in one launch");
  CHECK(choose(p, std::span(both).subspan(1)).explain ==
        "stepwise: two launches a step; fused: unverified on compute capability 90");
  CHECK(choose(p, {}).strategy == RecurrentStrategy::cublas_batched);
  p.hidden = 256;
  CHECK(choose(p, both).strategy == RecurrentStrategy::stepwise);
  CHECK_THAT(choose(p, both).explain,
             ContainsSubstring("fused: it takes hidden states up to 160, hidden is 256"));
  const Context cpu = Context::cpu();
  CHECK(choose_recurrent_strategy(complete_recurrent_problem(p), cpu.info(), "auto", {}).strategy ==
        RecurrentStrategy::wide);
  CHECK_THROWS_MATCHES(make_recurrent_plan(cpu, p, {.strategy = "fused"}), Error,
                       MessageMatches(ContainsSubstring("strategy is \"fused\"")));
}

TEST_CASE("recurrent: fused takes what fits in shared memory") {
  RecurrentProblem p = small_problem();
  const auto of = [&](RecurrentCell cell, Dtype dtype, int64_t hidden) {
    p.cell = cell, p.dtype = dtype, p.hidden = hidden;
    p.has_last_cell = false;
    return p;
  };
  CHECK(reason(of(RecurrentCell::lstm, Dtype::bf16, 136)).empty());
  CHECK(reason(of(RecurrentCell::gru, Dtype::fp16, 160)).empty());
  CHECK(reason(of(RecurrentCell::lstm, Dtype::fp32, 104)).empty());
  CHECK(reason(of(RecurrentCell::gru, Dtype::fp32, 112)).empty());
  CHECK_THAT(reason(of(RecurrentCell::lstm, Dtype::bf16, 144)),
             ContainsSubstring("hidden 144 needs") && ContainsSubstring("232448"));
  CHECK(reason(of(RecurrentCell::lstm, Dtype::bf16, 112), test::kA100).empty());
  CHECK_FALSE(reason(of(RecurrentCell::lstm, Dtype::bf16, 120), test::kA100).empty());
  DeviceInfo old = test::kA100;
  old.compute_capability = 75;
  CHECK_THAT(reason(p, old), ContainsSubstring("compute capability 8.0 and later"));
  CHECK(recurrent_unsupported_reason(RecurrentStrategy::fused, complete_recurrent_problem(p),
                                     Context::cpu().info()) == "it runs on CUDA devices only");
}

TEST_CASE("recurrent: rows in shared memory lie where banks differ, and end at chunks") {
  for (int hidden = 1; hidden <= kernels::kRecurrentUnits * kernels::kMaxRecurrentWarps; ++hidden) {
    for (const RecurrentCell cell : kAllRecurrentCells) {
      const auto half = recurrent_fused_shape(cell, RecurrentMath::bf16, hidden);
      const auto single = recurrent_fused_shape(cell, RecurrentMath::fp32, hidden);
      const int gates = recurrent_gates(cell);
      REQUIRE((half.pitch % 32 == 16 && half.input_pitch % 32 == 16));
      REQUIRE((single.pitch % 128 == 64 && single.input_pitch % 128 == 32));
      REQUIRE((half.pitch >= (hidden + 31) / 32 * 64 && single.pitch >= (hidden + 15) / 16 * 64));
      REQUIRE((half.input_pitch >= gates * hidden * 2 && single.input_pitch >= gates * hidden * 4));
      REQUIRE((half.weight_bytes == gates * 8 * half.warps * half.pitch));
      REQUIRE(half.shared_bytes == half.weight_bytes + 32 * (half.pitch + half.input_pitch));
      REQUIRE(single.shared_bytes ==
              single.weight_bytes + 16 * (single.pitch + single.input_pitch));
    }
  }
}

TEST_CASE("recurrent: problems that cannot be are refused by the field's name") {
  const auto refusal = [](const std::function<void(RecurrentProblem&)>& spoil) {
    RecurrentProblem p = small_problem();
    spoil(p);
    return test::refusal_of([&] { (void)complete_recurrent_problem(p); });
  };
  using P = RecurrentProblem;
  CHECK(refusal([](P& p) { p.num_members = 0; }) == "recurrent: num_members is 0, expected >= 1");
  CHECK(refusal([](P& p) { p.batch = -1; }) == "recurrent: batch is -1, expected >= 0");
  CHECK(refusal([](P& p) { p.steps = -2; }) == "recurrent: steps is -2, expected >= 0");
  CHECK(refusal([](P& p) { p.in_features = 0; }) == "recurrent: in_features is 0, expected >= 1");
  CHECK(refusal([](P& p) { p.hidden = 0; }) == "recurrent: hidden is 0, expected >= 1");
  CHECK(refusal([](P& p) { p.dtype = Dtype::int32; }) ==
        "recurrent: dtype is int32, expected fp32, fp16 or bf16");
  CHECK_THAT(refusal([](P& p) { p.cell = RecurrentCell::gru; }),
             ContainsSubstring("has_last_cell is true, expected false: a gru has no cell state"));
  CHECK_THAT(refusal([](P& p) { p.steps = int64_t{1} << 60; }), ContainsSubstring("64 bits"));
  CHECK_THAT(refusal([](P& p) {
               p.x = {7, 100, 5};
             }),
             ContainsSubstring("x has strides {batch 7, step 100, member 5}"));
  CHECK_THAT(refusal([](P& p) { p.x = {-40, -10, 5}; }), ContainsSubstring("none below 0"));
  CHECK_THAT(refusal([](P& p) {
               p.y = {48, 12, 5};
             }),
             ContainsSubstring("expected elements that do not overlap each other"));
  CHECK_THAT(refusal([](P& p) {
               p.y = {int64_t{1} << 62, 12, 6};
             }),
             ContainsSubstring("expected an extent that fits in 64 bits"));
  CHECK_THAT(refusal([](P& p) {
               p.last_cell = {6, 6};
             }),
             ContainsSubstring("last_cell has strides {row 6, member 6}"));
  CHECK_THAT(refusal([](P& p) {
               p.shared_input = true, p.x = {20, 5, 5};
             }),
             ContainsSubstring("expected 0: shared_input"));
}

TEST_CASE("recurrent: operands that do not fit are refused by the operand's name") {
  const Context cpu = Context::cpu();
  const RecurrentProblem good = small_problem();
  test::RecurrentOperands operands(cpu, good);
  const auto refusal = [&](const std::function<void(RecurrentArguments&)>& spoil,
                           const RecurrentProblem& like = {}) {
    RecurrentArguments a = operands.arguments();
    spoil(a);
    return test::refusal_of([&] { (void)describe_recurrent(a, like); });
  };
  using A = RecurrentArguments;
  CHECK(describe_recurrent(operands.arguments()) == complete_recurrent_problem(good));
  CHECK(refusal([](A&) {}) == "nothing was thrown");
  CHECK(refusal([](A& a) { a.hidden_weight = {}; }) ==
        "recurrent: hidden_weight is absent, expected [num_members, gates * hidden, hidden]");
  CHECK_THAT(refusal([](A&) {}, {.cell = RecurrentCell::gru}),
             ContainsSubstring("input_weight is [2, 24, 5], expected [num_members, gates * hidden, "
                               "in_features] = [2, 18, 5]"));
  CHECK_THAT(refusal([](A& a) { a.hidden_bias = {}; }),
             ContainsSubstring("hidden_bias is absent, expected both biases"));
  CHECK_THAT(refusal([](A& a) { a.input_bias = {}; }),
             ContainsSubstring("hidden_bias is [2, 24], expected neither bias"));
  CHECK_THAT(
      refusal([](A& a) { a.x = a.x.narrow(2, 0, 9); }),
      ContainsSubstring("x is [3, 4, 9], expected [B, T, num_members * features] = [B, T, 10]"));
  CHECK_THAT(refusal([](A&) {}, {.shared_input = true}),
             ContainsSubstring("x is [3, 4, 10], expected shared_input: [B, T, in_features]"));
  CHECK_THAT(refusal([](A& a) { a.y = a.y.narrow(1, 0, 3); }),
             ContainsSubstring("y is [3, 3, 12], expected x's batch and steps = [3, 4, ..]"));
  CHECK_THAT(refusal([](A& a) { a.first_hidden = {}; }),
             ContainsSubstring("first_cell is [3, 12], expected none without first_hidden"));
  CHECK_THAT(refusal([](A& a) { a.first_cell = {}; }),
             ContainsSubstring("first_cell is absent, expected [B, num_members * hidden]"));
  CHECK_THAT(refusal([](A& a) { a.first_hidden = a.first_hidden.narrow(0, 0, 2); }),
             ContainsSubstring("first_hidden is [2, 12], expected x's batch = 3"));
  CHECK_THAT(refusal([](A& a) { a.last_cell.dtype = Dtype::bf16; }),
             ContainsSubstring("last_cell is bf16, expected dtype = fp32"));
  CHECK_THAT(refusal([](A& a) { a.y.data = const_cast<void*>(a.x.data); }),
             ContainsSubstring("y overlaps x"));
  CHECK_THAT(refusal([](A& a) {
               a.last_cell.data = static_cast<char*>(const_cast<void*>(a.first_cell.data)) + 4;
             }),
             ContainsSubstring("last_cell overlaps first_cell"));
  CHECK(refusal([](A& a) { a.last_cell.data = const_cast<void*>(a.first_cell.data); }) ==
        "nothing was thrown");
  CHECK_THAT(refusal([](A& a) { a.last_cell.data = const_cast<void*>(a.first_hidden.data); }),
             ContainsSubstring("last_cell overlaps first_hidden"));
  constexpr int64_t kFar = int64_t{1} << 62;
  CHECK_THROWS_WITH(
      complete_recurrent_problem(
          {.batch = 1, .steps = 64, .in_features = 1, .hidden = 1, .x = {1, kFar, 1}}),
      ContainsSubstring("do not fit in 64 bits"));
  CHECK_THAT(refusal([](A& a) { a.x.device = {DeviceType::cuda, 0}; }), ContainsSubstring("is on"));
}

TEST_CASE("recurrent: a call must be of the plan's problem, and have its workspace") {
  const Context cpu = Context::cpu();
  const RecurrentProblem good = small_problem();
  test::RecurrentOperands operands(cpu, good);
  const RecurrentPlan plan = make_recurrent_plan(cpu, good);
  Tensor scratch(cpu, Dtype::uint8, {plan.workspace_bytes()});
  const Execution execution{Stream::cpu(), {scratch.data(), scratch.bytes()}};
  CHECK_NOTHROW(plan.run(operands.arguments(), execution));
  RecurrentArguments a = operands.arguments();
  a.last_cell = {};
  CHECK_THROWS_MATCHES(plan.run(a, execution), Error,
                       MessageMatches(ContainsSubstring("last_cell is absent, expected one as in "
                                                        "the plan's problem")));
  CHECK_THROWS_MATCHES(plan.run(operands.arguments(), {Stream::cpu()}), Error,
                       MessageMatches(ContainsSubstring("workspace is 0 bytes")));
}
