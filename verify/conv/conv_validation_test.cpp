// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// conv's operands, apart from what is computed of them: packing, what is refused, which strategy is
// chosen.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>

#include "host/conv/conv_problem.hpp"
#include "host/conv/conv_strategy.hpp"
#include "verify/support/known_devices.hpp"
#include "verify/support/refusals.hpp"
#include "verify/support/tensors.hpp"
#include "wide/catalog.hpp"
#include "wide/conv.hpp"
#include "wide/error.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring, Catch::Matchers::StartsWith;
using Catch::Matchers::Message, Catch::Matchers::MessageMatches;
using test::download, test::uniform, test::upload;

TEST_CASE("conv: weights are packed in the layout's order and restored") {
  const Context cpu = Context::cpu();
  for (const ChannelLayout layout : {ChannelLayout::channels_first, ChannelLayout::channels_last}) {
    ConvProblem p{.num_members = 2,
                  .batch = 1,
                  .in_channels = 3,
                  .out_channels = 4,
                  .input = {5, 5},
                  .kernel = {2, 3},
                  .layout = layout};
    p.epilogue.has_bias = true;
    const ConvPlan plan = make_conv_plan(cpu, p);
    const bool is_last = layout == ChannelLayout::channels_last;
    CHECK(plan.weight_format() == (is_last ? "channels_last" : "channels_first"));
    std::vector<Tensor> weights, biases, back, back_bias;
    std::vector<ConvMember> members;
    std::vector<TensorView> weight_views, bias_views;
    for (uint64_t n = 0; n < 2; ++n) {
      weights.push_back(upload(cpu, Dtype::fp32, {4, 3, 2, 3}, uniform(72, 0, 1, n)));
      biases.push_back(upload(cpu, Dtype::fp32, {4}, uniform(4, 0, 1, 7 + n)));
      back.emplace_back(cpu, Dtype::fp32, Shape{4, 3, 2, 3});
      back_bias.emplace_back(cpu, Dtype::fp32, Shape{4});
    }
    for (size_t n = 0; n < 2; ++n) {
      members.push_back({weights[n], biases[n]});
      weight_views.push_back(back[n]);
      bias_views.push_back(back_bias[n]);
    }
    Tensor packed(cpu, Dtype::fp32, is_last ? Shape{8, 2, 3, 3} : Shape{8, 3, 2, 3});
    Tensor bias(cpu, Dtype::fp32, {8});
    plan.prepare_weights(members, packed, bias, Stream::cpu());
    // Member 1, output 2, channel 1, tap (1, 2).
    const double value = download(cpu, weights[1])[((2 * 3 + 1) * 2 + 1) * 3 + 2];
    const std::vector<double> stored = download(cpu, packed);
    CHECK(stored[is_last ? ((6 * 2 + 1) * 3 + 2) * 3 + 1 : ((6 * 3 + 1) * 2 + 1) * 3 + 2] == value);
    CHECK(download(cpu, bias)[5] == download(cpu, biases[1])[1]);
    plan.restore_weights(packed, bias, weight_views, bias_views, Stream::cpu());
    for (size_t n = 0; n < 2; ++n) {
      CHECK(download(cpu, back[n]) == download(cpu, weights[n]));
      CHECK(download(cpu, back_bias[n]) == download(cpu, biases[n]));
    }
    Tensor one_bias(cpu, Dtype::fp32, {4});
    CHECK_THROWS_MATCHES(
        plan.prepare_weights(members, packed, one_bias, Stream::cpu()), Error,
        Message("conv: bias is [4], expected [num_members, channels] = [2, 4] or all in one axis"));
  }
}

