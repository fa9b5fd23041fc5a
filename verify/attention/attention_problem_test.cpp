// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Every check of attention's problems and operands, by one that it alone refuses.
#include "host/attention/attention_problem.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <functional>
#include <vector>

#include "verify/support/refusals.hpp"
#include "wide/attention.hpp"
#include "wide/tensor.hpp"

using namespace wide;
using Catch::Matchers::Message;
using P = AttentionProblem;
using Refusal = test::Refusal<P>;

namespace {

P good() {
  P p{.num_members = 2, .batch = 2, .seq = 3, .features = 8, .heads = 2};
  p.is_cross = p.has_bias = true;
  p.kv_seq = 5;
  p.key_features = 6;
  p.value_features = 7;
  p.key_lengths = KeyLengths::per_member;
  return p;
}

/// Operands of good().
struct Operands {
  Context cpu = Context::cpu();
  Tensor x{cpu, Dtype::fp32, {2, 3, 16}}, key{cpu, Dtype::fp32, {2, 5, 12}},
      value{cpu, Dtype::fp32, {2, 5, 14}}, y{cpu, Dtype::fp32, {2, 3, 16}},
      square{cpu, Dtype::fp32, {2, 8, 8}}, k_weight{cpu, Dtype::fp32, {2, 8, 6}},
      v_weight{cpu, Dtype::fp32, {2, 8, 7}}, qkv_bias{cpu, Dtype::fp32, {2, 24}},
      bias{cpu, Dtype::fp32, {2, 8}}, lengths{cpu, Dtype::int32, {2, 2}};

  AttentionArguments arguments() {
    AttentionArguments a;
    a.x = x, a.key = key, a.value = value, a.y = y, a.key_lengths = lengths;
    a.parameters.q_weight = a.parameters.out_weight = square;
    a.parameters.k_weight = k_weight, a.parameters.v_weight = v_weight;
    a.parameters.qkv_bias = qkv_bias, a.parameters.out_bias = bias;
    return a;
  }
};

TensorView elsewhere(Tensor& tensor) {
  return {tensor.data(), tensor.dtype(), tensor.shape(), Device{DeviceType::cuda, 0}};
}

}  // namespace

TEST_CASE("attention: sizes that no kernel could run are refused by name") {
  const Refusal refusals[] = {
      {[](P& p) { p.num_members = 0; }, "attention: num_members is 0, expected >= 1"},
      {[](P& p) { p.batch = -1; }, "attention: batch is -1, expected >= 0"},
      {[](P& p) { p.seq = -1; }, "attention: seq is -1, expected >= 0"},
      {[](P& p) { p.kv_seq = -1; }, "attention: kv_seq is -1, expected >= 0"},
      {[](P& p) { p.features = 0; }, "attention: features is 0, expected >= 1"},
      {[](P& p) { p.heads = 0; }, "attention: heads is 0, expected >= 1"},
      {[](P& p) { p.key_features = -1; }, "attention: key_features is -1, expected >= 0"},
      {[](P& p) { p.value_features = -1; }, "attention: value_features is -1, expected >= 0"}};
  test::check_refusals(good(), refusals, complete_attention_problem);
  P many = good();
  many.num_members = int64_t{1} << 60;
  CHECK_THROWS_AS(complete_attention_problem(many), Error);
}

TEST_CASE("attention: operands of another problem than the plan's are told apart") {
  const P plan = complete_attention_problem(good());
  const Refusal refusals[] = {
      {[](P& p) { p.dtype = Dtype::fp16; },
       "attention: the operands' dtype is fp16, expected the plan's = fp32"},
      {[](P& p) { p.batch = 3; }, "attention: the operands' batch is 3, expected the plan's = 2"},
      {[](P& p) { p.seq = 4; }, "attention: the operands' seq is 4, expected the plan's = 3"},
      {[](P& p) { p.is_cross = false; },
       "attention: key is absent, expected one as in the plan's problem"},
      {[](P& p) { p.kv_seq = 4; }, "attention: the operands' kv_seq is 4, expected the plan's = 5"},
      {[](P& p) { p.features = 6; },
       "attention: the operands' features is 6, expected the plan's = 8"},
      {[](P& p) { p.key_features = 8; },
       "attention: the operands' key_features is 8, expected the plan's = 6"},
      {[](P& p) { p.value_features = 8; },
       "attention: the operands' value_features is 8, expected the plan's = 7"},
      {[](P& p) { p.has_bias = false; },
       "attention: qkv_bias is absent, expected one as in the plan's problem"},
      {[](P& p) { p.key_lengths = KeyLengths::none; },
       "attention: the operands' key_lengths is none, expected the plan's = [num_members, batch]"},
      {[](P& p) { p.x.row = 17; },
       "attention: the operands' stride of x is {row 17, member 8}, "
       "expected the plan's = {row 16, member 8}"},
      {[](P& p) { p.key.member = 7; },
       "attention: the operands' stride of key is {row 12, member 7}, "
       "expected the plan's = {row 12, member 6}"},
      {[](P& p) { p.value.row = 15; },
       "attention: the operands' stride of value is {row 15, member 7}, "
       "expected the plan's = {row 14, member 7}"},
      {[](P& p) { p.y.row = 17; },
       "attention: the operands' stride of y is {row 17, member 8}, "
       "expected the plan's = {row 16, member 8}"},
      {[](P& p) { p.out_weight.row = 9; },
       "attention: the operands' stride of out_weight is {row 9, member 64}, "
       "expected the plan's = {row 8, member 64}"},
      {[](P& p) { p.is_causal = !p.is_causal; },
       "attention: the operands' is_causal is true, expected the plan's = false"}};
  test::check_refusals(plan, refusals,
                       [&](const P& got) { require_same_attention_problem(got, plan); });
}

