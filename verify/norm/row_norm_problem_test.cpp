// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Every check that chain, layernorm and rmsnorm share, by operands that it alone refuses.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <vector>

#include "host/norm/row_norm.hpp"
#include "verify/support/refusals.hpp"
#include "wide/chain.hpp"
#include "wide/tensor.hpp"

using namespace wide;
using Catch::Matchers::Message;
using P = ChainProblem;
using Refusal = test::Refusal<P>;

namespace {

P good() {
  P p{.num_members = 2, .rows = 4, .features = 3, .norm = ChainNorm::layernorm};
  p.has_bias = p.has_residual = p.has_sum = p.has_gamma = p.has_beta = true;
  return complete_rows("chain", p);
}

TensorView elsewhere(Tensor& tensor) {
  return {tensor.data(), tensor.dtype(), tensor.shape(), Device{DeviceType::cuda, 0}};
}

}  // namespace

TEST_CASE("chain: sizes that no kernel could run are refused by name") {
  const Refusal refusals[] = {
      {[](P& p) { p.num_members = 0; }, "chain: num_members is 0, expected >= 1"},
      {[](P& p) { p.rows = -1; }, "chain: rows is -1, expected >= 0"},
      {[](P& p) { p.features = -1; }, "chain: features is -1, expected >= 0"},
      {[](P& p) { p.dtype = Dtype::fp8_e5m2; },
       "chain: dtype is fp8_e5m2, expected fp32, fp16 or bf16"},
      {[](P& p) { p.epsilon = -1; }, "chain: epsilon is -1, expected a finite number >= 0"},
      {[](P& p) { p.epsilon = 1 / 0.0f; }, "chain: epsilon is inf, expected a finite number >= 0"},
      {[](P& p) { p.epsilon = 0 / 0.0f; }, nullptr}};
  const auto check = [](const P& p) { complete_rows("chain", p); };
  test::check_refusals(good(), std::span(refusals).first(6), check);
  P bad = good();
  refusals[6].spoil(bad);
  CHECK_THROWS_AS(check(bad), Error);
  bad = good();
  bad.rows = int64_t{1} << 62;
  CHECK_THROWS_AS(check(bad), Error);
}

TEST_CASE("chain: operands of another problem than the plan's are told apart") {
  const Refusal refusals[] = {
      {[](P& p) { p.num_members = 3; },
       "chain: the operands' num_members is 3, expected the plan's = 2"},
      {[](P& p) { p.rows = 5; }, "chain: the operands' rows is 5, expected the plan's = 4"},
      {[](P& p) { p.features = 4; }, "chain: the operands' features is 4, expected the plan's = 3"},
      {[](P& p) { p.has_bias = false; },
       "chain: bias is absent, expected one as in the plan's problem"},
      {[](P& p) { p.has_residual = false; },
       "chain: residual is absent, expected one as in the plan's problem"},
      {[](P& p) { p.has_sum = false; },
       "chain: sum is absent, expected one as in the plan's problem"},
      {[](P& p) { p.has_gamma = false; },
       "chain: gamma is absent, expected one as in the plan's problem"},
      {[](P& p) { p.has_beta = false; },
       "chain: beta is absent, expected one as in the plan's problem"},
      {[](P& p) { p.dtype = Dtype::fp16; },
       "chain: the operands' dtype is fp16, expected the plan's = fp32"},
      {[](P& p) { p.x.row = 7; },
       "chain: the operands' stride of x is {row 7, member 3}, expected the plan's = {row 6, "
       "member 3}"},
      {[](P& p) { p.y.row = 7; },
       "chain: the operands' stride of y is {row 7, member 3}, expected the plan's = {row 6, "
       "member 3}"},
      {[](P& p) { p.residual.row = 7; },
       "chain: the operands' stride of residual is {row 7, member 3}, expected the plan's = {row "
       "6, member 3}"},
      {[](P& p) { p.sum.row = 7; },
       "chain: the operands' stride of sum is {row 7, member 3}, expected the plan's = {row 6, "
       "member 3}"},
      {[](P& p) { p.beta_member_stride = 4; },
       "chain: the operands' member stride of beta is 4, expected the plan's = 3"},
      {[](P& p) { p.epsilon = 1; },
       "chain: the operands' epsilon is 1, expected the plan's = 1e-05"}};
  test::check_refusals(good(), refusals,
                       [](const P& got) { require_same_chain("chain", got, good()); });
}

