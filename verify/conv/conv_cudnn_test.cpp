// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What cuDNN is asked for as convolutions, where cuDNN cannot run: the graphs are interpreted on
// the host, and cuDNN plans them for devices that are not at hand.
#include <catch2/catch_test_macros.hpp>
#include <set>
#include <string>

#include "host/conv/conv_cudnn.hpp"
#include "host/conv/conv_problem.hpp"
#include "host/core/heuristic_policy.hpp"
#include "host/cudnn/cudnn_plan_cache.hpp"
#include "verify/support/cudnn_devices.hpp"
#include "verify/support/cudnn_interpreter.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/refusals.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/error.hpp"

using namespace wide;

namespace {

constexpr auto kFirst = ChannelLayout::channels_first, kLast = ChannelLayout::channels_last;

ConvProblem problem(ChannelLayout layout, const Epilogue& epilogue, Dtype dtype = Dtype::fp32) {
  ConvProblem p{.num_members = 2, .batch = 2, .in_channels = 16, .out_channels = 32};
  p.input = {9, 8};
  p.kernel = {3, 3};
  p.padding = {1, 1};
  p.layout = layout;
  p.dtype = dtype;
  p.epilogue = epilogue;
  return complete_conv_problem(p);
}

/// Few numbers, and every one of its fields other than its default.
ConvProblem odd_problem(ChannelLayout layout, const Epilogue& epilogue) {
  ConvProblem p{.num_members = 2, .batch = 2, .in_channels = 4, .out_channels = 6, .groups = 2};
  p.input = {5, 7};
  p.kernel = {2, 3};
  p.stride = {2, 1};
  p.padding = {1, 2};
  p.dilation = {1, 2};
  p.layout = layout;
  p.epilogue = epilogue;
  return complete_conv_problem(p);
}

/// Packed operands, always with the same values.
struct Operands {
  Operands(const ConvProblem& p, const Context& on) : context(on) {
    const PerAxis size = conv_output_size(p);
    const bool is_last = p.layout == kLast;
    const auto shaped = [&](int64_t outer, int64_t channels, const PerAxis& positions) {
      return is_last ? Shape{outer, positions.height, positions.width, channels}
                     : Shape{outer, channels, positions.height, positions.width};
    };
    const int64_t n = p.num_members, outputs = n * p.out_channels;
    x = values(p, shaped(p.batch, n * p.in_channels, p.input), 1);
    weight = values(p, shaped(outputs, p.in_channels / p.groups, p.kernel), 2);
    bias = values(p, {outputs}, 3);
    residual = values(p, shaped(p.batch, outputs, size), 4);
    y = Tensor(context, p.dtype, residual.shape());
    arguments = {x, weight, {}, y, {}};
    if (p.epilogue.has_bias) arguments.bias = bias;
    if (p.epilogue.residual != Residual::none) arguments.residual = residual;
  }
  Tensor values(const ConvProblem& p, const Shape& shape, uint64_t seed) const {
    return test::upload(context, p.dtype, shape, test::uniform(num_elements(shape), -1, 1, seed));
  }

  Context context;
  Tensor x, weight, bias, residual, y;
  ConvArguments arguments;
};

double worst_difference(const Operands& a, const Operands& b) {
  return test::worst_difference(test::download(a.context, a.y), test::download(b.context, b.y));
}

std::vector<Epilogue> epilogues() {
  using enum Activation;
  std::vector<Epilogue> all{Epilogue{},
                            {.has_bias = true, .activation = relu},
                            {.has_bias = true, .activation = gelu},
                            {.has_bias = true, .activation = gelu_tanh},
                            {.activation = silu}};
  all.push_back({.has_bias = true, .activation = relu, .residual = Residual::before_activation});
  all.push_back({.has_bias = true, .activation = relu, .residual = Residual::after_activation});
  return all;
}

}  // namespace

