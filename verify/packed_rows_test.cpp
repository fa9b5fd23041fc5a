// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What pointwise, binary, dropout and softmax refuse of x and y, by operands that one check alone
// refuses.
#include "host/pointwise/packed_rows.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include "verify/support/refusals.hpp"
#include "wide/context.hpp"
#include "wide/tensor.hpp"

using namespace wide;
using Catch::Matchers::Message;
using test::Refusal;

namespace {

const PackedRows kGood{
    .num_members = 2, .rows = 4, .features = 3, .dtype = Dtype::fp32, .x = {6, 3}, .y = {6, 3}};

}  // namespace

TEST_CASE("packed rows: sizes that are none are refused by name") {
  const Refusal<PackedRows> refusals[] = {
      {[](PackedRows& p) { p.num_members = 0; }, "p: num_members is 0, expected >= 1"},
      {[](PackedRows& p) { p.rows = -1; }, "p: rows is -1, expected >= 0"},
      {[](PackedRows& p) { p.features = -3; }, "p: features is -3, expected >= 0"},
      {[](PackedRows& p) { p.dtype = Dtype::int32; },
       "p: dtype is int32, expected fp32, fp16 or bf16"}};
  test::check_refusals(kGood, refusals, [](const PackedRows& p) { require_legal_rows("p", p); });
  PackedRows huge = kGood;
  huge.rows = int64_t{1} << 62;
  CHECK_THROWS_AS(require_legal_rows("p", huge), Error);
}

TEST_CASE("packed rows: operands of another problem than the plan's are told apart") {
  const Refusal<PackedRows> refusals[] = {
      {[](PackedRows& p) { p.rows = 5; }, "p: the operands' rows is 5, expected the plan's = 4"},
      {[](PackedRows& p) { p.features = 4; },
       "p: the operands' features is 4, expected the plan's = 3"},
      {[](PackedRows& p) { p.dtype = Dtype::bf16; },
       "p: the operands are bf16, expected the plan's = fp32"},
      {[](PackedRows& p) { p.x.row = 7; },
       "p: the operands' stride of x is {row 7, member 3}, expected the plan's = {row 6, member "
       "3}"},
      {[](PackedRows& p) { p.y.member = 4; },
       "p: the operands' stride of y is {row 6, member 4}, expected the plan's = {row 6, member "
       "3}"}};
  test::check_refusals(kGood, refusals,
                       [](const PackedRows& got) { require_same_rows("p", got, kGood); });
}

TEST_CASE("packed rows: x and y that do not fit are named") {
  const Context cpu = Context::cpu();
  const Tensor x(cpu, Dtype::fp32, {4, 6}), y(cpu, Dtype::fp32, {4, 6}),
      half(cpu, Dtype::fp16, {4, 6}), storage(cpu, Dtype::fp32, {5, 6});
  const auto refuses = [](const ConstTensorView& from, const ConstTensorView& to,
                          int64_t num_members, const char* message) {
    CHECK_THROWS_MATCHES(describe_packed_rows("p", from, to, num_members, 0), Error,
                         Message(message));
  };
  CHECK_NOTHROW(require_same_rows("p", describe_packed_rows("p", x, y, 2, 0), kGood));
  CHECK_NOTHROW(describe_packed_rows("p", x, x, 2, 0));
  refuses(x, y, 0, "p: num_members is 0, expected >= 1");
  refuses(x, y, 5, "p: x is [4, 6], expected [.., num_members * features] with num_members = 5");
  refuses(ConstTensorView(x.data(), Dtype::fp32, Shape{}, cpu.device()), y, 2,
          "p: x is [], expected [.., num_members * features]");
  refuses(x, half, 2, "p: y is fp16, expected dtype = fp32");
  const ConstTensorView all_in_one(y.data(), Dtype::fp32, {4, 6}, Strides{0, 1}, cpu.device());
  CHECK_THROWS_AS(describe_packed_rows("p", x, all_in_one, 2, 0), Error);
  const ConstTensorView elsewhere(x.data(), Dtype::fp32, {4, 6}, Device{DeviceType::cuda, 0});
  refuses(elsewhere, y, 2, "p: x is on cuda:0, expected the plan's device = cpu");
  refuses(storage.view().narrow(0, 0, 4), storage.view().narrow(0, 1, 4), 2,
          "p: y overlaps x, expected x itself or memory of its own");
}