TEST_CASE("conv: each wrong operand is named, with what was got and expected") {
  const Context cpu = Context::cpu();
  Tensor x(cpu, Dtype::fp32, {2, 6, 5, 7}), y(cpu, Dtype::fp32, {2, 8, 3, 5}),
      weight(cpu, Dtype::fp32, {8, 3, 3, 3}), bias(cpu, Dtype::fp32, {8}),
      half(cpu, Dtype::fp16, {8, 3, 3, 3}), few(cpu, Dtype::fp32, {8, 2, 3, 3}),
      short_weight(cpu, Dtype::fp32, {8, 3, 3}), large(cpu, Dtype::fp32, {8, 3, 3, 8}),
      ints(cpu, Dtype::int32, {2, 6, 5, 7}), int_weight(cpu, Dtype::int32, {8, 3, 3, 3});
  const ConvProblem two{.num_members = 2};
  const auto refuses = [&](const ConvArguments& a, const ConvProblem& like, const char* message) {
    CHECK_THROWS_MATCHES(describe_conv(a, like), Error, Message(message));
  };
  CHECK_NOTHROW(describe_conv({x, weight, bias, y, {}}, two));
  refuses({x, weight, {}, y, {}}, {.num_members = 4},
          "conv: x is [2, 6, 5, 7], expected [batch, num_members * in_channels, H, W] with "
          "num_members = 4");
  refuses({x, few, {}, y, {}}, two,
          "conv: weight is [8, 2, 3, 3], expected [num_members * out_channels, in_channels / "
          "groups, kh, kw] with num_members = 2, in_channels = 3, groups = 1");
  refuses({x, short_weight, {}, y, {}}, two,
          "conv: weight is [8, 3, 3], expected [num_members * out_channels, in_channels / groups, "
          "kh, kw] for an x of 4 axes");
  refuses({x, half, {}, y, {}}, two, "conv: weight is fp16, expected dtype = fp32");
  refuses({ints, int_weight, {}, y, {}}, two, "conv: dtype is int32, expected fp32, fp16 or bf16");
  refuses({x, weight, {}, x, {}}, two,
          "conv: y is [2, 6, 5, 7], expected [batch, num_members * out_channels, H, W] of the "
          "output's size = [2, 8, 3, 5]");
  refuses({x, weight, {}, y, y}, two,
          "conv: residual is present, expected none: the problem adds none");
  refuses({x, large, {}, y, {}}, two,
          "conv: the kernel reaches over 8 positions along the width, expected at most the padded "
          "input's = 7");
  ConvProblem like = two;
  like.groups = 2;
  refuses({x, weight, {}, y, {}}, like,
          "conv: weight is [8, 3, 3, 3], expected [num_members * out_channels, in_channels / "
          "groups, kh, kw] with num_members = 2, in_channels = 3, groups = 2");
  like = two;
  like.stride.width = 0;
  refuses({x, weight, {}, y, {}}, like,
          "conv: stride.width is 0, expected a number in [1, 2147483647]");
  like = two;
  like.epilogue.alpha = 2;
  refuses({x, weight, {}, y, {}}, like,
          "conv: epilogue has scale none and alpha 2, expected none and 1: multiply the weights");
  like = two;
  like.epilogue.residual = Residual::before_activation;
  refuses({x, weight, {}, y, {}}, like,
          "conv: residual is absent, expected one: the problem adds it");
  const TensorView inside(static_cast<float*>(x.data()) + 8, Dtype::fp32, {2, 8, 3, 5},
                          cpu.device());
  refuses({x, weight, {}, inside, {}}, two, "conv: y overlaps x, expected memory of its own");
  const TensorView last(x.data(), Dtype::fp32, {2, 6, 5, 7}, Strides{210, 1, 42, 6}, cpu.device());
  refuses({last, weight, {}, y, {}}, two, "conv: x has a last stride of 6, expected 1: contiguous");
  like = two;
  like.x_layout = ChannelLayout::channels_last;
  refuses({x, weight, {}, y, {}}, like,
          "conv: x is [2, 6, 5, 7], expected [batch, H, W, num_members * in_channels] with "
          "num_members = 2");
  like.x_layout = ChannelLayout::channels_first;  // which it is anyway
  CHECK(describe_conv({x, weight, bias, y, {}}, like) ==
        describe_conv({x, weight, bias, y, {}}, two));
  const ConvPlan plan = make_conv_plan(cpu, describe_conv({x, weight, bias, y, {}}, two));
  CHECK_THROWS_MATCHES(plan.run({x, weight, {}, y, {}}, {Stream::cpu()}), Error,
                       Message("conv: bias is absent, expected one as in the plan's problem"));
  CHECK_THROWS_AS(make_conv_plan(cpu, plan.problem(), {"grouppd"}), Error);
}

