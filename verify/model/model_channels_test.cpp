// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Models whose images have channels last between convolutions: what moves and what is copied for
// it, that nothing of a result changes by it, and strategies for single nodes.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <string>

#include "host/model/channel_regions.hpp"
#include "host/model/passes.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/known_devices.hpp"
#include "verify/support/model_run.hpp"
#include "wide/error.hpp"
#include "wide/layers.hpp"
#include "wide/models.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using test::ModelRun;
using test::small_model;
using enum ChannelLayout;

namespace {

const ModelOptions kLast{.channel_layout = channels_last};

Graph built(const std::function<void(GraphBuilder&)>& build, Dtype dtype = Dtype::fp32) {
  GraphBuilder g("images", dtype);
  build(g);
  return std::move(g).build();
}

const Node& node_of(const Graph& graph, std::string_view name) {
  for (const Node& node : graph.nodes()) {
    if (node.name == name) return node;
  }
  throw Error(ErrorCode::invalid_argument, "no node " + std::string(name));
}
bool is_last(const Graph& graph, std::string_view name) {
  const Operation& op = node_of(graph, name).operation;
  if (const auto* conv = std::get_if<ConvOp>(&op)) return conv->layout == channels_last;
  return *own_layout(op) == channels_last;
}
int64_t copies_of(const Graph& graph) {
  int64_t count = 0;
  for (const Node& node : graph.nodes())
    count += std::holds_alternative<TransposeOp>(node.operation) ? 1 : 0;
  return count;
}

/// Computes what it should with channels last; so many copies are among its nodes, all moved where
/// `moves`.
void check(const Graph& graph, int64_t copies, const ModelProblem& problem = {3, 2},
           ModelOptions options = kLast) {
  for (const Context& context : test::devices_at_hand()) {
    CAPTURE(to_string(context.device()), graph.name());
    ModelRun run(context, graph, problem, options);
    CHECK(run.worst_error(run.run()) < 2e-5);
    CHECK(run.worst_error(run.replay()) < 2e-5);
    INFO(run.plan().explain());
    CHECK(copies_of(run.plan().graph()) == copies);
  }
}

Value binary(GraphBuilder& g, const char* name, Value x, Value other,
             BinaryFunction function = BinaryFunction::add) {
  return g.append(name, BinaryOp{.function = function}, {{"x", x}, {"other", other}});
}

/// Of the pass alone, on devices that are not at hand.
Graph passed(const Graph& graph, const DeviceInfo& device, bool is_verified,
             const ModelOptions& options = {}) {
  static const VerifiedStrategy kVerified[] = {{"conv1d", "wgmma", 90}, {"conv2d", "wgmma", 90}};
  Notes notes;
  const Graph clean = run_passes(graph, options, notes);
  return prefer_channels_last(device, std::span(kVerified).first(is_verified ? 2 : 0), clean,
                              {4, 8}, options, notes);
}

}  // namespace

TEST_CASE("channels last: a network reads its images in place and turns nothing") {
  const Graph graph = small_model("convnet");
  check(graph, 0);
  const ModelPlan plan = make_model_plan(Context::cpu(), graph, {2, 2}, kLast);
  for (const char* name : {"conv0", "conv1", "conv2", "pool0", "pool1", "gap"}) {
    CHECK(is_last(plan.graph(), name));
  }
  CHECK(std::get<ConvOp>(node_of(plan.graph(), "conv0").operation).x_layout == channels_first);
  CHECK_FALSE(std::get<ConvOp>(node_of(plan.graph(), "conv1").operation).x_layout.has_value());
  CHECK_THAT(plan.explain(), ContainsSubstring("conv0 to gap: channels last\n"));
  CHECK(plan.inputs()[0].shape == make_model_plan(Context::cpu(), graph, {2, 2}).inputs()[0].shape);
}

TEST_CASE("channels last: what comes in and goes out is copied once") {
  const Graph graph = small_model("resblock");
  check(graph, 2);
  const ModelPlan plan = make_model_plan(Context::cpu(), graph, {2, 2}, kLast);
  CHECK_THAT(plan.explain(),
             ContainsSubstring("; x is copied; ") && ContainsSubstring(" is copied back\n"));
  ModelOptions still = kLast;
  still.moves_data = false;
  CHECK(copies_of(make_model_plan(Context::cpu(), graph, {2, 2}, still).graph()) == 0);
}

