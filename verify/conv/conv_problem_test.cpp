// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Every check of conv's problems, by a problem that it alone refuses.
#include "host/conv/conv_problem.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <limits>
#include <vector>

#include "verify/support/refusals.hpp"
#include "wide/conv.hpp"
#include "wide/tensor.hpp"

using namespace wide;
using Catch::Matchers::Message;
using P = ConvProblem;
using Refusal = test::Refusal<P>;

namespace {

P good() {
  P p{.num_members = 2,
      .batch = 3,
      .in_channels = 4,
      .out_channels = 6,
      .groups = 2,
      .input = {5, 7},
      .kernel = {3, 2},
      .stride = {1, 2},
      .padding = {1, 0},
      .dilation = {2, 1}};
  p.epilogue.has_bias = true;
  p.epilogue.residual = Residual::before_activation;
  return p;
}

constexpr int64_t kMuch = int64_t{1} << 31;

const Refusal kSizes[] = {
    {[](P& p) { p.num_members = 0; },
     "conv: num_members is 0, expected a number in [1, 9223372036854775807]"},
    {[](P& p) { p.batch = -1; }, "conv: batch is -1, expected a number in [0, 2147483647]"},
    {[](P& p) { p.in_channels = -2; },
     "conv: in_channels is -2, expected a number in [0, 2147483647]"},
    {[](P& p) { p.out_channels = kMuch; },
     "conv: out_channels is 2147483648, expected a number in [0, 2147483647]"},
    {[](P& p) { p.groups = 0; }, "conv: groups is 0, expected a number in [1, 2147483647]"},
    {[](P& p) { p.groups = 4; },
     "conv: groups is 4, expected a divisor of in_channels = 4 and of out_channels = 6"},
    {[](P& p) { p.groups = 3; },
     "conv: groups is 3, expected a divisor of in_channels = 4 and of out_channels = 6"},
    {[](P& p) { p.input.height = 0; },
     "conv: input.height is 0, expected a number in [1, 2147483647]"},
    {[](P& p) { p.input.width = kMuch; },
     "conv: input.width is 2147483648, expected a number in [1, 2147483647]"},
    {[](P& p) { p.kernel.height = 0; },
     "conv: kernel.height is 0, expected a number in [1, 2147483647]"},
    {[](P& p) { p.stride.width = 0; },
     "conv: stride.width is 0, expected a number in [1, 2147483647]"},
    {[](P& p) { p.padding.height = -1; },
     "conv: padding.height is -1, expected a number in [0, 2147483647]"},
    {[](P& p) { p.dilation.width = 0; },
     "conv: dilation.width is 0, expected a number in [1, 2147483647]"},
    {[](P& p) { p.padding.width = kMuch / 2; },
     "conv: input + 2 padding along the width is 2147483655, expected a number in [1, 2147483647]"},
    {[](P& p) { p.kernel.height = 5; },
     "conv: the kernel reaches over 9 positions along the height, expected at most the padded "
     "input's = 7"},
    {[](P& p) { p.dtype = Dtype::fp8_e4m3; },
     "conv: dtype is fp8_e4m3, expected fp32, fp16 or bf16"},
    {[](P& p) { p.epilogue.scale = OutputScale::per_member; },
     "conv: epilogue has scale per_member and alpha 1, expected none and 1: multiply the weights"}};

const Refusal kStrides[] = {
    {[](P& p) { p.x.batch = -1; }, "conv: x has a stride of -1, expected none below 0"},
    {[](P& p) { p.x.column = 2; }, "conv: x has a last stride of 2, expected 1: contiguous"},
    {[](P& p) { p.weight.column = 2; },
     "conv: weight has a last stride of 2, expected 1: contiguous"},
    {[](P& p) { p.y.column = 2; }, "conv: y has a last stride of 2, expected 1: contiguous"},
    {[](P& p) { p.residual.column = 2; },
     "conv: residual has a last stride of 2, expected 1: contiguous"},
    {[](P& p) { p.bias_member_stride = -6; },
     "conv: bias has a stride of -6, expected none below 0"},
    {[](P& p) { p.x.batch = int64_t{1} << 61; },
     "conv: x reaches over more bytes than 64 bits count, expected fewer"}};

}  // namespace