TEST_CASE("attention: operands that do not fit each other are named") {
  Operands o;
  const Context& cpu = o.cpu;
  const P like{.num_members = 2, .heads = 2};
  const AttentionArguments right = o.arguments();
  REQUIRE_NOTHROW(describe_attention(right, like));
  const auto refuses = [&](const std::function<void(AttentionArguments&)>& spoil,
                           const char* message) {
    AttentionArguments arguments = right;
    spoil(arguments);
    CHECK_THROWS_MATCHES(describe_attention(arguments, like), Error, Message(message));
  };
  Tensor half(cpu, Dtype::fp16, {2, 8, 8}), half_y(cpu, Dtype::fp16, {2, 3, 16}),
      half_bias(cpu, Dtype::fp16, {2, 8}), room(cpu, Dtype::fp32, {2, 3, 32}),
      one(cpu, Dtype::int32, {3});
  const TensorView steps(room.data(), Dtype::fp32, {2, 3, 16}, Strides{96, 32, 2}, cpu.device()),
      at_once(room.data(), Dtype::fp32, {2, 3, 2, 8}, Strides{0, 0, 0, 1}, cpu.device()),
      columns(room.data(), Dtype::fp32, {2, 8, 8}, Strides{64, 1, 8}, cpu.device()),
      every_second(room.data(), Dtype::fp32, {2, 8}, Strides{16, 2}, cpu.device()),
      odd_lengths(o.lengths.data(), Dtype::int32, {1, 2}, Strides{4, 2}, cpu.device());
  refuses([&](auto& a) { a.key = {}; }, "attention: value is present, expected none as key");
  refuses([&](auto& a) { a.y = half_y; }, "attention: y is fp16, expected dtype = fp32");
  refuses([&](auto& a) { a.x = steps; },
          "attention: x has strides [96, 32, 2], expected the last axis contiguous: stride 1");
  refuses([&](auto& a) { a.x = at_once; },
          "attention: x has strides [0, 0, 0, 1], expected positions or members that do not all "
          "start at one place");
  refuses([&](auto& a) { a.parameters.out_weight = half; },
          "attention: out_weight is fp16, expected dtype = fp32");
  refuses([&](auto& a) { a.parameters.out_weight = columns; },
          "attention: out_weight has strides [64, 1, 8], expected the last axis contiguous: stride "
          "1");
  refuses([&](auto& a) { a.parameters.out_bias = half_bias; },
          "attention: out_bias is fp16, expected dtype = fp32");
  refuses([&](auto& a) { a.parameters.out_bias = o.square; },
          "attention: out_bias is [2, 8, 8], expected [num_members, out] = [2, 8]");
  refuses([&](auto& a) { a.parameters.out_bias = every_second; },
          "attention: out_bias has strides [16, 2], expected the last axis contiguous: stride 1");
  refuses([&](auto& a) { a.key_lengths = one; },
          "attention: key_lengths is [3], expected [batch] = [2]");
  refuses([&](auto& a) { a.key_lengths = odd_lengths; },
          "attention: key_lengths is [1, 2], expected [num_members, batch] = [2, 2]");
  refuses([&](auto& a) { a.key_lengths = elsewhere(o.lengths); },
          "attention: key_lengths is on cuda:0, expected the plan's device = cpu");
  refuses([&](auto& a) { a.parameters.v_weight = elsewhere(o.v_weight); },
          "attention: v_weight is on cuda:0, expected the plan's device = cpu");
  const TensorView lengths_apart(o.lengths.data(), Dtype::int32, {2}, Strides{2}, cpu.device());
  refuses([&](auto& a) { a.key_lengths = lengths_apart; },
          "attention: key_lengths has strides [2], expected the last axis contiguous: stride 1");
  // Parameters that all members share would have to be told from strides that are left open.
  const TensorView one_bias(o.bias.data(), Dtype::fp32, {2, 8}, Strides{0, 1}, cpu.device()),
      one_length(o.lengths.data(), Dtype::int32, {2, 2}, Strides{0, 1}, cpu.device());
  refuses([&](auto& a) { a.parameters.out_bias = one_bias; },
          "attention: out_bias has strides [0, 1], expected members of their own: a first stride "
          "above 0");
  refuses(
      [&](auto& a) { a.key_lengths = one_length; },
      "attention: key_lengths has strides [0, 1], expected members of their own: a first stride "
      "above 0");
  CHECK_THROWS_MATCHES(describe_attention(right, {.num_members = 0, .heads = 2}), Error,
                       Message("attention: num_members is 0, expected >= 1"));
}

