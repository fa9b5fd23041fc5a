// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Every check that batchnorm and groupnorm share, and those of their own, by a problem or operands
// that it alone refuses.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <functional>

#include "host/norm/channel_norm.hpp"
#include "verify/support/refusals.hpp"
#include "wide/batchnorm.hpp"
#include "wide/groupnorm.hpp"
#include "wide/tensor.hpp"

using namespace wide;
using Catch::Matchers::Message;
using B = BatchnormProblem;
using G = GroupnormProblem;

namespace {

const G kGroups{.num_members = 2, .batch = 3, .channels = 4, .groups = 2, .height = 5, .width = 6};
const B kBatch{.num_members = 2, .batch = 3, .channels = 4, .height = 5, .width = 6};

TensorView elsewhere(Tensor& tensor) {
  return {tensor.data(), tensor.dtype(), tensor.shape(), Device{DeviceType::cuda, 0}};
}

}  // namespace

TEST_CASE("groupnorm: sizes that no kernel could run are refused by name") {
  const test::Refusal<G> refusals[] = {
      {[](G& p) { p.num_members = 0; }, "groupnorm: num_members is 0, expected >= 1"},
      {[](G& p) { p.batch = -1; }, "groupnorm: batch is -1, expected >= 0"},
      {[](G& p) { p.channels = -4; }, "groupnorm: channels is -4, expected >= 0"},
      {[](G& p) { p.height = -1; }, "groupnorm: height is -1, expected >= 0"},
      {[](G& p) { p.width = -1; }, "groupnorm: width is -1, expected >= 0"},
      {[](G& p) { p.dtype = Dtype::int64; },
       "groupnorm: dtype is int64, expected fp32, fp16 or bf16"},
      {[](G& p) { p.epsilon = -1; }, "groupnorm: epsilon is -1, expected a finite number >= 0"},
      {[](G& p) { p.groups = 0; }, "groupnorm: groups is 0, expected >= 1"},
      {[](G& p) { p.groups = 3; }, "groupnorm: groups is 3, expected a divisor of channels = 4"},
      {[](G& p) { p.height = p.width = 1 << 16; },
       "groupnorm: channels / groups * height * width is 8589934592, expected < 2^31 values a "
       "group"}};
  const Context cpu = Context::cpu();
  test::check_refusals(kGroups, refusals, [&](const G& p) { make_groupnorm_plan(cpu, p); });
  G many = kGroups;
  many.num_members = int64_t{1} << 60;
  CHECK_THROWS_AS(make_groupnorm_plan(cpu, many), Error);
}

TEST_CASE("batchnorm: sizes that no kernel could run are refused by name") {
  const test::Refusal<B> refusals[] = {
      {[](B& p) { p.momentum = -0.5f; },
       "batchnorm: momentum is -0.5, expected a number in [0, 1]"},
      {[](B& p) { p.momentum = 1.5f; }, "batchnorm: momentum is 1.5, expected a number in [0, 1]"},
      {[](B& p) { p.height = p.width = 1 << 16; },
       "batchnorm: batch * height * width is 12884901888, expected < 2^31 values a channel"},
      {[](B& p) {
         p.mode = BatchnormMode::train;
         p.batch = p.height = p.width = 1;
       },
       "batchnorm: batch * height * width is 1, expected >= 2 in mode train: fewer values have no "
       "variance"}};
  const Context cpu = Context::cpu();
  test::check_refusals(kBatch, refusals, [&](const B& p) { make_batchnorm_plan(cpu, p); });
}

TEST_CASE("channel norms: operands of another problem than the plan's are told apart") {
  const G plan = make_groupnorm_plan(Context::cpu(), kGroups).problem();
  const test::Refusal<G> refusals[] = {
      {[](G& p) { p.num_members = 3; },
       "groupnorm: the operands' num_members is 3, expected the plan's = 2"},
      {[](G& p) { p.batch = 4; }, "groupnorm: the operands' batch is 4, expected the plan's = 3"},
      {[](G& p) { p.channels = 6; },
       "groupnorm: the operands' channels is 6, expected the plan's = 4"},
      {[](G& p) { p.height = 4; }, "groupnorm: the operands' height is 4, expected the plan's = 5"},
      {[](G& p) { p.width = 5; }, "groupnorm: the operands' width is 5, expected the plan's = 6"},
      {[](G& p) { p.has_gamma = false; },
       "groupnorm: gamma is absent, expected one as in the plan's problem"},
      {[](G& p) { p.has_beta = false; },
       "groupnorm: beta is absent, expected one as in the plan's problem"},
      {[](G& p) { p.dtype = Dtype::fp16; },
       "groupnorm: the operands' dtype is fp16, expected the plan's = fp32"},
      {[](G& p) { ++p.x.batch; },
       "groupnorm: the operands' stride of x is {batch 241, member 120, channel 30, row 6, column "
       "1}, expected the plan's = {batch 240, member 120, channel 30, row 6, column 1}"},
      {[](G& p) { ++p.y.batch; },
       "groupnorm: the operands' stride of y is {batch 241, member 120, channel 30, row 6, column "
       "1}, expected the plan's = {batch 240, member 120, channel 30, row 6, column 1}"},
      {[](G& p) { ++p.beta_member_stride; },
       "groupnorm: the operands' member stride of beta is 5, expected the plan's = 4"},
      {[](G& p) { p.epsilon = 1; },
       "groupnorm: the operands' epsilon is 1, expected the plan's = 1e-05"}};
  test::check_refusals(plan, refusals, [&](const G& got) {
    require_same_problem("groupnorm", got, plan, [](const auto& same, const G& a, const G& b) {
      channel_norm_fields(same, a, b);
    });
  });
}