TEST_CASE("conv: sizes and strides that no kernel could run are refused by name") {
  test::check_refusals(good(), kSizes, complete_conv_problem);
  test::check_refusals(complete_conv_problem(good()), kStrides, complete_conv_problem);
  P overlapping = complete_conv_problem(good());
  overlapping.y.row = 1;
  CHECK_THROWS_AS(complete_conv_problem(overlapping), Error);
  P many = good();
  many.num_members = int64_t{1} << 60;
  CHECK_THROWS_MATCHES(
      complete_conv_problem(many), Error,
      Message("conv: x reaches over more bytes than 64 bits count, expected fewer"));
}

TEST_CASE("conv: operands of another problem than the plan's are told apart") {
  const P plan = complete_conv_problem(good());
  const Refusal differences[] = {
      {[](P& p) { p.dtype = Dtype::fp16; },
       "conv: the operands' dtype is fp16, expected the plan's = fp32"},
      {[](P& p) { p.num_members = 3; },
       "conv: the operands' num_members is 3, expected the plan's = 2"},
      {[](P& p) { p.batch = 4; }, "conv: the operands' batch is 4, expected the plan's = 3"},
      {[](P& p) { p.in_channels = 8; },
       "conv: the operands' in_channels is 8, expected the plan's = 4"},
      {[](P& p) { p.out_channels = 8; },
       "conv: the operands' out_channels is 8, expected the plan's = 6"},
      {[](P& p) { p.input.width = 8; },
       "conv: the operands' input is {height 5, width 8}, expected the plan's = {height 5, width "
       "7}"},
      {[](P& p) { p.kernel.height = 1; },
       "conv: the operands' kernel is {height 1, width 2}, expected the plan's = {height 3, width "
       "2}"},
      {[](P& p) { p.epilogue.has_bias = false; },
       "conv: bias is absent, expected one as in the plan's problem"},
      {[](P& p) { p.epilogue.residual = Residual::none; },
       "conv: the operands' residual is none, expected the plan's = before_activation"},
      {[](P& p) { p.x.row = 8; },
       "conv: the operands' stride of x is {batch 280, member 140, channel 35, row 8, column 1}, "
       "expected the plan's = {batch 280, member 140, channel 35, row 7, column 1}"},
      {[](P& p) { p.weight.row = 3; },
       "conv: the operands' stride of weight is {member 72, out_channel 12, in_channel 6, row 3, "
       "column 1}, "
       "expected the plan's = {member 72, out_channel 12, in_channel 6, row 2, column 1}"},
      {[](P& p) { p.y.row = 4; },
       "conv: the operands' stride of y is {batch 108, member 54, channel 9, row 4, column 1}, "
       "expected the plan's = {batch 108, member 54, channel 9, row 3, column 1}"},
      {[](P& p) { p.residual.batch = 109; },
       "conv: the operands' stride of residual is {batch 109, member 54, channel 9, row 3, column "
       "1}, expected the plan's = {batch 108, member 54, channel 9, row 3, column 1}"},
      {[](P& p) { p.bias_member_stride = 7; },
       "conv: the operands' member stride of bias is 7, expected the plan's = 6"},
      {[](P& p) { p.allow_tf32 = !p.allow_tf32; },
       "conv: the operands' allow_tf32 is true, expected the plan's = false"}};
  test::check_refusals(plan, differences,
                       [&](const P& got) { require_same_conv_problem(got, plan); });
}

