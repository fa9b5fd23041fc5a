// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Every check of pooling's problems, by a problem that it alone refuses.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include "verify/support/refusals.hpp"
#include "wide/context.hpp"
#include "wide/pooling.hpp"
#include "wide/tensor.hpp"

using namespace wide;
using Catch::Matchers::Message;
using P = PoolingProblem;
using Refusal = test::Refusal<P>;

namespace {

P good() {
  P p{.num_members = 2, .batch = 3, .channels = 4, .height = 6, .width = 8};
  p.mode = PoolingMode::max;
  p.rows = p.columns = {.kernel = 2};
  return p;
}

constexpr int64_t kHuge = int64_t{1} << 40;

const Refusal kRefusals[] = {
    {[](P& p) { p.num_members = 0; }, "pooling: num_members is 0, expected >= 1"},
    {[](P& p) { p.batch = -1; }, "pooling: batch is -1, expected >= 0"},
    {[](P& p) { p.channels = -1; }, "pooling: channels is -1, expected >= 0"},
    {[](P& p) { p.height = 0; }, "pooling: height is 0, expected 1 to 1073741824"},
    {[](P& p) { p.width = kHuge; }, "pooling: width is 1099511627776, expected 1 to 1073741824"},
    {[](P& p) { p.height = p.width = 1 << 20; },
     "pooling: height * width is 1099511627776, expected 1 to 1073741824"},
    {[](P& p) { p.dtype = Dtype::int32; }, "pooling: dtype is int32, expected fp32, fp16 or bf16"},
    {[](P& p) { p.rows.kernel = 0; }, "pooling: rows.kernel is 0, expected 1 to 536870912"},
    {[](P& p) { p.columns.stride = -1; }, "pooling: columns.stride is -1, expected 1 to 536870912"},
    {[](P& p) { p.rows.padding = 2; }, "pooling: rows.padding is 2, expected 0 to 1"},
    {[](P& p) { p.columns.dilation = 0; },
     "pooling: columns.dilation is 0, expected 1 to 536870912"},
    {[](P& p) { p.columns = {.kernel = 1 << 20, .dilation = 1 << 20}; },
     "pooling: columns.dilation is 1048576, expected a window below 2^29 positions"},
    {[](P& p) {
       p.mode = PoolingMode::average;
       p.rows.dilation = 2;
     },
     "pooling: rows.dilation is 2, expected 1 for averages"},
    {[](P& p) { p.rows.kernel = 7; },
     "pooling: a window of 7 rows with dilation 1 is larger than x's 6 and padding 0"},
    {[](P& p) { p.out_width = 5; }, "pooling: y's number of columns is 5, expected 4"},
    {[](P& p) {
       p.mode = PoolingMode::adaptive_average;
       p.out_height = 0;
       p.out_width = 1;
     },
     "pooling: out_height is 0, expected 1 to 1073741824"},
    {[](P& p) {
       p.mode = PoolingMode::adaptive_average;
       p.out_height = 1;
       p.out_width = kHuge;
     },
     "pooling: out_width is 1099511627776, expected 1 to 1073741824"}};

}  // namespace

TEST_CASE("pooling: sizes and windows that no kernel could run are refused by name") {
  const Context cpu = Context::cpu();
  test::check_refusals(good(), kRefusals, [&](const P& p) { make_pooling_plan(cpu, p); });
  P many = good();
  many.num_members = int64_t{1} << 60;
  CHECK_THROWS_AS(make_pooling_plan(cpu, many), Error);
  CHECK_THROWS_MATCHES(
      make_pooling_plan(cpu, good(), {.policy = "x"}), Error,
      Message("pooling: policy is \"x\", expected none: strategy \"auto\" has its own"));
}

TEST_CASE("pooling: operands that are not the plan's are named") {
  const Context cpu = Context::cpu();
  const PoolingPlan plan = make_pooling_plan(cpu, good());
  Tensor x(cpu, Dtype::fp32, {3, 8, 6, 8}), y(cpu, Dtype::fp32, {3, 8, 3, 4}),
      half_x(cpu, Dtype::fp16, {3, 8, 6, 8}), half_y(cpu, Dtype::fp16, {3, 8, 3, 4}),
      flat(cpu, Dtype::fp32, {8, 12}), one(cpu, Dtype::fp32, {4, 8, 6, 8}),
      wide_x(cpu, Dtype::fp32, {3, 9, 6, 8});
  const auto refuses = [&](const ConstTensorView& from, const TensorView& to, const char* message) {
    CHECK_THROWS_MATCHES(plan.run({from, to}, {Stream::cpu()}), Error, Message(message));
  };
  CHECK_NOTHROW(plan.run({x, y}, {Stream::cpu()}));
  refuses(x, flat,
          "pooling: y is [8, 12], expected [batch, num_members * channels, width] or [batch, "
          "num_members * channels, height, width]");
  refuses(half_x, half_y, "pooling: the operands' dtype is fp16, expected the plan's = fp32");
  refuses(x, half_y, "pooling: y is fp16, expected dtype = fp32");
  refuses(wide_x.view().narrow(1, 0, 8), y,
          "pooling: the operands' stride of x is {batch 432, member 192, channel 48, row 8, column "
          "1}, expected the plan's = {batch 384, member 192, channel 48, row 8, column 1}");
  const auto elsewhere = [](Tensor& tensor) {
    return TensorView(tensor.data(), tensor.dtype(), tensor.shape(), Device{DeviceType::cuda, 0});
  };
  refuses(elsewhere(x), y, "pooling: x is on cuda:0, expected the plan's device = cpu");
  refuses(elsewhere(x), elsewhere(y), "pooling: y is on cuda:0, expected the plan's device = cpu");
  const TensorView as_one(y.data(), Dtype::fp32, {3, 8, 3, 4}, Strides{96, 0, 4, 1}, Device{});
  CHECK_THROWS_AS(plan.run({x, as_one}, {Stream::cpu()}), Error);
  refuses(one.view().narrow(0, 0, 3), TensorView(one.data(), Dtype::fp32, {3, 8, 3, 4}, Device{}),
          "pooling: y overlaps x, expected memory of its own");
}
