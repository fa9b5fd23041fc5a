// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Graphs in which a pass, a layout or a place could easily take what it must not: each was found by
// taking a condition out of the planner.
#include <catch2/catch_test_macros.hpp>
#include <functional>

#include "verify/support/devices.hpp"
#include "verify/support/model_run.hpp"
#include "wide/layers.hpp"

using namespace wide;
using test::built;
using test::ModelRun;

namespace {

/// Computes what it should with three members; its plan has so many copies.
void check(int64_t copies, const std::function<void(GraphBuilder&)>& build,
           const ModelOptions& options = {}) {
  const Graph graph = built(build);
  for (const Context& context : test::devices_at_hand()) {
    CAPTURE(to_string(context.device()));
    ModelRun run(context, graph, {.num_members = 3, .batch = 2}, options);
    CHECK(run.worst_error(run.run()) < 2e-5);
    int64_t found = 0;
    for (const ModelStep& step : run.plan().steps()) found += step.primitive == "copy";
    CHECK(found == copies);
  }
}

Value add(GraphBuilder& g, const char* name, Value x, Value other) {
  return g.append(name, BinaryOp{}, {{"x", x}, {"other", other}});
}
Value tanh(GraphBuilder& g, const char* name, Value x) {
  return layers::pointwise(g, name, x, PointwiseFunction::tanh);
}

}  // namespace

TEST_CASE("model traps: what is read by another name is not written over") {
  check(0, [](GraphBuilder& g) {
    const Value x = tanh(g, "x_node", g.input("x", {kBatch, 4, 3}));
    const Value name = layers::flatten(g, "view", x);
    g.output("y", layers::linear(g, "fc2", tanh(g, "last_of_x", x), 2));
    g.output("z", layers::linear(g, "fc", name, 5));
  });
}

TEST_CASE("model traps: a batchnorm is not folded where others read the convolution") {
  check(0, [](GraphBuilder& g) {
    const Value h =
        layers::conv(g, "conv", g.input("x", {kBatch, 3, 5, 5}), 4, {.padding = {1, 1}});
    g.output("y", layers::batchnorm(g, "bn", h));
    g.output("z", tanh(g, "other", h));
  });
}

TEST_CASE("model traps: residuals that are one for all members, and sums of a value with itself") {
  check(0, [](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 6}), s = g.shared_input("s", {kBatch, 6});
    g.output("y", add(g, "sum", layers::linear(g, "fc", x, 6), s));
    const Value image = g.input("image", {kBatch, 3, 5, 5});
    const Value mean = g.shared_input("mean", {kBatch, 4, 5, 5});
    g.output("w", add(g, "shift", layers::conv(g, "conv", image, 4, {.padding = {1, 1}}), mean));
    const Value h = layers::linear(g, "fc2", x, 6);
    g.output("z", layers::layernorm(g, "norm", add(g, "twice", h, h)));
  });
}

TEST_CASE("model traps: reshapes that keep members in place need no copy") {
  check(0, [](GraphBuilder& g) {
    const Value h = layers::linear(g, "fc", g.input("x", {kBatch, 6, 5}), 4);
    const Value r = layers::reshape(g, "apart", h, {kBatch, 4, 2, 3});
    g.output("y", layers::linear(g, "fc2", r, 7));
  });
}

TEST_CASE("model traps: parts with gaps between them are copied first") {
  check(1, [](GraphBuilder& g) {  // positions of samples that do not lie behind one another
    const Value part =
        layers::slice(g, "slice", tanh(g, "act", g.input("x", {kBatch, 5, 6})), 1, 1, 3);
    g.output("y", layers::softmax(g, "soft", part));
  });
  check(1, [](GraphBuilder& g) {  // features of positions, as one row
    const Value part =
        layers::slice(g, "slice", tanh(g, "act", g.input("x", {kBatch, 5, 6})), 2, 1, 4);
    g.output("y", layers::linear(g, "fc", layers::flatten(g, "flat", part), 3));
  });
  check(1, [](GraphBuilder& g) {  // channels of members that are apart
    const Value h =
        layers::conv(g, "conv", g.input("x", {kBatch, 3, 5, 5}), 6, {.padding = {1, 1}});
    g.output("y", layers::conv(g, "conv2", layers::slice(g, "slice", h, 1, 2, 3), 4,
                               {.padding = {1, 1}}));
  });
}

TEST_CASE("model traps: one parameter in two orders") {
  check(0, [](GraphBuilder& g) {
    const Value w = g.parameter("w", {4, 3, 3, 3});
    const Value a = g.input("a", {kBatch, 3, 5, 5}), b = g.input("b", {kBatch, 5, 5, 3});
    g.output("y", g.append("first", ConvOp{}, {{"x", a}, {"weight", w}}));
    g.output("z", g.append("last", ConvOp{.layout = ChannelLayout::channels_last},
                           {{"x", b}, {"weight", w}}));
  });
}

TEST_CASE("model traps: layers that differ in activation or bias are not one mlp") {
  for (const bool has_bias : {true, false}) {
    const Graph graph = built([&](GraphBuilder& g) {
      const Value x = g.input("x", {kBatch, 16});
      Value h = layers::relu(g, "a1", layers::linear(g, "fc1", x, 16));
      h = g.append("fc2", LinearOp{.activation = Activation::gelu},
                   {{"x", h},
                    {"weight", g.parameter("w2", {16, 16})},
                    {"bias", has_bias ? g.parameter("b2", {16}) : Value{}}});
      g.output("y", layers::linear(g, "fc3", h, 16));
    });
    for (const Context& context : test::devices_at_hand()) {
      const bool is_cpu = context.device().type == DeviceType::cpu;
      ModelRun run(context, graph, {.num_members = 3, .batch = 2},
                   {.strategies = {{"mlp", is_cpu ? "wide" : "layerwise"}}});
      CHECK(run.worst_error(run.run()) < 2e-5);
    }
  }
}

TEST_CASE("model traps: two dropouts of one value drop by numbers of their own") {
  const Graph graph = built([](GraphBuilder& g) {
    const Value x = tanh(g, "act", g.input("x", {kBatch, 256}));
    g.output("y", layers::dropout(g, "one", x, 0.5f));
    g.output("z", layers::dropout(g, "two", x, 0.5f));
  });
  ModelRun run(Context::cpu(), graph, {.num_members = 2, .batch = 2}, {.drops_out = true});
  const ModelRun::Outputs outputs = run.run();
  for (size_t member = 0; member < 2; ++member)
    CHECK(outputs.at("y")[member].values != outputs.at("z")[member].values);
}