TEST_CASE("conv: cuDNN's graphs mean what the CPU computes") {
  for (const ChannelLayout layout : {kFirst, kLast}) {
    for (const Epilogue& epilogue : epilogues()) {
      const ConvProblem p = odd_problem(layout, epilogue);
      REQUIRE(conv_cudnn_unsupported_reason(p) == "");
      const Operands ours(p, Context::cpu()), theirs(p, Context::cpu());
      test::run_plan(ours.context, make_conv_plan(ours.context, p), ours.arguments);
      const ConvCudnnGraph whole = describe_conv_cudnn(p);
      test::interpret(whole.graph, bind_conv_cudnn(whole, theirs.arguments, nullptr));
      CHECK(worst_difference(ours, theirs) < 1e-5);
      if (layout == kLast || epilogue.is_identity()) continue;
      const Operands again(p, Context::cpu());
      Tensor sums(again.context, Dtype::fp32, again.y.shape());
      for (const auto& part : {describe_conv_sums(p), describe_conv_epilogue(p)}) {
        test::interpret(part.graph, bind_conv_cudnn(part, again.arguments, sums.data()));
      }
      CHECK(worst_difference(ours, again) < 1e-5);
    }
  }
}

TEST_CASE("conv: what cuDNN cannot be told of is refused with the reason") {
  const ConvProblem good =
      problem(kFirst, {.has_bias = true, .residual = Residual::before_activation});
  CHECK(conv_cudnn_unsupported_reason(good) == "");
  const auto reason = [&](auto change) {
    ConvProblem p = good;
    change(p);
    return conv_cudnn_unsupported_reason(p);
  };
  const std::string apart = "members do not lie side by side as channels";
  CHECK(reason([](ConvProblem& p) { p.x.member += 1; }) == apart);
  CHECK(reason([](ConvProblem& p) { p.y.member += 1; }) == apart);
  CHECK(reason([](ConvProblem& p) { p.residual.member += 1; }) == apart);
  CHECK(reason([](ConvProblem& p) { p.weight.member += 1; }) ==
        "members' weights or biases do not lie one after another");
  CHECK(reason([](ConvProblem& p) { p.bias_member_stride += 1; }) ==
        "members' weights or biases do not lie one after another");
}

TEST_CASE("conv: members that lie where cuDNN cannot begin are not called one by one") {
  ConvProblem p = problem(kFirst, {.has_bias = true});
  CHECK(conv_cudnn_member_unsupported_reason(p) == "");
  p.bias_member_stride = 33;
  CHECK(conv_cudnn_member_unsupported_reason(p) ==
        "members of bias lie 132 bytes apart, expected a multiple of cuDNN's alignment = 16");
  p.num_members = 1;  // whether cuDNN computes a member does not depend on how many there are
  CHECK(conv_cudnn_member_unsupported_reason(p) != "");
}

TEST_CASE("conv: cuDNN plans every layout and epilogue for devices that are not at hand") {
  test::require_cudnn_planning();
  const Epilogue relu{.has_bias = true, .activation = Activation::relu};
  const Epilogue gelu{.has_bias = true, .activation = Activation::gelu};
  for (const CudnnDevice& device : {test::kCudnnH200, test::kCudnnA100}) {
    for (const ChannelLayout layout : {kFirst, kLast}) {
      for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
        const ConvProblem p = problem(layout, relu, dtype);
        const ConvCudnn plan(device, p);
        INFO(plan.explain() << ", " << plan.workspace_bytes() << " bytes");
        // fp32 stays fp32: tensor cores would make it tf32.
        const bool has_tensor_cores = plan.explain().find("tensor cores") != std::string::npos;
        CHECK(has_tensor_cores == (dtype == Dtype::bf16));
        CHECK(plan.explain().find("Winograd") == std::string::npos);
        CHECK(conv_cudnn_unsupported_reason(Operands(p, Context::cpu()).arguments) == "");
      }
    }
  }
  ConvProblem large = problem(kLast, relu);
  large.batch = 8;
  large.in_channels = large.out_channels = 64;
  large.input = {32, 32};
  large.x = large.y = {};
  large.weight = {};
  large.bias_member_stride = 0;
  for (const bool allow_tf32 : {false, true}) {
    large.allow_tf32 = allow_tf32;
    const std::string text = ConvCudnn(test::kCudnnH200, complete_conv_problem(large)).explain();
    CHECK((text.find("tensor cores") != std::string::npos) == allow_tf32);
  }

  // What channels first does not fuse takes two calls, with sums of fp32 between them.
  const ConvProblem two = problem(kFirst, gelu, Dtype::bf16);
  const ConvCudnn plan(test::kCudnnH200, two);
  INFO(plan.explain() << ", " << plan.workspace_bytes() << " bytes");
  CHECK(plan.explain().find("then, for the epilogue, engine") != std::string::npos);
  CHECK(plan.workspace_bytes() >= 2 * 2 * 32 * 9 * 8 * 4);
  const Operands operands(two, Context::cpu());
  ConvArguments odd = operands.arguments;
  odd.bias.data = static_cast<const std::byte*>(odd.bias.data) + 2;
  CHECK(conv_cudnn_unsupported_reason(odd) == "bias is aligned to 2 bytes, expected cuDNN's = 16");
  CHECK_THROWS_AS(plan.run(operands.arguments, {Stream::cpu()}), Error);  // no handle
}

