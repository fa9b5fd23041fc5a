// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Every check of flash_attention's problems, by a problem that it alone refuses.
#include "host/attention/flash_attention_problem.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <functional>

#include "verify/support/refusals.hpp"
#include "wide/flash_attention.hpp"
#include "wide/tensor.hpp"

using namespace wide;
using Catch::Matchers::Message;
using P = FlashAttentionProblem;
using Refusal = test::Refusal<P>;

namespace {

P good() {
  P p{.num_members = 2, .batch = 2, .seq = 3, .kv_seq = 5, .heads = 4, .kv_heads = 2};
  p.head_dim = 8;
  p.key_lengths = KeyLengths::per_member;
  p.has_slopes = p.has_bias = true;
  p.bias = {120, 60, 15, 5};
  return p;
}

TensorView elsewhere(Tensor& tensor) {
  return {tensor.data(), tensor.dtype(), tensor.shape(), Device{DeviceType::cuda, 0}};
}

}  // namespace

TEST_CASE("flash_attention: sizes and strides that no kernel could run are refused by name") {
  const Refusal refusals[] = {
      {[](P& p) { p.num_members = 0; }, "flash_attention: num_members is 0, expected >= 1"},
      {[](P& p) { p.batch = -1; }, "flash_attention: batch is -1, expected >= 0"},
      {[](P& p) { p.seq = -1; }, "flash_attention: seq is -1, expected in [0, 1073741824]"},
      {[](P& p) { p.kv_seq = -1; }, "flash_attention: kv_seq is -1, expected in [0, 1073741824]"},
      {[](P& p) { p.heads = 0; }, "flash_attention: heads is 0, expected >= 1"},
      {[](P& p) { p.kv_heads = -2; }, "flash_attention: kv_heads is -2, expected >= 1"},
      {[](P& p) { p.head_dim = 0; }, "flash_attention: head_dim is 0, expected in [1, 256]"},
      {[](P& p) {
         p.q = {-1, 32};
       },
       "flash_attention: q has strides {row -1, member 32}, expected none below 0"},
      {[](P& p) {
         p.v = {int64_t{1} << 60, 16};
       },
       "flash_attention: v has strides {row 1152921504606846976, member 16}, expected an extent "
       "that fits in 64 bits"},
      {[](P& p) { p.bias.head = -1; }, "flash_attention: a stride of bias is -1, expected >= 0"},
      {[](P& p) { p.key_lengths_member_stride = -2; },
       "flash_attention: key_lengths_member_stride is -2, expected >= 0"},
      {[](P& p) {
         p.key_lengths = KeyLengths::none;
         p.aligns_to_lengths = true;
       },
       "flash_attention: aligns_to_lengths is true, but key_lengths is none, expected lengths to "
       "align with"},
      {[](P& p) { p.slopes_member_stride = -4; },
       "flash_attention: slopes_member_stride is -4, expected >= 0"}};
  test::check_refusals(good(), refusals, complete_flash_attention_problem);
  P bad = good();
  bad.y = {1, 32};
  CHECK_THROWS_AS(complete_flash_attention_problem(bad), Error);
  bad = good();
  bad.batch = int64_t{1} << 60;
  CHECK_THROWS_AS(complete_flash_attention_problem(bad), Error);
}

TEST_CASE("flash_attention: operands of another problem than the plan's are told apart") {
  const P plan = complete_flash_attention_problem(good());
  const Refusal refusals[] = {
      {[](P& p) { p.dtype = Dtype::fp16; },
       "flash_attention: the operands' dtype is fp16, expected the plan's = fp32"},
      {[](P& p) { p.batch = 3; },
       "flash_attention: the operands' batch is 3, expected the plan's = 2"},
      {[](P& p) { p.seq = 4; }, "flash_attention: the operands' seq is 4, expected the plan's = 3"},
      {[](P& p) { p.kv_seq = 4; },
       "flash_attention: the operands' kv_seq is 4, expected the plan's = 5"},
      {[](P& p) { p.head_dim = 9; },
       "flash_attention: the operands' head_dim is 9, expected the plan's = 8"},
      {[](P& p) { p.key_lengths = KeyLengths::shared; },
       "flash_attention: the operands' key_lengths is shared [batch], expected the plan's = "
       "[num_members, batch]"},
      {[](P& p) { p.has_slopes = false; },
       "flash_attention: slopes is absent, expected one as in the plan's problem"},
      {[](P& p) { p.has_bias = false; },
       "flash_attention: bias is absent, expected one as in the plan's problem"},
      {[](P& p) { p.q.row = 65; },
       "flash_attention: the operands' stride of q is {row 65, member 32}, expected the plan's = "
       "{row 64, member 32}"},
      {[](P& p) { p.k.row = 33; },
       "flash_attention: the operands' stride of k is {row 33, member 16}, expected the plan's = "
       "{row 32, member 16}"},
      {[](P& p) { p.v.member = 17; },
       "flash_attention: the operands' stride of v is {row 32, member 17}, expected the plan's = "
       "{row 32, member 16}"},
      {[](P& p) { p.y.row = 65; },
       "flash_attention: the operands' stride of y is {row 65, member 32}, expected the plan's = "
       "{row 64, member 32}"},
      {[](P& p) { p.key_lengths_member_stride = 3; },
       "flash_attention: the operands' member stride of key_lengths is 3, expected the plan's = 2"},
      {[](P& p) { p.slopes_member_stride = 5; },
       "flash_attention: the operands' member stride of slopes is 5, expected the plan's = 4"},
      {[](P& p) { p.bias.member = 1; },
       "flash_attention: the operands' stride of bias is {member 1, batch 60, head 15, query 5}, "
       "expected the plan's = {member 120, batch 60, head 15, query 5}"},
      {[](P& p) { p.bias.batch = 1; },
       "flash_attention: the operands' stride of bias is {member 120, batch 1, head 15, query 5}, "
       "expected the plan's = {member 120, batch 60, head 15, query 5}"},
      {[](P& p) { p.bias.head = 1; },
       "flash_attention: the operands' stride of bias is {member 120, batch 60, head 1, query 5}, "
       "expected the plan's = {member 120, batch 60, head 15, query 5}"},
      {[](P& p) { p.bias.query = 1; },
       "flash_attention: the operands' stride of bias is {member 120, batch 60, head 15, query 1}, "
       "expected the plan's = {member 120, batch 60, head 15, query 5}"},
      {[](P& p) { p.is_causal = true; },
       "flash_attention: the operands' is_causal is true, expected the plan's = false"},
      {[](P& p) { p.aligns_to_lengths = true; },
       "flash_attention: the operands' aligns_to_lengths is true, expected the plan's = false"}};
  test::check_refusals(plan, refusals,
                       [&](const P& got) { require_same_flash_attention_problem(got, plan); });
}

