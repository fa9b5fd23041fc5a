// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// batchnorm's operands, apart from what is computed of them: packing, and what is refused.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <vector>

#include "verify/support/tensors.hpp"
#include "wide/batchnorm.hpp"
#include "wide/error.hpp"

using namespace wide;
using Catch::Matchers::Message;
using test::download;
using test::uniform;
using test::upload;

TEST_CASE("batchnorm: parameters are packed and restored") {
  const Context cpu = Context::cpu();
  const BatchnormPlan plan = make_batchnorm_plan(
      cpu, {.num_members = 2, .batch = 1, .channels = 3, .width = 4, .has_beta = false});
  std::vector<Tensor> own;
  std::vector<ConstBatchnormParameters> members;
  std::vector<BatchnormParameters> restored;
  for (int n = 0; n < 2; ++n) {
    for (int i = 0; i < 3; ++i)
      own.push_back(upload(cpu, Dtype::fp32, {3}, uniform(3, 0, 1, 7 * n + i)));
  }
  for (size_t n = 0; n < 2; ++n) {
    members.push_back({own[3 * n], {}, own[3 * n + 1], own[3 * n + 2]});
  }
  Tensor gamma(cpu, Dtype::fp32, {6}), mean(cpu, Dtype::fp32, {2, 3}),
      variance(cpu, Dtype::fp32, {2, 3});
  plan.prepare_weights(members, {gamma, {}, mean, variance}, Stream::cpu());
  CHECK(download(cpu, mean)[4] == download(cpu, own[4])[1]);
  CHECK(download(cpu, gamma)[2] == download(cpu, own[0])[2]);
  std::vector<Tensor> back;
  for (int i = 0; i < 6; ++i) back.emplace_back(cpu, Dtype::fp32, Shape{3});
  for (size_t n = 0; n < 2; ++n) {
    restored.push_back({back[3 * n], {}, back[3 * n + 1], back[3 * n + 2]});
  }
  plan.restore_weights({gamma, {}, mean, variance}, restored, Stream::cpu());
  for (size_t i = 0; i < 6; ++i) CHECK(download(cpu, back[i]) == download(cpu, own[i]));
}

TEST_CASE("batchnorm: each wrong operand is named, with what was got and expected") {
  const Context cpu = Context::cpu();
  Tensor x(cpu, Dtype::fp32, {2, 6, 4}), y(cpu, Dtype::fp32, {2, 6, 4});
  Tensor p(cpu, Dtype::fp32, {2, 3}), q(cpu, Dtype::fp32, {2, 3}), wrong(cpu, Dtype::fp32, {2, 4}),
      half(cpu, Dtype::fp16, {2, 3}), ints(cpu, Dtype::int32, {2, 6, 4});
  const auto refuses = [&](const BatchnormArguments& a, const BatchnormProblem& like,
                           const char* message) {
    CHECK_THROWS_MATCHES(describe_batchnorm(a, like), Error, Message(message));
  };
  refuses(
      {x, wrong, {}, p, q, y, {}, {}}, {},
      "batchnorm: gamma is [2, 4], expected [num_members, channels] = [2, 3] or all in one axis");
  refuses({x, half, {}, p, q, y, {}, {}}, {}, "batchnorm: gamma is fp16, expected dtype = fp32");
  refuses({x, {}, {}, half, q, y, {}, {}}, {},
          "batchnorm: running_mean is fp16, expected dtype = fp32");
  refuses({x, {}, {}, p, {}, y, {}, {}}, {},
          "batchnorm: running_mean or running_variance is absent, expected both");
  refuses({x, p, q, {}, {}, y, {}, {}}, {},
          "batchnorm: running_mean or running_variance is absent, expected both");
  refuses({ints, {}, {}, p, q, ints, {}, {}}, {},
          "batchnorm: dtype is int32, expected fp32, fp16 or bf16");
  refuses({x, {}, {}, p, p, y, {}, {}}, {.mode = BatchnormMode::train},
          "batchnorm: running_mean overlaps running_variance, expected memory of its own");
  const TensorView joined(p.data(), Dtype::fp32, {2, 3}, Strides{1, 1}, cpu.device());
  CHECK_THROWS_WITH(
      describe_batchnorm({x, {}, {}, joined, q, y, {}, {}}, {.mode = BatchnormMode::train}),
      Catch::Matchers::StartsWith("batchnorm: running_mean"));
  CHECK_NOTHROW(describe_batchnorm({x, {}, {}, joined, q, y, {}, {}}, {}));  // which writes none
  const TensorView inside(y.data(), Dtype::fp32, {2}, cpu.device());
  refuses({x, {}, {}, p, q, y, inside, {}}, {},
          "batchnorm: epsilon overlaps y, expected memory of its own");
  refuses({x, {}, {}, p, q, y, wrong, {}}, {},
          "batchnorm: epsilon is [2, 4], expected [num_members] = [2]");
  const TensorView last(x.data(), Dtype::fp32, {2, 6, 4}, Strides{24, 1, 6}, cpu.device());
  refuses({last, {}, {}, p, q, y, {}, {}}, {},
          "batchnorm: x has strides [24, 1, 6]: channels are last, expected the last "
          "axis contiguous");
  refuses({x.view().narrow(0, 0, 1).narrow(2, 0, 1),
           {},
           {},
           p,
           q,
           y.view().narrow(0, 0, 1).narrow(2, 0, 1),
           {},
           {}},
          {.mode = BatchnormMode::train},
          "batchnorm: batch * height * width is 1, expected >= 2 in mode train: fewer values have "
          "no variance");
  const BatchnormProblem good = describe_batchnorm({x, {}, {}, p, q, y, {}, {}});
  for (const float momentum : {-0.5f, 1.5f, std::numeric_limits<float>::quiet_NaN()}) {
    BatchnormProblem bad = good;
    bad.momentum = momentum;
    CHECK_THROWS_AS(make_batchnorm_plan(cpu, bad), Error);
  }
  CHECK_THROWS_AS(make_batchnorm_plan(cpu, good, {"wid"}), Error);
  CHECK_THROWS_MATCHES(
      make_batchnorm_plan(cpu, good).run({x, p, {}, p, q, y, {}, {}}, {Stream::cpu()}), Error,
      Message("batchnorm: gamma is present, expected none as in the plan's problem"));
}