TEST_CASE("channels last: all that can stand between convolutions") {
  check(
      built([](GraphBuilder& g) {
        const Value x = g.input("x", {kBatch, 3, 9, 7});
        Value h = layers::conv(g, "stem", x, 8, {.kernel = {3, 3}, .padding = {1, 1}});
        h = g.append("prelu", PointwiseOp{.function = PointwiseFunction::prelu},
                     {{"x", h}, {"slope", g.parameter("slope", {1})}});
        h = binary(g, "scaled", h, g.parameter("scale", {8, 1, 1}), BinaryFunction::multiply);
        h = binary(g, "shifted", h, g.parameter("shift", {1}));
        const Value left = g.append("left", SliceOp{.axis = 1, .first = 2, .count = 4}, {{"x", h}});
        const Value depth = layers::conv(g, "depthwise", left, 4,
                                         {.kernel = {3, 3}, .padding = {1, 1}, .groups = 4});
        const Value joined =
            g.append("joined", ConcatOp{.axis = 1}, {{"part0", depth}, {"part1", h}});
        const Value low =
            g.append("low", SliceOp{.axis = 2, .first = 1, .count = 8}, {{"x", joined}});
        const Value tall = g.append("tall", ConcatOp{.axis = 3}, {{"part0", low}, {"part1", low}});
        const Value pooled = g.append(
            "pooled",
            PoolingOp{
                .mode = PoolingMode::average, .rows = {.kernel = 2}, .columns = {.kernel = 3}},
            {{"x", tall}});
        const Value dropped = g.append("dropped", DropoutOp{}, {{"x", pooled}});
        const Value twice = binary(g, "twice", dropped, pooled);
        const Value last = layers::conv(g, "last", twice, 5, {.kernel = {1, 1}});
        g.output("y", layers::flatten(g, "flat", layers::global_average_pool(g, "gap", last)));
      }),
      1);  // a part of every member's channels, which then lie apart: as with channels first
}

TEST_CASE("channels last: all that makes images larger") {
  for (const int64_t groups : {1, 2}) {
    const Graph graph = built([&](GraphBuilder& g) {
      const Value x = g.input("x", {kBatch, 3, 5, 4});
      const Value skip = layers::conv(g, "stem", x, 8, {.kernel = {3, 3}, .padding = {1, 1}});
      Value h = layers::max_pool(g, "pool", skip, {.kernel = 2});
      h = layers::conv_transpose(
          g, "up", h, 6,
          {.kernel = {2, 2}, .stride = {2, 2}, .output_padding = {1, 0}, .groups = groups});
      h = g.append("joined", ConcatOp{.axis = 1}, {{"part0", skip}, {"part1", h}});
      h = layers::conv(g, "wide", h, 8, {.kernel = {1, 1}});
      h = layers::upsample(g, "twice", layers::depth_to_space(g, "shuffle", h, 2), 2);
      h = layers::interpolate(g, "between", h, 15, 9);
      h = layers::conv(g, "last", h, 3, {.kernel = {1, 1}});
      g.output("y", layers::flatten(g, "flat", layers::global_average_pool(g, "gap", h)));
    });
    check(graph, 0);
    check(graph, 0, {.num_members = 3, .batches = {2, 0, 1}});
    const ModelPlan plan = make_model_plan(Context::cpu(), graph, {2, 2}, kLast);
    for (const char* name : {"up", "up.interleaved", "shuffle", "twice", "between"}) {
      CHECK(is_last(plan.graph(), name));
    }
  }
}

