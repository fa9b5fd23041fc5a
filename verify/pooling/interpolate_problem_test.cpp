// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Every check of interpolate's problems, by a problem that it alone refuses; and how images are
// spread over blocks.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <limits>

#include "host/pooling/interpolate_params.hpp"
#include "kernels/pooling/interpolate_cut.hpp"
#include "verify/support/refusals.hpp"
#include "wide/context.hpp"
#include "wide/interpolate.hpp"
#include "wide/tensor.hpp"

using namespace wide;
using Catch::Matchers::Message;
using P = InterpolateProblem;
using Refusal = test::Refusal<P>;

namespace {

P good() {
  P p{.num_members = 2, .batch = 3, .channels = 4, .height = 6, .width = 8};
  p.out_height = 12, p.out_width = 16;
  return p;
}

constexpr int64_t kHuge = int64_t{1} << 40;

const Refusal kRefusals[] = {
    {[](P& p) { p.num_members = 0; }, "interpolate: num_members is 0, expected >= 1"},
    {[](P& p) { p.batch = -1; }, "interpolate: batch is -1, expected >= 0"},
    {[](P& p) { p.channels = -1; }, "interpolate: channels is -1, expected >= 0"},
    {[](P& p) { p.height = 0; }, "interpolate: x's number of rows is 0, expected 1 to 2^30"},
    {[](P& p) { p.width = kHuge; },
     "interpolate: x's number of columns is 1099511627776, expected 1 to 2^30"},
    {[](P& p) { p.out_height = -1; }, "interpolate: y's number of rows is -1, expected 1 to 2^30"},
    {[](P& p) { p.out_width = kHuge; },
     "interpolate: y's number of columns is 1099511627776, expected 1 to 2^30"},
    {[](P& p) { p.height = p.width = 1 << 20; },
     "interpolate: height * width is 1099511627776, expected 1 to 2^30"},
    {[](P& p) { p.out_height = p.out_width = 1 << 20; },
     "interpolate: out_height * out_width is 1099511627776, expected 1 to 2^30"},
    {[](P& p) { p.dtype = Dtype::int32; },
     "interpolate: dtype is int32, expected fp32, fp16 or bf16"},
    {[](P& p) { p.row_scale = -2; },
     "interpolate: the scale of rows is -2, expected 0 or 2^-30 to 2^30"},
    {[](P& p) { p.column_scale = std::numeric_limits<float>::quiet_NaN(); },
     "interpolate: the scale of columns is nan, expected 0 or 2^-30 to 2^30"},
    {[](P& p) { p.column_scale = 1.5f; },
     "interpolate: y's number of columns is 16, expected up to x's 8 times 1.5, and 1"}};

}  // namespace

TEST_CASE("interpolate: sizes and scales that no kernel could run are refused by name") {
  const Context cpu = Context::cpu();
  test::check_refusals(good(), kRefusals, [&](const P& p) { make_interpolate_plan(cpu, p); });
  P many = good();
  many.num_members = int64_t{1} << 60;
  CHECK_THROWS_AS(make_interpolate_plan(cpu, many), Error);
  CHECK_THROWS_MATCHES(
      make_interpolate_plan(cpu, good(), {.policy = "x"}), Error,
      Message("interpolate: policy is \"x\", expected none: its strategies have no policies"));
}