TEST_CASE("conv: views whose strides are none of theirs, or cannot be multiplied, are named") {
  const Context cpu = Context::cpu();
  const Tensor x(cpu, Dtype::fp32, {2, 6, 5, 7}), weight(cpu, Dtype::fp32, {8, 3, 3, 3});
  Tensor y(cpu, Dtype::fp32, {2, 8, 3, 5});
  const ConvArguments good{x, weight, {}, y, {}};
  const auto refusal = [](const ConvArguments& a) {
    return test::refusal_of([&] { (void)describe_conv(a, {.num_members = 2}); });
  };
  CHECK_NOTHROW(describe_conv(good, {.num_members = 2}));
  ConvArguments bad = good;
  bad.x.strides = Strides{};
  CHECK(refusal(bad) == "conv: x: tensor: strides [], expected one per axis of [2, 6, 5, 7]");
  for (const Shape& shape : {Shape{8, 3, 3, 3}, Shape{8, 3, 0, 3}}) {
    bad = good;
    bad.weight.shape = shape;
    bad.weight.strides[0] = INT64_MAX;  // times 4 it would be below 0
    CHECK(refusal(bad) == "conv: weight: tensor: shape " + to_string(shape) +
                              " with strides [9223372036854775807, 9, 3, 1], expected an extent "
                              "that fits in 64 bits");
  }
}

TEST_CASE("conv: wrong operands of volumes are named, too") {
  const Context cpu = Context::cpu();
  Tensor x(cpu, Dtype::fp32, {2, 6, 3, 5, 7}), y(cpu, Dtype::fp32, {2, 8, 2, 3, 5}),
      weight(cpu, Dtype::fp32, {8, 3, 2, 3, 3}), flat(cpu, Dtype::fp32, {8, 3, 3, 3}),
      deep(cpu, Dtype::fp32, {8, 3, 4, 3, 3}), six(cpu, Dtype::fp32, {1, 2, 6, 3, 5, 7});
  const ConvProblem two{.num_members = 2};
  const auto refuses = [&](const ConvArguments& a, const ConvProblem& like, const char* message) {
    CHECK_THROWS_MATCHES(describe_conv(a, like), Error, Message(message));
  };
  const ConvProblem p = describe_conv({x, weight, {}, y, {}}, two);
  CHECK(p.depth == ConvDepth{.input = 3,
                             .kernel = 2,
                             .x_stride = 35,
                             .y_stride = 15,
                             .residual_stride = 0,
                             .weight_stride = 9});
  refuses({six, weight, {}, y, {}}, two,
          "conv: x is [1, 2, 6, 3, 5, 7], expected [batch, num_members * in_channels, D, H, W]");
  refuses({x, flat, {}, y, {}}, two,
          "conv: weight is [8, 3, 3, 3], expected [num_members * out_channels, in_channels / "
          "groups, kd, kh, kw] for an x of 5 axes");
  refuses(
      {x, weight, {}, x, {}}, two,
      "conv: y is [2, 6, 3, 5, 7], expected [batch, num_members * out_channels, D, H, W] of the "
      "output's size = [2, 8, 2, 3, 5]");
  refuses({x, deep, {}, y, {}}, two,
          "conv: the kernel reaches over 4 positions along the depth, expected at most the padded "
          "input's = 3");
  ConvProblem like = two;
  like.depth.stride = 0;
  refuses({x, weight, {}, y, {}}, like,
          "conv: stride.depth is 0, expected a number in [1, 2147483647]");
  like.depth = {.padding = 1};
  Tensor image(cpu, Dtype::fp32, {2, 6, 5, 7}), image_y(cpu, Dtype::fp32, {2, 8, 3, 5});
  refuses({image, flat, {}, image_y, {}}, like,
          "conv: padding.depth is 1, expected 0 for an x of 4 axes");
  like.depth = {.stride = 2, .dilation = 3};  // of nothing
  CHECK(describe_conv({image, flat, {}, image_y, {}}, like).depth == ConvDepth{});
  // y's planes share memory.
  const TensorView shared(y.data(), Dtype::fp32, {2, 8, 2, 3, 5}, Strides{240, 30, 0, 5, 1},
                          cpu.device());
  CHECK_THROWS_AS(describe_conv({x, weight, {}, shared, {}}, two), Error);
  const ConvPlan plan = make_conv_plan(cpu, p);
  like = two;
  like.depth.padding = 1;
  Tensor padded(cpu, Dtype::fp32, {2, 8, 4, 3, 5});
  const ConvProblem other = describe_conv({x, weight, {}, padded, {}}, like);
  CHECK_THROWS_MATCHES(
      require_same_conv_problem(other, p), Error,
      Message("conv: the operands' stride of y is {batch 480, member 240, channel "
              "60, row 5, column 1}, expected the plan's = {batch 240, member 120, "
              "channel 30, row 5, column 1}"));
}