TEST_CASE("flash_attention: strides of masks that cannot be read are named") {
  const Context cpu = Context::cpu();
  Tensor q(cpu, Dtype::fp32, {2, 3, 16}), k(cpu, Dtype::fp32, {2, 5, 16}),
      y(cpu, Dtype::fp32, {2, 3, 16}), lengths(cpu, Dtype::int32, {2, 4}),
      slopes(cpu, Dtype::fp32, {2, 4}), bias(cpu, Dtype::fp32, {2, 2, 2, 3, 10}),
      half_bias(cpu, Dtype::fp16, {2, 2, 2, 3, 5});
  const P like{.num_members = 2, .heads = 2};
  const auto refuses = [&](const std::function<void(FlashAttentionArguments&)>& spoil,
                           const char* message) {
    FlashAttentionArguments arguments{q, k, k, {}, {}, y};
    spoil(arguments);
    CHECK_THROWS_MATCHES(describe_flash_attention(arguments, like), Error, Message(message));
  };
  const auto view = [&](Tensor& tensor, const Shape& shape, const Strides& strides) {
    return TensorView(tensor.data(), tensor.dtype(), shape, strides, cpu.device());
  };
  refuses(
      [&](auto& a) {
        a.key_lengths = view(lengths, {2, 2}, Strides{4, 2});
      },
      "flash_attention: key_lengths has strides [4, 2], expected a last stride of 1");
  // What all members share would have to be told from a stride that is left open.
  refuses(
      [&](auto& a) {
        a.key_lengths = view(lengths, {2, 2}, Strides{0, 1});
      },
      "flash_attention: key_lengths has strides [0, 1], expected members of their own: a first "
      "stride above 0");
  refuses(
      [&](auto& a) {
        a.slopes = view(slopes, {2, 2}, Strides{0, 1});
      },
      "flash_attention: slopes has strides [0, 1], expected members of their own: a first "
      "stride above 0");
  refuses(
      [&](auto& a) {
        a.k = a.v = view(k, {2, 5, 2, 8}, Strides{0, 0, 0, 1});
      },
      "flash_attention: k has strides [0, 0, 0, 1], expected positions or members that do not "
      "all start at one place");
  refuses(
      [&](auto& a) {
        a.bias = view(bias, {2, 2, 2, 3, 5}, Strides{120, 60, 30, 10, 2});
      },
      "flash_attention: bias has strides [120, 60, 30, 10, 2], expected a last stride of 1");
  refuses([&](auto& a) { a.bias = half_bias; },
          "flash_attention: bias is fp16, expected dtype = fp32");
  refuses([&](auto& a) { a.k = elsewhere(k); },
          "flash_attention: k is on cuda:0, expected the plan's device = cpu");
  CHECK_THROWS_MATCHES(
      describe_flash_attention({q, k, k, {}, {}, y}, {.num_members = 0, .heads = 2}), Error,
      Message("flash_attention: num_members is 0, heads is 2, expected both >= 1"));
  const FlashAttentionPlan plan =
      make_flash_attention_plan(cpu, describe_flash_attention({q, k, k, {}, {}, y}, like));
  CHECK_THROWS_MATCHES(
      plan.run({elsewhere(q), elsewhere(k), elsewhere(k), {}, {}, elsewhere(y)}, {Stream::cpu()}),
      Error, Message("flash_attention: y is on cuda:0, expected the plan's device = cpu"));
}