TEST_CASE("batchnorm: operands that do not fit each other are named") {
  const Context cpu = Context::cpu();
  Tensor x(cpu, Dtype::fp32, {3, 8, 6}), y(cpu, Dtype::fp32, {3, 8, 6}),
      half(cpu, Dtype::fp16, {3, 8, 6}), few(cpu, Dtype::fp32, {2, 8, 6}),
      gamma(cpu, Dtype::fp32, {2, 4}), mean(cpu, Dtype::fp32, {2, 4}),
      variance(cpu, Dtype::fp32, {2, 4}), own(cpu, Dtype::fp32, {2}), spread(cpu, Dtype::fp32, {4}),
      half_own(cpu, Dtype::fp16, {2}), storage(cpu, Dtype::fp32, {4, 8, 6});
  const auto refuses = [&](const std::function<void(BatchnormArguments&)>& spoil,
                           const char* message, BatchnormMode mode = BatchnormMode::eval) {
    BatchnormArguments arguments{x, gamma, {}, mean, variance, y, own, {}};
    spoil(arguments);
    CHECK_THROWS_MATCHES(describe_batchnorm(arguments, {.mode = mode}), Error, Message(message));
  };
  const auto view = [&](Tensor& tensor, const Shape& shape, const Strides& strides) {
    return TensorView(tensor.data(), tensor.dtype(), shape, strides, cpu.device());
  };
  CHECK_NOTHROW(describe_batchnorm({x, gamma, {}, mean, variance, y, own, own}, {}));
  refuses([&](auto& a) { a.y = few; },
          "batchnorm: y is [2, 8, 6], expected the shape of x = [3, 8, 6]");
  refuses([&](auto& a) { a.y = half; }, "batchnorm: y is fp16, expected dtype = fp32");
  CHECK_THROWS_AS(
      describe_batchnorm(
          {x, gamma, {}, mean, variance, view(y, {3, 8, 6}, Strides{48, 0, 1}), own, {}}, {}),
      Error);
  refuses([&](auto& a) { a.x = elsewhere(x); },
          "batchnorm: x is on cuda:0, expected the plan's device = cpu");
  refuses([&](auto& a) { a.gamma = elsewhere(gamma); },
          "batchnorm: gamma is on cuda:0, expected the plan's device = cpu");
  refuses([&](auto& a) { a.epsilon = elsewhere(own); },
          "batchnorm: epsilon is on cuda:0, expected the plan's device = cpu");
  refuses([&](auto& a) { a.epsilon = half_own; },
          "batchnorm: epsilon is fp16, expected dtype = fp32");
  refuses([&](auto& a) { a.momentum = view(spread, {2}, Strides{2}); },
          "batchnorm: momentum has strides [2], expected a stride of 1");
  refuses(
      [&](auto& a) {
        a.x = storage.view().narrow(0, 0, 3);
        a.y = storage.view().narrow(0, 1, 3);
      },
      "batchnorm: y overlaps x, expected x itself or memory of its own");
  refuses(
      [&](auto& a) {
        a.gamma = view(y, {2, 4}, Strides{4, 1});
      },
      "batchnorm: y overlaps gamma, expected memory of its own");
  refuses(
      [&](auto& a) {
        a.running_mean = view(mean, {2, 4}, Strides{0, 1});
      },
      "batchnorm: running_mean has strides [0, 1], expected members of their own: a first "
      "stride above 0");
  refuses([&](auto& a) { a.running_mean = gamma; },
          "batchnorm: running_mean overlaps gamma, expected memory of its own",
          BatchnormMode::train);
  const BatchnormPlan plan =
      make_batchnorm_plan(cpu, describe_batchnorm({x, gamma, {}, mean, variance, y, {}, {}}, {}));
  CHECK_THROWS_MATCHES(plan.run({elsewhere(x),
                                 elsewhere(gamma),
                                 {},
                                 elsewhere(mean),
                                 elsewhere(variance),
                                 elsewhere(y),
                                 {},
                                 {}},
                                {Stream::cpu()}),
                       Error,
                       Message("batchnorm: y is on cuda:0, expected the plan's device = cpu"));
}