TEST_CASE("interpolate: operands that are not the plan's are named") {
  const Context cpu = Context::cpu();
  const InterpolatePlan plan = make_interpolate_plan(cpu, good());
  Tensor x(cpu, Dtype::fp32, {3, 8, 6, 8}), y(cpu, Dtype::fp32, {3, 8, 12, 16}),
      half_x(cpu, Dtype::fp16, {3, 8, 6, 8}), half_y(cpu, Dtype::fp16, {3, 8, 12, 16}),
      flat(cpu, Dtype::fp32, {8, 12}), more(cpu, Dtype::fp32, {3, 10, 12, 16}),
      wide_x(cpu, Dtype::fp32, {3, 9, 6, 8}), narrow(cpu, Dtype::fp32, {3, 8, 12, 15});
  const auto refuses = [&](const ConstTensorView& from, const TensorView& to, const char* message) {
    CHECK_THROWS_MATCHES(plan.run({from, to}, {Stream::cpu()}), Error, Message(message));
  };
  CHECK_NOTHROW(plan.run({x, y}, {Stream::cpu()}));
  refuses(x, flat,
          "interpolate: y is [8, 12], expected [batch, num_members * channels, width] or [batch, "
          "num_members * channels, height, width]");
  refuses(x, more,
          "interpolate: y is [3, 10, 12, 16], expected the batch and channels of x = [3, 8, 6, 8]");
  refuses(x, narrow, "interpolate: the operands' out_width is 15, expected the plan's = 16");
  refuses(half_x, half_y, "interpolate: the operands' dtype is fp16, expected the plan's = fp32");
  refuses(x, half_y, "interpolate: y is fp16, expected dtype = fp32");
  refuses(wide_x.view().narrow(1, 0, 8), y,
          "interpolate: the operands' stride of x is {batch 432, member 192, channel 48, row 8, "
          "column 1}, expected the plan's = {batch 384, member 192, channel 48, row 8, column 1}");
  const auto elsewhere = [](Tensor& tensor) {
    return TensorView(tensor.data(), tensor.dtype(), tensor.shape(), Device{DeviceType::cuda, 0});
  };
  refuses(elsewhere(x), y, "interpolate: x is on cuda:0, expected the plan's device = cpu");
  refuses(elsewhere(x), elsewhere(y),
          "interpolate: y is on cuda:0, expected the plan's device = cpu");
  const TensorView as_one(y.data(), Dtype::fp32, {3, 8, 12, 16}, Strides{1536, 0, 16, 1}, Device{});
  CHECK_THROWS_AS(plan.run({x, as_one}, {Stream::cpu()}), Error);
  const TensorView inside(y.data(), Dtype::fp32, {3, 8, 6, 8}, Device{});
  refuses(inside, y, "interpolate: y overlaps x, expected memory of its own");
  const TensorView last(x.data(), Dtype::fp32, {3, 8, 6, 8}, Strides{384, 1, 64, 8}, Device{});
  CHECK_THROWS_MATCHES(plan.run({last, y}, {Stream::cpu()}), Error,
                       Message("interpolate: x has strides [384, 1, 64, 8]: channels are last, "
                               "expected the last axis contiguous"));
}

TEST_CASE("interpolate: images are spread over enough blocks") {
  const auto cut_of = [](int64_t members, int64_t side, int64_t out, Dtype dtype) {
    P p{.num_members = members, .batch = 8, .channels = 16};
    p.height = p.width = side, p.out_height = p.out_width = out, p.dtype = dtype;
    const auto size = static_cast<int>(16 / dtype_bytes(dtype));
    const kernels::InterpolateParams params =
        interpolate_params(make_interpolate_plan(Context::cpu(), p).problem());
    return kernels::InterpolateCutter(params, size).cut();
  };
  CHECK(cut_of(8, 8, 16, Dtype::fp32).images == 16);     // a copy for each thread
  CHECK(cut_of(8192, 8, 16, Dtype::fp32).images == 64);  // 16 KiB
  CHECK(cut_of(8192, 8, 48, Dtype::fp32).images == 14);  // 32768 outputs
  CHECK(cut_of(8, 32, 64, Dtype::fp32).images == 1);
  CHECK(cut_of(8, 32, 64, Dtype::fp32).has_groups);
  CHECK_FALSE(cut_of(8, 32, 62, Dtype::bf16).has_groups);
  CHECK(cut_of(8, 32, 64, Dtype::fp32).parts == 16);  // of 16 groups in 64 rows
  CHECK(cut_of(64, 32, 64, Dtype::fp32).parts == 4);  // of four images
  const auto strips = cut_of(1, 4000, 8008, Dtype::fp32);
  CHECK(strips.strips == 8);
  CHECK(strips.columns % 4 == 0);
}