TEST_CASE("conv: a wrong bias, residual or output is named") {
  const Context cpu = Context::cpu();
  Tensor x(cpu, Dtype::fp32, {2, 6, 5, 7}), y(cpu, Dtype::fp32, {2, 8, 3, 5}),
      weight(cpu, Dtype::fp32, {8, 3, 3, 3}), bias(cpu, Dtype::fp32, {2, 8}),
      half_y(cpu, Dtype::fp16, {2, 8, 3, 5}), half_bias(cpu, Dtype::fp16, {8}),
      residual(cpu, Dtype::fp32, {2, 8, 3, 5}), no_batch(cpu, Dtype::fp32, {6, 5});
  P two{.num_members = 2};
  const auto refuses = [&](const ConvArguments& a, const char* message) {
    CHECK_THROWS_MATCHES(describe_conv(a, two), Error, Message(message));
  };
  refuses({no_batch, weight, {}, y, {}},
          "conv: x is [6, 5], expected [batch, num_members * in_channels, L]");
  refuses({x, weight, {}, half_y, {}}, "conv: y is fp16, expected dtype = fp32");
  refuses({x, weight, half_bias, y, {}}, "conv: bias is fp16, expected dtype = fp32");
  const TensorView apart(bias.data(), Dtype::fp32, {2, 4}, Strides{8, 2}, cpu.device()),
      as_one(bias.data(), Dtype::fp32, {2, 4}, Strides{0, 1}, cpu.device());
  refuses({x, weight, apart, y, {}},
          "conv: bias has strides [8, 2], expected a last stride of 1 and members apart");
  refuses({x, weight, as_one, y, {}},
          "conv: bias has strides [0, 1], expected a last stride of 1 and members apart");
  two.epilogue.residual = Residual::after_activation;
  CHECK_NOTHROW(describe_conv({x, weight, {}, y, residual}, two));
  CHECK_NOTHROW(describe_conv({x, weight, {}, y, y}, two));
  refuses({x, weight, {}, y, half_y}, "conv: residual is fp16, expected dtype = fp32");
  const TensorView shifted(static_cast<float*>(y.data()) + 1, Dtype::fp32, {1, 8, 3, 5},
                           cpu.device()),
      first(y.data(), Dtype::fp32, {1, 8, 3, 5}, cpu.device());
  const TensorView one_x(x.data(), Dtype::fp32, {1, 6, 5, 7}, cpu.device());
  refuses({one_x, weight, {}, first, shifted},
          "conv: residual overlaps y, expected y itself or memory of its own");
  const ConvPlan plan = make_conv_plan(cpu, describe_conv({x, weight, {}, y, residual}, two));
  CHECK_THROWS_MATCHES(plan.run({one_x, weight, {}, first, first}, {Stream::cpu()}), Error,
                       Message("conv: the operands' batch is 1, expected the plan's = 2"));
}

TEST_CASE("conv: members that do not fit the plan are named") {
  const Context cpu = Context::cpu();
  P p{.num_members = 2, .batch = 1, .in_channels = 3, .out_channels = 4, .input = {1, 5}};
  const ConvPlan plain = make_conv_plan(cpu, p);
  p.epilogue.has_bias = true;
  const ConvPlan plan = make_conv_plan(cpu, p);
  Tensor weight(cpu, Dtype::fp32, {8, 3, 1, 1}), bias(cpu, Dtype::fp32, {8}),
      member(cpu, Dtype::fp32, {4, 3, 1, 1}), member_bias(cpu, Dtype::fp32, {4}),
      flat(cpu, Dtype::fp32, {4, 3}), half(cpu, Dtype::fp16, {8, 3, 1, 1}),
      half_bias(cpu, Dtype::fp16, {8});
  const ConvMember both{member, member_bias}, bare{member, {}}, wrong{flat, member_bias};
  const auto refuses = [&](const ConvPlan& with, std::vector<ConvMember> members,
                           const TensorView& to, const TensorView& to_bias, const char* message) {
    CHECK_THROWS_MATCHES(with.prepare_weights(members, to, to_bias, Stream::cpu()), Error,
                         Message(message));
  };
  CHECK_NOTHROW(plan.prepare_weights(std::vector{both, both}, weight, bias, Stream::cpu()));
  refuses(plan, {both}, weight, bias, "conv: members has 1 entry, expected num_members = 2");
  refuses(plan, {both, bare}, weight, bias,
          "conv: bias of member 1 is absent, expected [out_channels]");
  refuses(plain, {both, both}, weight, {}, "conv: bias of member 0 is present, expected none");
  refuses(plan, {both, wrong}, weight, bias,
          "conv: a member's weight is [4, 3], expected [out_channels, in_channels / groups, kd, "
          "kh, kw], or without kd, or kd and kh");
  refuses(plan, {both, both}, half, bias, "conv: weight is fp16, expected dtype = fp32");
  refuses(plan, {both, both}, weight, half_bias, "conv: bias is fp16, expected dtype = fp32");
  refuses(plan, {both, both}, weight, {},
          "conv: bias is absent, expected [num_members * out_channels]");
  refuses(plain, {bare, bare}, weight, bias,
          "conv: bias is present, expected none: the problem has none");
  const std::vector<TensorView> one{member}, two{member, member}, biases{member_bias};
  CHECK_THROWS_MATCHES(plan.restore_weights(weight, bias, one, biases, Stream::cpu()), Error,
                       Message("conv: member_weights has 1 entry, expected num_members = 2"));
  CHECK_THROWS_MATCHES(plan.restore_weights(weight, bias, two, biases, Stream::cpu()), Error,
                       Message("conv: member_biases has 1 entry, expected num_members = 2"));
  CHECK_THROWS_MATCHES(
      make_conv_plan(cpu, p, {.policy = "h0"}), Error,
      Message("conv: policy is \"h0\", expected none: strategy \"auto\" has its own"));
  CHECK_THROWS_MATCHES(make_conv_plan(cpu, p, {.strategy = "wide", .policy = "h0"}), Error,
                       Message("conv: policy \"h0\", expected none: wide has none"));
}