TEST_CASE("conv: cuDNN's configurations, one after another") {
  test::require_cudnn_planning();
  const Epilogue relu{.has_bias = true, .activation = Activation::relu};
  const auto number_of = [](const std::string& explain) {  // in which list, and where there
    const bool is_fallback = explain.find("fallbacks") != std::string::npos;
    return 1000 * is_fallback + std::stoi(explain.substr(explain.find(", number ") + 9));
  };
  for (const ChannelLayout layout : {kFirst, kLast}) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
      const ConvProblem p = problem(layout, relu, dtype);
      const std::string first = ConvCudnn(test::kCudnnH200, p).explain();
      std::set<std::string> engines;
      int last = 0;
      for (int place = 0; place < static_cast<int>(kCudnnPolicies.size()); ++place) {
        const std::string explain = ConvCudnn(test::kCudnnH200, p, place).explain();
        INFO("h" << place << ": " << explain);
        if (place == 0) CHECK(explain == first);
        CHECK(number_of(explain) > last);
        last = number_of(explain);
        engines.insert(explain.substr(0, explain.find(',')));
        // What numbers are allowed to go through, all of them respect.
        if (dtype == Dtype::fp32) CHECK(explain.find("tensor cores") == std::string::npos);
        for (const char* note : {"reduced", "Winograd", "Fourier", "rounds", "repeatable"}) {
          CHECK(explain.find(note) == std::string::npos);
        }
      }
      CHECK(engines.size() > 1);
    }
  }
}

TEST_CASE(
    "conv: a configuration beyond what cuDNN offers is refused, and those before it are not") {
  test::require_cudnn_planning();
  CudnnPlanCache cache;
  CudnnDevice device = test::kCudnnH200;
  device.cache = &cache;
  // Two calls, of which the first is the convolution; its sums have one engine.
  const ConvProblem two =
      problem(kFirst, {.has_bias = true, .activation = Activation::gelu}, Dtype::bf16);
  const std::string first = ConvCudnn(device, two, 0).explain();
  CHECK(first.find("then, for the epilogue, engine") != std::string::npos);
  for (const int place : {1, 5}) {
    CHECK(test::message_of(ErrorCode::unsupported, [&] { ConvCudnn(device, two, place); }) ==
          "conv: policy h" + std::to_string(place) +
              ": cuDNN offers 1 configuration for this problem, expected h0");
  }
  CHECK(ConvCudnn(device, two, 0).explain() == first);
  // Nor are two calls looked for where one would do.
  const ConvProblem one = problem(kFirst, {.has_bias = true, .activation = Activation::relu});
  CHECK(test::message_of(ErrorCode::unsupported, [&] { ConvCudnn(device, one, 63); }) ==
        test::message_of(ErrorCode::unsupported, [&] {
          (void)make_cudnn_plan("conv", device, describe_conv_cudnn(one).graph, {}, 63);
        }));
  // Of fp32 there are several: only the convolution's changes.
  const ConvProblem several =
      problem(kFirst, {.has_bias = true, .activation = Activation::gelu}, Dtype::fp32);
  const std::string h0 = ConvCudnn(device, several, 0).explain();
  const std::string h1 = ConvCudnn(device, several, 1).explain();
  INFO(h0 << "\n" << h1);
  CHECK(h0 != h1);
  const auto epilogue_of = [](const std::string& text) { return text.substr(text.find(';')); };
  CHECK(epilogue_of(h0) == epilogue_of(h1));
  std::string refusal;
  for (int place = 2; refusal.empty() && place < 64; ++place) {
    refusal = cudnn_refusal([&] { ConvCudnn(device, several, place); });
    if (refusal.empty()) continue;
    CHECK(refusal == "conv: policy h" + std::to_string(place) + ": cuDNN offers " +
                         std::to_string(place) +
                         " configurations for this problem, expected h0 "
                         "to h" +
                         std::to_string(place - 1));
  }
  CHECK(refusal != "");
}