TEST_CASE("conv: axes that nothing reaches over are left out") {
  ConvProblem like{.num_members = 2,
                   .batch = 3,
                   .in_channels = 8,
                   .out_channels = 6,
                   .input = {4, 5},
                   .epilogue = {.has_bias = true, .residual = Residual::before_activation}};
  like.layout = GENERATE(ChannelLayout::channels_first, ChannelLayout::channels_last);
  SECTION("planes are batch rows, in y's order, too") {
    like.kernel = {3, 3}, like.depth.input = 7;
    const bool is_last = like.layout == ChannelLayout::channels_last;
    const ConvProblem p = without_idle_axes(complete_conv_problem(like));
    CHECK(is_volume(p) == !is_last);  // of channels first planes lie within channels
    if (is_last) {
      CHECK(p.batch == 21);
      CHECK(p.x.batch == 4 * 5 * 16);
      CHECK(p.residual.batch == 2 * 3 * 12);
    }
    like.batch = 1;
    CHECK(without_idle_axes(complete_conv_problem(like)).batch == 7);
    like.batch = 3, like.depth.stride = 2;
    CHECK(is_volume(without_idle_axes(complete_conv_problem(like))));
  }
  SECTION("positions of a plane are columns") {
    like.depth = {.input = 7, .kernel = 3, .stride = 2, .padding = 1, .dilation = 2};
    const ConvProblem p = without_idle_axes(complete_conv_problem(like));
    CHECK_FALSE(is_volume(p));
    CHECK(p.input == PerAxis{7, 20});
    CHECK(p.kernel == PerAxis{3, 1});
    CHECK(p.stride == PerAxis{2, 1});
    CHECK(p.padding == PerAxis{1, 0});
    CHECK(p.dilation == PerAxis{2, 1});
    CHECK(conv_output_size(p) == PerAxis{3, 20});
    ConvProblem with_gaps = complete_conv_problem(like);
    with_gaps.x.row += 8, with_gaps.depth.x_stride = 4 * with_gaps.x.row;
    CHECK(is_volume(without_idle_axes(complete_conv_problem(with_gaps))));
  }
  SECTION("others stay") {
    like.kernel = {1, 2}, like.depth = {.input = 3, .kernel = 2};
    const ConvProblem p = complete_conv_problem(like);
    CHECK(without_idle_axes(p) == p);
    // More than 32 bits count.
    like.depth = {.input = int64_t{1} << 20}, like.batch = 1 << 12, like.kernel = {3, 3};
    like.layout = ChannelLayout::channels_last;
    CHECK(is_volume(without_idle_axes(complete_conv_problem(like))));
    like.depth = {.input = 3, .kernel = 2}, like.batch = 1, like.kernel = {1, 1};
    like.input = {1 << 16, 1 << 16};
    CHECK(is_volume(without_idle_axes(complete_conv_problem(like))));
    like.input = {4, 5}, like.batch = 3;
    like.depth = {}, like.kernel = {3, 3};
    CHECK(without_idle_axes(complete_conv_problem(like)) == complete_conv_problem(like));
  }
}

TEST_CASE("conv: columns of patches are channels") {
  ConvProblem like{.num_members = 2,
                   .batch = 3,
                   .in_channels = 3,
                   .out_channels = 6,
                   .input = {40, 50},
                   .kernel = {10, 16},
                   .stride = {10, 16}};
  const auto folded = [&] { return with_patches_as_channels(complete_conv_problem(like)); };
  SECTION("of x with channels first, whose channels are planes then") {
    like.stride.width = 17;
    const ConvProblem p = folded();
    CHECK(p.in_channels == 16);
    CHECK(p.input == PerAxis{40, 3});
    CHECK(p.kernel == PerAxis{10, 1});
    CHECK(p.x.channel == 1);
    CHECK(p.x.column == 17);
    CHECK(p.depth.input == 3);
    CHECK(p.depth.kernel == 3);
    CHECK(p.depth.x_stride == 40 * 50);
    CHECK(p.depth.weight_stride == 160);
    CHECK(p.weight.in_channel == 1);
    CHECK(conv_output_size(p) == conv_output_size(like));
    CHECK(conv_output_depth(p) == 1);
    CHECK(conv_terms(p) == conv_terms(like));
  }
  SECTION("of runs of pixels with channels last") {
    like.layout = ChannelLayout::channels_last;
    CHECK(folded() == complete_conv_problem(like));  // members lie between pixels
    like.num_members = 1;
    const ConvProblem p = folded();
    CHECK(p.in_channels == 48);
    CHECK(p.x.column == 48);
    CHECK(p.x.member == 0);
    CHECK(p.input == PerAxis{40, 3});
    CHECK_FALSE(is_volume(p));
    CHECK(conv_output_size(p) == conv_output_size(like));
    CHECK(conv_terms(p) == conv_terms(like));
  }
  SECTION("others stay") {
    const auto stays = [&](const auto& change) {
      const ConvProblem before = like;
      change(like);
      CHECK(folded() == complete_conv_problem(like));
      like = before;
    };
    stays([](ConvProblem& p) { p.padding.width = 1; });
    stays([](ConvProblem& p) { p.stride.width = 15; });
    stays([](ConvProblem& p) { p.dilation.width = 2; });
    stays([](ConvProblem& p) { p.groups = 3; });
    stays([](ConvProblem& p) { p.kernel.width = 7; });
    stays([](ConvProblem& p) { p.depth.input = 2; });
    stays([](ConvProblem& p) { p.batch = 0; });
  }
}