TEST_CASE("channels last: gates of channels, as squeeze and excitation have them") {
  for (const bool is_read_twice : {false, true}) {
    check(built([&](GraphBuilder& g) {
            const Value x = g.input("x", {kBatch, 3, 6, 5});
            const Value h = layers::conv(g, "stem", x, 8, {.kernel = {3, 3}, .padding = {1, 1}});
            Value gate = layers::conv(g, "squeeze", layers::global_average_pool(g, "mean", h), 2,
                                      {.kernel = {1, 1}});
            gate = layers::conv(g, "excite", layers::relu(g, "act", gate), 8, {.kernel = {1, 1}});
            gate = layers::pointwise(g, "sigmoid", gate, PointwiseFunction::sigmoid);
            Value y = binary(g, "gated", h, gate, BinaryFunction::multiply);
            if (is_read_twice) y = binary(g, "again", y, gate);
            y = layers::conv(g, "last", y, 4, {.kernel = {1, 1}});
            g.output("y", layers::flatten(g, "flat", layers::global_average_pool(g, "gap", y)));
          }),
          0);
  }
}

TEST_CASE("channels last: what needs them first gets them, once") {
  check(built([](GraphBuilder& g) {
          const Value x = g.input("x", {kBatch, 8, 6, 6});
          const Value a = layers::conv(g, "a", x, 8, {.kernel = {3, 3}, .padding = {1, 1}});
          const Value n = layers::groupnorm(g, "n", a, 2);  // reads a with channels first
          const Value b = layers::conv(g, "b", n, 8, {.kernel = {1, 1}});  // a region of its own
          g.output("sum", binary(g, "sum", b, n));  // n is copied for both at once
          g.output("middle", a);                    // as it was copied for n
        }),
        4);  // x, a back, n, sum back; b is fused with sum
}

TEST_CASE("channels last: an image that is added to what a convolution makes of it") {
  const layers::ConvLayer same{.padding = {1, 1}};
  check(built([&](GraphBuilder& g) {
          const Value x = g.input("x", {kBatch, 3, 6, 5});
          g.output("y", binary(g, "sum", layers::conv(g, "conv", x, 3, same), x));
        }),
        2);
  // In a cube the image of either layout may be added: as it is, it is of the other one.
  layers::ConvLayer turned = same;
  turned.layout = channels_last;
  turned.x_layout = channels_first;
  const Graph cube = built([&](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 4, 4, 4});
    g.output("y", binary(g, "sum", layers::conv(g, "conv", x, 4, turned), x));
  });
  check(cube, 1, {3, 2}, {});
  // Likewise where the residual is the convolution's from the beginning: one copy, for it alone.
  for (const auto& [layout, x_layout] :
       {std::pair(channels_last, channels_first), std::pair(channels_first, channels_last)}) {
    const ConvOp op{.padding = {1, 1},
                    .layout = layout,
                    .x_layout = x_layout,
                    .residual = Residual::before_activation};
    const Graph residual = built([&](GraphBuilder& g) {
      const Value x = g.input("x", {kBatch, 4, 4, 4});
      const Value weight = g.parameter("weight", {4, 4, 3, 3});
      g.output("y", g.append("conv", op, {{"x", x}, {"weight", weight}, {"residual", x}}));
    });
    check(residual, 1, {3, 2}, {});
    CHECK_THROWS_WITH(
        make_model_plan(Context::cpu(), residual, {3, 2}, {.moves_data = false}),
        ContainsSubstring("conv (conv2d): x fp32 [B, 4, 4, 4], an input, cannot lie"));
  }
}

TEST_CASE("channels last: shared images, and batches of members' own") {
  const auto build = [](bool is_shared) {
    return built([&](GraphBuilder& g) {
      const Shape shape{kBatch, 3, 8, 8};
      const Value x = is_shared ? g.shared_input("x", shape) : g.input("x", shape);
      Value h = layers::conv(g, "stem", x, 8, {.kernel = {3, 3}, .stride = {2, 2}});
      h = layers::conv(g, "next", layers::max_pool(g, "pool", h, {.kernel = 2}), 6,
                       {.kernel = {1, 1}});
      g.output("y", layers::linear(
                        g, "fc",
                        layers::flatten(g, "flat", layers::global_average_pool(g, "gap", h)), 4));
    });
  };
  check(build(true), 0);
  check(build(false), 0, {.num_members = 3, .batches = {2, 0, 1}});
  check(build(true), 0, {.num_members = 3, .batches = {2, 0, 1}});
}