TEST_CASE("chain: operands that do not fit each other are named") {
  const Context cpu = Context::cpu();
  Tensor x(cpu, Dtype::fp32, {4, 6}), y(cpu, Dtype::fp32, {4, 6}), sum(cpu, Dtype::fp32, {4, 6}),
      residual(cpu, Dtype::fp32, {4, 6}), gamma(cpu, Dtype::fp32, {2, 3}),
      bias(cpu, Dtype::fp32, {2, 3}), flat(cpu, Dtype::fp32, {6}), half(cpu, Dtype::fp16, {4, 6}),
      spread(cpu, Dtype::fp32, {2, 6}), storage(cpu, Dtype::fp32, {4, 12}),
      few(cpu, Dtype::fp32, {3, 6});
  P like{.num_members = 2, .norm = ChainNorm::layernorm};
  const auto refuses = [&](const ChainArguments& a, const char* message) {
    CHECK_THROWS_MATCHES(describe_chain(a, like), Error, Message(message));
  };
  CHECK_NOTHROW(describe_chain({x, bias, residual, gamma, {}, y, sum}, like));
  CHECK_NOTHROW(describe_chain({x, bias, residual, gamma, {}, residual, x}, like));
  refuses({x, flat, residual, {}, {}, y, {}},
          "chain: bias is [6], expected [num_members, features]");
  const TensorView steps(spread.data(), Dtype::fp32, {2, 3}, Strides{6, 2}, cpu.device()),
      same(spread.data(), Dtype::fp32, {2, 3}, Strides{0, 1}, cpu.device());
  refuses({x, {}, {}, steps, {}, y, {}},
          "chain: gamma has strides [6, 2], expected a last stride of 1");
  refuses({x, {}, {}, same, {}, y, {}},
          "chain: gamma has strides [0, 1], expected members of their own: a first stride above 0");
  refuses({x, {}, half, gamma, {}, y, {}}, "chain: residual is fp16, expected dtype = fp32");
  refuses({x, {}, {}, gamma, {}, half, {}}, "chain: y is fp16, expected dtype = fp32");
  refuses({x, {}, {}, gamma, {}, y, few}, "chain: sum is [3, 6], expected the rows of x = [4, 6]");
  const TensorView as_one(y.data(), Dtype::fp32, {4, 6}, Strides{0, 1}, cpu.device());
  CHECK_THROWS_AS(describe_chain({x, {}, {}, gamma, {}, as_one, {}}, like), Error);
  refuses({elsewhere(x), {}, {}, gamma, {}, y, {}},
          "chain: x is on cuda:0, expected the plan's device = cpu");
  refuses({x, {}, {}, elsewhere(gamma), {}, y, {}},
          "chain: gamma is on cuda:0, expected the plan's device = cpu");
  refuses({x, {}, elsewhere(residual), gamma, {}, y, {}},
          "chain: residual is on cuda:0, expected the plan's device = cpu");
  refuses({x, {}, {}, gamma, {}, y, elsewhere(sum)},
          "chain: sum is on cuda:0, expected the plan's device = cpu");
  const TensorView left = storage.view().narrow(1, 0, 6), middle = storage.view().narrow(1, 3, 6);
  refuses({left, {}, {}, gamma, {}, middle, {}},
          "chain: y overlaps x, expected x itself or memory of its own");
  const TensorView in_y(y.data(), Dtype::fp32, {2, 3}, cpu.device());
  refuses({x, in_y, {}, gamma, {}, y, {}}, "chain: y overlaps bias, expected memory of its own");
  refuses({x, {}, {}, in_y, {}, y, {}}, "chain: y overlaps gamma, expected memory of its own");
  refuses({x, {}, {}, gamma, in_y, y, {}}, "chain: y overlaps beta, expected memory of its own");
  like.num_members = 4;
  refuses({x, {}, {}, {}, {}, y, {}},
          "chain: x is [4, 6], expected [.., num_members * features] with num_members = 4");
}

TEST_CASE("chain: a plan's members and device are checked") {
  const Context cpu = Context::cpu();
  const ChainPlan plan = make_chain_plan(cpu, good());
  Tensor x(cpu, Dtype::fp32, {4, 6}), y(cpu, Dtype::fp32, {4, 6}), gamma(cpu, Dtype::fp32, {2, 3}),
      own(cpu, Dtype::fp32, {3}), few(cpu, Dtype::fp32, {1, 3});
  const ChainMember member{own, own, own};
  CHECK_THROWS_MATCHES(
      plan.prepare_weights(std::vector{member, member}, {gamma, few, gamma}, Stream::cpu()), Error,
      Message("chain: gamma is [1, 3], expected [num_members, features] = [2, 3]"));
  const ChainArguments gone{elsewhere(x), {}, {}, {}, {}, elsewhere(y), {}};
  CHECK_THROWS_MATCHES(plan.run(gone, {Stream::cpu()}), Error,
                       Message("chain: y is on cuda:0, expected the plan's device = cpu"));
  CHECK_THROWS_MATCHES(plan.run({x, {}, {}, {}, {}, y, {}}, {Stream::cpu()}), Error,
                       Message("chain: bias is absent, expected one as in the plan's problem"));
}