TEST_CASE("conv: rows of tall patches are planes") {
  ConvProblem like{.num_members = 2,
                   .batch = 3,
                   .in_channels = 4,
                   .out_channels = 6,
                   .groups = 2,
                   .input = {40, 50},
                   .kernel = {9, 3},
                   .stride = {18, 1},
                   .dilation = {2, 1}};
  like.layout = GENERATE(ChannelLayout::channels_first, ChannelLayout::channels_last);
  const auto folded = [&] { return with_rows_as_planes(complete_conv_problem(like)); };
  const ConvProblem given = complete_conv_problem(like), p = folded();
  CHECK(p.input == PerAxis{2, 50});
  CHECK(p.kernel == PerAxis{1, 3});
  CHECK(p.x.row == 18 * given.x.row);
  CHECK(p.depth.kernel == 9);
  CHECK(p.depth.x_stride == 2 * given.x.row);
  CHECK(p.depth.weight_stride == given.weight.row);
  CHECK(conv_output_size(p) == conv_output_size(like));
  CHECK(conv_output_depth(p) == 1);
  CHECK(conv_terms(p) == conv_terms(like));
  like.padding.height = 1;
  CHECK(folded() == complete_conv_problem(like));
  like.padding.height = 0, like.stride.height = 8;
  CHECK(folded() == complete_conv_problem(like));
  like.stride.height = 18, like.kernel.height = 7;
  CHECK(folded() == complete_conv_problem(like));
  like.kernel.height = 9, like.depth.input = 2;
  CHECK(folded() == complete_conv_problem(like));
}