TEST_CASE("channels last: auto, where more convolutions gain than copies are made") {
  const Graph resnet = make_named_model("resnet18", {.dtype = Dtype::bf16, .image = 64});
  const Graph moved = passed(resnet, test::kH200, true);
  CHECK(is_last(moved, "layer4.1.conv2"));
  CHECK(is_last(moved, "maxpool"));
  CHECK(copies_of(moved) == 0);
  CHECK_FALSE(is_last(passed(resnet, test::kH200, false), "layer4.1.conv2"));
  CHECK_FALSE(is_last(passed(resnet, test::kA100, true), "layer4.1.conv2"));
  CHECK_FALSE(is_last(passed(resnet, Context::cpu().info(), true), "layer4.1.conv2"));
  CHECK_FALSE(is_last(passed(resnet, test::kH200, true, {.channel_layout = channels_first}),
                      "layer4.1.conv2"));
  CHECK_FALSE(is_last(passed(resnet, test::kH200, true, {.strategies = {{"conv", "grouped"}}}),
                      "layer4.1.conv2"));
  // Two convolutions, two copies: nothing is won. Strict fp32 is not for tensor cores.
  const Graph block = make_named_model("resblock", {.dtype = Dtype::bf16});
  CHECK(copies_of(passed(block, test::kH200, true)) == 0);
  const Graph strict = make_named_model("resnet18", {.image = 64});
  CHECK_FALSE(is_last(passed(strict, test::kH200, true), "layer4.1.conv2"));
  CHECK(is_last(passed(strict, test::kH200, true, {.allows_tf32 = true}), "layer4.1.conv2"));
  // From the first convolution to the scores, which are copied back.
  const Graph unet = passed(make_named_model("unet", {.dtype = Dtype::bf16}), test::kH200, true);
  for (const char* name : {"down0.conv1", "up0.transposed", "up0.transposed.interleaved", "head"}) {
    CHECK(is_last(unet, name));
  }
  CHECK(copies_of(unet) == 1);
}

TEST_CASE("model: a node's strategy stands before its primitive's") {
  const Context cpu = Context::cpu();
  const Graph graph = small_model("convnet");
  const auto strategy_of_step = [&](const ModelOptions& options, std::string_view node) {
    const ModelPlan plan = make_model_plan(cpu, graph, {2, 2}, options);
    for (const ModelStep& step : plan.steps()) {
      if (step.node == node) return step.strategy;
    }
    return std::string();
  };
  const ModelOptions named{
      .strategies = {{"conv", "sequential"}, {"conv1", "wide"}, {"pool0", "sequential"}}};
  CHECK(strategy_of_step(named, "conv0") == "sequential");
  CHECK(strategy_of_step(named, "conv1") == "wide");
  CHECK(strategy_of_step(named, "pool0") == "sequential");
  CHECK(strategy_of_step(named, "pool1") == "wide");
  CHECK_THROWS_MATCHES(
      make_model_plan(cpu, graph, {2, 2}, {.strategies = {{"act0", "wide"}}}), Error,
      MessageMatches(ContainsSubstring(
          "\"act0\", which is no primitive and no node that is left after the passes")));
}

TEST_CASE("model: a primitive's name is no node's") {
  const Graph graph = built([](GraphBuilder& g) {
    const Value x = layers::softmax(g, "linear", g.input("x", {kBatch, 8}));
    g.output("y", layers::linear(g, "all", layers::linear(g, "fc", x, 8), 8));
  });
  const auto strategies = [&](const ModelOptions& options) {
    std::string found;
    const ModelPlan plan = make_model_plan(Context::cpu(), graph, {2, 2}, options);
    for (const ModelStep& step : plan.steps()) found += step.node + "=" + step.strategy + " ";
    return found;
  };
  CHECK(strategies({.strategies = {{"linear", "sequential"}}}) ==
        "linear=wide fc=sequential all=sequential ");
  CHECK(strategies({.strategies = {{"all", "sequential"}, {"linear", "wide"}}}) ==
        "linear=sequential fc=wide all=wide ");
}