TEST_CASE("conv: operands elsewhere than on the plan's device are named") {
  const Context cpu = Context::cpu();
  Tensor x(cpu, Dtype::fp32, {1, 6, 5}), weight(cpu, Dtype::fp32, {8, 3, 1}),
      y(cpu, Dtype::fp32, {1, 8, 5}), residual(cpu, Dtype::fp32, {1, 8, 5});
  P like{.num_members = 2};
  like.epilogue.residual = Residual::before_activation;
  const auto elsewhere = [](Tensor& tensor) {
    return TensorView(tensor.data(), tensor.dtype(), tensor.shape(), Device{DeviceType::cuda, 0});
  };
  const ConvPlan plan = make_conv_plan(cpu, describe_conv({x, weight, {}, y, residual}, like));
  const auto refuses = [&](const ConvArguments& a, const char* message) {
    CHECK_THROWS_MATCHES(plan.run(a, {Stream::cpu()}), Error, Message(message));
  };
  refuses({elsewhere(x), weight, {}, y, residual},
          "conv: x is on cuda:0, expected the plan's device = cpu");
  refuses({x, elsewhere(weight), {}, y, residual},
          "conv: weight is on cuda:0, expected the plan's device = cpu");
  refuses({x, weight, {}, elsewhere(y), residual},
          "conv: y is on cuda:0, expected the plan's device = cpu");
  refuses({x, weight, {}, y, elsewhere(residual)},
          "conv: residual is on cuda:0, expected the plan's device = cpu");
}

TEST_CASE("conv: sizes of what cannot be are below 1, and sizes at the ends of 64 bits are right") {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const auto size = [](int64_t input, int64_t kernel, int64_t stride, int64_t padding,
                       int64_t dilation) {
    const ConvProblem p{.input = {input, 5},
                        .kernel = {kernel, 2},
                        .stride = {stride, 2},
                        .padding = {padding, 0},
                        .dilation = {dilation, 1},
                        .depth = {input, kernel, stride, padding, dilation}};
    CHECK(conv_output_size(p).width == 2);
    CHECK(conv_output_depth(p) == conv_output_size(p).height);
    return conv_output_size(p).height;
  };
  CHECK(size(7, 3, 2, 1, 1) == 4);
  for (const int64_t none : {int64_t{0}, int64_t{-1}, -kMost - 1}) {
    CHECK(size(7, none, 1, 0, 1) == 0);
    CHECK(size(7, 3, none, 0, 1) == 0);
    CHECK(size(7, 3, 1, 0, none) == 0);
    CHECK(size(none, 3, 1, 0, 1) == 0);
  }
  CHECK(size(7, 3, 1, -1, 1) == 0);
  CHECK(size(7, kMost, 1, 0, 1) == 0);
  CHECK(size(7, kMost, 1, 0, kMost) == 0);
  CHECK(size(7, 5, 1, 0, int64_t{1} << 62) == 0);
  CHECK(size(7, 1, 1, kMost, 1) == 0);
  CHECK(size(kMost, 1, 1, 1, 1) == 0);
  CHECK(size(kMost, 1, 1, 0, kMost) == kMost);
  CHECK(size(kMost - 2, kMost, 1, 1, 1) == 1);
}