TEST_CASE("conv: what auto is, for devices that are not at hand") {
  std::string refusal = "no engine";
  int asked = 0;
  const auto choose = [&](const ConvProblem& p, const DeviceInfo& device,
                          std::span<const VerifiedStrategy> verified,
                          std::string_view name = "auto") {
    return choose_conv_strategy(complete_conv_problem(p), device, name, verified,
                                [&](const ConvStrategy&, std::string_view) {
                                  ++asked;
                                  return refusal;
                                });
  };
  const auto chosen = [&](const ConvProblem& p, const DeviceInfo& device,
                          std::span<const VerifiedStrategy> verified) {
    return std::string(choose(p, device, verified).strategy->name);
  };
  ConvProblem stem{.num_members = 4,
                   .batch = 8,
                   .in_channels = 3,
                   .out_channels = 64,
                   .input = {32, 32},
                   .kernel = {7, 7},
                   .stride = {2, 2},
                   .padding = {3, 3}};
  ConvProblem tap{.num_members = 4,
                  .batch = 8,
                  .in_channels = 64,
                  .out_channels = 64,
                  .input = {32, 32},
                  .layout = ChannelLayout::channels_last};
  const DeviceInfo cpu = Context::cpu().info();
  const DeviceInfo& h200 = test::kH200;
  CHECK(chosen(stem, cpu, {}) == "wide");
  const std::array proved{
      VerifiedStrategy{"conv1d", "direct", 90}, VerifiedStrategy{"conv2d", "direct", 90},
      VerifiedStrategy{"conv1d", "pointwise", 90}, VerifiedStrategy{"conv2d", "pointwise", 90}};
  CHECK(chosen(stem, h200, proved) == "direct");
  CHECK(chosen(tap, h200, proved) == "pointwise");
  CHECK(asked == 0);
  // Volumes are conv3d's to prove, but for those that are images.
  ConvProblem volume = stem;
  volume.depth = {.input = 8, .kernel = 3};
  CHECK(chosen(volume, h200, proved) == "sequential");
  CHECK(chosen(volume, h200, std::array{VerifiedStrategy{"conv3d", "direct", 90}}) == "direct");
  // One name's proof is half a proof, another device's none; a vendor's needs none.
  for (const auto& few : {std::span(proved).first(1), std::span(proved).first(0)}) {
    refusal = "no engine";
    CHECK_THAT(choose(stem, h200, few).explain,
               StartsWith("sequential: member after member; ") &&
                   ContainsSubstring("; direct: unverified on compute capability 90; ") &&
                   ContainsSubstring("; grouped: no engine"));
    CHECK(chosen(tap, h200, few) == "sequential");
    refusal = "";
    CHECK_THAT(choose(stem, h200, few).explain,
               StartsWith("grouped: one call of cuDNN's for all members; ") &&
                   ContainsSubstring("; direct: unverified on compute capability 90"));
    CHECK(chosen(tap, h200, few) == "channels_last");
  }
  // Nothing is won by joining what fills the device, or is one member.
  ConvProblem large = stem;
  large.batch = 128;
  CHECK(chosen(large, h200, {}) == "sequential");
  CHECK(choose(large, h200, {}).strategy->is_vendors);
  // One launch of our kernel instead of one per member, if cuDNN is not what runs member by member.
  ConvProblem wide = large;
  wide.in_channels = 64;
  CHECK(chosen(wide, h200, proved) == "sequential");
  refusal = "no engine";
  CHECK(chosen(wide, h200, proved) == "direct");
  wide.batch = 8;
  CHECK_THAT(choose(wide, h200, proved).explain,
             StartsWith("direct: one launch of what cuDNN does not take; ") &&
                 ContainsSubstring("; grouped, sequential: no engine"));
  const ConvChoice per_member = choose(wide, h200, {});
  CHECK_FALSE(per_member.strategy->is_vendors);
  CHECK_THAT(per_member.explain, StartsWith("sequential: member after member; ") &&
                                     !ContainsSubstring("; grouped, sequential"));
  refusal = "";
  ConvProblem one = stem;
  one.num_members = 1;
  CHECK(chosen(one, h200, {}) == "sequential");
  CHECK_THROWS_MATCHES(
      choose(stem, h200, proved, "pointwise"), Error,
      Message("conv: strategy pointwise cannot run this problem: it is for kernels of one tap, of "
              "stride 1, unpadded, of one group"));
  stem.kernel = {1, 2000};
  stem.input = {1, 3000};
  stem.padding = {0, 0};
  CHECK_THROWS_MATCHES(
      choose(stem, h200, proved, "direct"), Error,
      Message("conv: strategy direct cannot run this problem: it takes at most 1024 taps, the "
              "kernel has 1 x 2000"));
  // Where nothing else can run, a call that fills the device without joining is better than none.
  stem.batch = 128;
  const ConvChoice last = choose(stem, h200, proved);
  INFO(last.explain);
  CHECK(last.strategy->name == "grouped");
  CHECK_THAT(last.explain,
             StartsWith("grouped: nothing that is expected to be faster can run it; ") &&
                 ContainsSubstring("; direct, sequential: it takes at most 1024 taps"));
  refusal = "no engine";
  CHECK_THROWS_MATCHES(choose(stem, h200, proved), Error,
                       MessageMatches(StartsWith("conv: no strategy for \"auto\"; ") &&
                                      ContainsSubstring("; grouped: no engine")));
}

TEST_CASE("conv: the sweeps are the seeds'") {
  const auto cases = [](const char* op, const char* sweep) {
    int64_t count = 1;
    for (const auto& axis : catalog::find_sweep(catalog::find_primitive(op), sweep).axes) {
      count *= static_cast<int64_t>(axis.values.size());
    }
    return count;
  };
  CHECK(cases("conv1d", "full") == 360);
  CHECK(cases("conv2d", "full") == 2430);
  for (const char* op : {"conv1d", "conv2d"}) {
    CHECK(cases(op, "quick") == 4);
    CHECK(cases(op, "ci") == 2);
  }
}
