// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Factors and terms that repeat along an activation, parameters and computed ones, in models of
// several members: each against plain loops.
#include <catch2/catch_test_macros.hpp>
#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

#include "verify/model/model_case.hpp"
#include "wide/layers.hpp"

using namespace wide;
using test::check_on_all_devices;
using test::ModelRun;

TEST_CASE("model: factors of channels and of last axes, whatever extents are one or equal") {
  struct Case {
    const char* name;
    Shape x, factors;
  };
  for (const Case& c : std::initializer_list<Case>{{"one column", {kBatch, 4, 6, 1}, {4, 1, 1}},
                                                   {"one row", {kBatch, 4, 1, 6}, {4, 1, 1}},
                                                   {"one position", {kBatch, 4, 1, 1}, {4, 1, 1}},
                                                   {"signal of one", {kBatch, 4, 1}, {4, 1}},
                                                   {"rows", {kBatch, 4, 6, 1}, {6, 1}},
                                                   {"as many", {kBatch, 4, 4, 4}, {4, 1, 1}},
                                                   {"as many, last", {kBatch, 4, 4, 4}, {4}}}) {
    check_on_all_devices(c.name, [&](GraphBuilder& g) {
      g.output("y", g.append("scale", BinaryOp{.function = BinaryFunction::multiply},
                             {{"x", g.input("x", c.x)}, {"other", g.parameter("p", c.factors)}}));
    });
  }
}

TEST_CASE("model: the judge has one factor for each channel, also of images of one column") {
  const auto expected = [](const Shape& image) {
    GraphBuilder g("judged");
    Value x = layers::reshape(g, "image", g.input("x", {kBatch, 24}), image);
    x = g.append("scale", BinaryOp{.function = BinaryFunction::multiply},
                 {{"x", x}, {"other", g.parameter("p", {4, 1, 1})}});
    g.output("y", x);
    const Graph graph = std::move(g).build();
    return ModelRun(Context::cpu({.num_threads = 1, .allocator = nullptr}), graph,
                    {.num_members = 1, .batch = 2})
        .reference()
        .at("y")[0]
        .values;
  };
  const std::vector<double> plain = expected({kBatch, 4, 2, 3});
  CHECK(expected({kBatch, 4, 6, 1}) == plain);
  CHECK(expected({kBatch, 4, 1, 6}) == plain);
}

TEST_CASE("model: gates of channels that are computed") {
  check_on_all_devices("gates", [](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 3, 5, 4}), s = g.input("s", {kBatch, 6, 1, 1});
    const Value h = layers::conv(g, "conv", x, 6, {.padding = {1, 1}});
    const Value gate = layers::conv(g, "squeeze", layers::global_average_pool(g, "pool", h), 6,
                                    {.kernel = {1, 1}});
    const auto combine = [&](const char* name, BinaryFunction function, Value a, Value b) {
      return g.append(name, BinaryOp{function}, {{"x", a}, {"other", b}});
    };
    const Value gated = combine("gated", BinaryFunction::multiply, h, gate);
    g.output("y", combine("less", BinaryFunction::subtract, gated, gate));
    g.output("z", combine("all", BinaryFunction::add, gated, s));
    const Value part = layers::slice(g, "slice", gated, 1, 1, 3);
    const Value gate_part = layers::slice(g, "slice_gate", gate, 1, 2, 3);
    g.output("w", combine("parts", BinaryFunction::multiply, part, gate_part));
    const Value rows = g.input("rows", {kBatch, 2, 7}), weight = g.input("weight", {kBatch, 2, 1});
    g.output("v", combine("rowed", BinaryFunction::multiply, rows, weight));
  });
  check_on_all_devices("gates of positions", [](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 3, 5, 4}), rows = g.input("rows", {kBatch, 3, 7});
    const auto times = [&](const char* name, Value a, Value b) {
      return layers::binary(g, name, a, b, BinaryFunction::multiply);
    };
    const Value row = layers::slice(g, "row", x, 2, 3, 1);
    const Value position = layers::slice(g, "position", row, 3, 2, 1);
    g.output("y", times("by_position", x, position));
    g.output("z", times("by_step", rows, layers::slice(g, "step", rows, 2, 4, 1)));
  });
  for (const bool is_gate_shared : {false, true}) {
    check_on_all_devices("one for all", [=](GraphBuilder& g) {
      const Shape image{kBatch, 6, 2, 2}, gate{kBatch, 6, 1, 1};
      const Value x = is_gate_shared ? g.input("x", image) : g.shared_input("x", image);
      const Value s = is_gate_shared ? g.shared_input("s", gate) : g.input("s", gate);
      g.output("y", layers::binary(g, "gate", x, s, BinaryFunction::multiply));
    });
  }
}

TEST_CASE("model: scales of features that are computed, one row's for all of its positions") {
  GraphBuilder hand("by hand");
  hand.output("y", layers::binary(hand, "scaled", hand.input("x", {kBatch, 2, 2}),
                                  hand.input("s", {kBatch, 1, 2}), BinaryFunction::multiply));
  CHECK(catalog::evaluate_graph(
            std::move(hand).build(),
            {{"x", {{2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}}}, {"s", {{2, 1, 2}, {1, 10, 100, 1000}}}},
            {})
            .at("y")
            .values == std::vector<double>{1, 20, 3, 40, 500, 6000, 700, 8000});
  for (const bool is_scale_shared : {false, true}) {
    for (const bool is_x_shared : {false, true}) {
      check_on_all_devices("scales", [=](GraphBuilder& g) {
        const Value x = test::input_of(g, "x", {kBatch, 5, 6}, is_x_shared),
                    s = test::input_of(g, "s", {kBatch, 1, 6}, is_scale_shared),
                    image = test::input_of(g, "image", {kBatch, 4, 3, 6}, is_x_shared),
                    t = test::input_of(g, "t", {kBatch, 1, 1, 6}, is_scale_shared);
        const Value h = layers::linear(g, "fc", x, 6), own = layers::linear(g, "scale", s, 6);
        const Value scaled = layers::binary(g, "scaled", h, own, BinaryFunction::multiply);
        g.output("y",
                 layers::relu(g, "act",
                              layers::binary(g, "shifted", scaled, s, BinaryFunction::subtract)));
        g.output("z", layers::binary(g, "image_scaled", image, t, BinaryFunction::add));
        // Parts of the features lie apart from those of the next member.
        g.output("w", layers::binary(g, "parts", layers::slice(g, "part", h, 2, 1, 3),
                                     layers::slice(g, "own_part", own, 2, 2, 3),
                                     BinaryFunction::multiply));
      });
    }
  }
}

TEST_CASE("model: of scales that are some of a layer's features, they alone are copied") {
  GraphBuilder g("parts");
  const Value s = layers::linear(g, "scale", g.input("s", {kBatch, 1, 6}), 6);
  g.output("y", layers::binary(g, "scaled", g.input("x", {kBatch, 5, 3}),
                               layers::slice(g, "part", s, 2, 1, 3), BinaryFunction::multiply));
  const ModelPlan plan = make_model_plan(Context::cpu(), std::move(g).build(), {3, 2});
  std::string copied;
  for (const Node& node : plan.graph().nodes()) {
    if (!std::holds_alternative<TransposeOp>(node.operation)) continue;
    copied += plan.graph().name(node.operand("x")) + " ";
  }
  CHECK(copied == "part ");
}