TEST_CASE("attention: members that do not fit the plan are named") {
  const Context cpu = Context::cpu();
  P p{.num_members = 2, .batch = 1, .seq = 2, .features = 8, .heads = 2};
  p.has_bias = true;
  const AttentionPlan plan = make_attention_plan(cpu, p);
  Tensor qkv(cpu, Dtype::fp32, {2, 24, 8}), out(cpu, Dtype::fp32, {2, 8, 8}),
      qkv_bias(cpu, Dtype::fp32, {2, 24}), out_bias(cpu, Dtype::fp32, {2, 8}),
      x(cpu, Dtype::fp32, {1, 2, 16}), y(cpu, Dtype::fp32, {1, 2, 16});
  const auto member_of = [&]<class View>(std::type_identity<View>) {
    const auto first_of = [&](Tensor& tensor, const Shape& shape) {
      return TensorView(tensor.data(), Dtype::fp32, shape, cpu.device());
    };
    BasicAttentionParameters<View> member;
    member.qkv_weight = first_of(qkv, {24, 8});
    member.out_weight = first_of(out, {8, 8});
    member.qkv_bias = first_of(qkv_bias, {24});
    member.out_bias = first_of(out_bias, {8});
    return member;
  };
  const auto member = member_of(std::type_identity<ConstTensorView>());
  const auto target = member_of(std::type_identity<TensorView>());
  BasicAttentionParameters<TensorView> packed;
  packed.qkv_weight = qkv, packed.out_weight = out;
  packed.qkv_bias = qkv_bias, packed.out_bias = out_bias;
  AttentionParameters source;
  source.qkv_weight = qkv, source.out_weight = out;
  source.qkv_bias = qkv_bias, source.out_bias = out_bias;
  auto less = packed;
  less.out_bias = {};
  auto without = member;
  without.qkv_weight = {};
  CHECK_THROWS_MATCHES(
      plan.prepare_weights(std::vector{member, member}, less, Stream::cpu()), Error,
      Message("attention: out_bias is absent, expected one: the plan's problem has it"));
  CHECK_THROWS_MATCHES(
      plan.prepare_weights(std::vector{member, without}, packed, Stream::cpu()), Error,
      Message("attention: qkv_weight of member 1 is absent, expected one: the plan's problem has "
              "it"));
  CHECK_THROWS_MATCHES(plan.restore_weights(source, std::vector{target}, Stream::cpu()), Error,
                       Message("attention: members has 1 entry, expected num_members = 2"));
  auto extra = source;
  extra.q_weight = out;
  CHECK_THROWS_MATCHES(
      plan.restore_weights(extra, std::vector{target, target}, Stream::cpu()), Error,
      Message("attention: q_weight is present, expected none: the plan's problem has none"));
  auto no_bias = target;
  no_bias.out_bias = {};
  CHECK_THROWS_MATCHES(
      plan.restore_weights(source, std::vector{target, no_bias}, Stream::cpu()), Error,
      Message("attention: out_bias of member 1 is absent, expected one: the plan's problem has "
              "it"));
  AttentionArguments gone;
  gone.x = elsewhere(x), gone.y = elsewhere(y);
  CHECK_THROWS_MATCHES(plan.run(gone, {Stream::cpu()}), Error,
                       Message("attention: y is on cuda:0, expected the plan's device = cpu"));
}
