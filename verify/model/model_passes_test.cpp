// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Graphs that passes once got wrong or refused: what an epilogue does first, nodes that are not
// there yet, copies of more than one operand, images of one position.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <stdexcept>
#include <string>

#include "host/model/move.hpp"
#include "host/model/passes.hpp"
#include "host/model/rewrite.hpp"
#include "verify/support/cases.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/model_run.hpp"
#include "wide/layers.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using test::built;
using test::ModelRun;
using enum ChannelLayout;

namespace {

const ModelOptions kLast{.channel_layout = channels_last};

/// Computes what it should with three members, by steps of these primitives.
void check(const std::string& primitives, const std::function<void(GraphBuilder&)>& build,
           const ModelOptions& options = {}) {
  const Graph graph = built(build);
  for (const Context& context : test::devices_at_hand()) {
    CAPTURE(to_string(context.device()));
    ModelRun run(context, graph, {.num_members = 3, .batch = 2}, options);
    CHECK(run.worst_error(run.run()) < 2e-5);
    std::string found;
    for (const ModelStep& step : run.plan().steps()) {
      found += (found.empty() ? "" : " ") + step.primitive;
    }
    CHECK(found == primitives);
  }
}

Value tanh(GraphBuilder& g, const char* name, Value x) {
  return layers::pointwise(g, name, x, PointwiseFunction::tanh);
}
Value conv1d(GraphBuilder& g, const char* name, Value x) {
  return layers::conv(g, name, x, 4, {.kernel = {1, 3}, .padding = {0, 1}});
}
Value conv1x1(GraphBuilder& g, const char* name, Value x) {
  return layers::conv(g, name, x, 4, {.kernel = {1, 1}});
}

}  // namespace

TEST_CASE("passes: a bias behind a layer's own activation or last residual stays behind it") {
  check("linear binary", [](GraphBuilder& g) {
    const Value h = layers::linear(g, "fc", g.input("x", {kBatch, 16}), 8,
                                   {.has_bias = false, .activation = Activation::relu});
    g.output("y", layers::add(g, "add", h, g.parameter("b", {8})));
  });
  check("linear binary pointwise", [](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 8});
    const Value h = g.append("fc", LinearOp{.residual = Residual::after_activation},
                             {{"x", x}, {"weight", g.parameter("w", {8, 8})}, {"residual", x}});
    const Value sum = layers::add(g, "add", h, g.parameter("b", {8}));
    g.output("y", layers::relu(g, "relu", sum));
  });
}

TEST_CASE("passes: an activation behind a layer's last residual stays behind it") {
  check("linear pointwise", [](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 8});
    const Value h = g.append("fc", LinearOp{.residual = Residual::after_activation},
                             {{"x", x}, {"weight", g.parameter("w", {8, 8})}, {"residual", x}});
    g.output("y", layers::relu(g, "relu", h));
  });
  check("conv2d pointwise", [](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 4, 5, 5});
    const Value h =
        g.append("conv", ConvOp{.residual = Residual::after_activation},
                 {{"x", x}, {"weight", g.parameter("w", {4, 4, 1, 1})}, {"residual", x}});
    g.output("y", layers::gelu(g, "gelu", h));
  });
}

TEST_CASE("passes: a layer's own epilogue takes in what may still follow it") {
  check("linear", [](GraphBuilder& g) {  // relu(W x) + x
    const Value x = g.input("x", {kBatch, 8});
    const Value h = layers::linear(g, "fc", x, 8, {.activation = Activation::relu});
    g.output("y", layers::add(g, "add", h, x));
  });
  check("linear", [](GraphBuilder& g) {  // relu(W x + x + b)
    const Value x = g.input("x", {kBatch, 8});
    const Value h = g.append("fc", LinearOp{.residual = Residual::before_activation},
                             {{"x", x}, {"weight", g.parameter("w", {8, 8})}, {"residual", x}});
    const Value sum = layers::add(g, "add", h, g.parameter("b", {8}));
    g.output("y", layers::relu(g, "relu", sum));
  });
}

TEST_CASE("passes: graphs are lowered to every primitive, whose strategy may be named") {
  const auto groups = strategy_groups();
  for (const catalog::PrimitiveSpec* spec : catalog::primitives()) {
    INFO(spec->name);
    CHECK(std::ranges::count(groups, test::plan_name(*spec)) == 1);
  }
}

TEST_CASE("passes: gelu by tanh is an epilogue of linear and conv layers") {
  const auto two_layers = [](GraphBuilder& g) {
    const Value h = layers::linear(g, "fc1", g.input("x", {kBatch, 8}), 12);
    const Value a = layers::pointwise(g, "act", h, PointwiseFunction::gelu_tanh);
    g.output("y", layers::linear(g, "fc2", a, 4, {.has_bias = false}));  // else they are an mlp
  };
  check("linear linear", two_layers);
  check("linear pointwise linear", two_layers, {.fuses_epilogues = false});
  check("conv2d", [](GraphBuilder& g) {
    const Value h = conv1x1(g, "conv", g.input("x", {kBatch, 4, 5, 5}));
    g.output("y", layers::pointwise(g, "act", h, PointwiseFunction::gelu_tanh));
  });
}

TEST_CASE("passes: a norm whose gamma and beta are computed behind the addition keeps them") {
  check("layernorm", [](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 8}), r = g.input("r", {kBatch, 8});
    const Value both = g.parameter("both", {16});
    const Value sum = layers::add(g, "add", x, r);
    const Value gamma = layers::slice(g, "gamma", both, 0, 0, 8);
    const Value beta = layers::slice(g, "beta", both, 0, 8, 8);
    g.output("y", g.append("norm", LayernormOp{}, {{"x", sum}, {"gamma", gamma}, {"beta", beta}}));
    g.output("sum", sum);
  });
}

TEST_CASE("passes: a sum that others read is there by then, or stays a node of its own") {
  for (const bool is_late : {false, true}) {  // gamma, behind the other reader
    check(is_late ? "binary pointwise rmsnorm" : "rmsnorm pointwise", [&](GraphBuilder& g) {
      const Value x = g.input("x", {kBatch, 8}), r = g.input("r", {kBatch, 8});
      const Value own = g.parameter("own", {8}), part = g.parameter("part", {9});
      const Value sum = layers::add(g, "add", x, r);
      g.output("z", tanh(g, "act", sum));
      const Value gamma = is_late ? layers::slice(g, "gamma", part, 0, 1, 8) : own;
      g.output("y", g.append("norm", RmsnormOp{}, {{"x", sum}, {"gamma", gamma}}));
    });
  }
}

TEST_CASE("passes: an mlp of layers whose weights are computed between them") {
  for (const Context& context : test::devices_at_hand()) {
    const bool is_cpu = context.device().type == DeviceType::cpu;
    const Graph graph = built([](GraphBuilder& g) {
      Value h = layers::linear(g, "fc1", g.input("x", {kBatch, 16}), 12);
      h = layers::relu(g, "relu", layers::batchnorm(g, "bn1", h));
      g.output("y", layers::batchnorm(g, "bn2", layers::linear(g, "fc2", h, 8)));
    });
    ModelRun run(context, graph, {.num_members = 3, .batch = 2},
                 {.strategies = {{"mlp", is_cpu ? "sequential" : "layerwise"}}});
    REQUIRE(run.plan().steps().size() == 1);
    CHECK(run.plan().steps()[0].primitive == "mlp");
    CHECK(run.worst_error(run.run()) < 2e-5);
  }
}

TEST_CASE("passes: what is read before it is rewritten is no operand that is left out") {
  Value h;
  const Graph graph = built([&](GraphBuilder& g) {
    h = layers::linear(g, "fc", g.input("x", {kBatch, 8}), 8);
    g.output("y", layers::relu(g, "relu", h));
  });
  Rewrite rewrite(graph);
  CHECK(rewrite(Value{}).is_absent());
  CHECK_FALSE(rewrite(graph.inputs()[0]).is_absent());
  CHECK_THROWS_MATCHES(
      rewrite.copy(graph.nodes()[1]), std::logic_error,
      MessageMatches(ContainsSubstring("fc of built is read before it is rewritten")));
  rewrite.copy(graph.nodes()[0]);
  CHECK_FALSE(rewrite(h).is_absent());
}

TEST_CASE("passes: a node whose operands both lie wrong gets a copy of each") {
  check("attention copy copy binary conv1d", [](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 5, 6});
    g.output("y", conv1d(g, "conv", layers::add(g, "add", layers::attention(g, "heads", x, 2), x)));
  });
  check("layernorm copy copy binary conv1d", [](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 5, 6});
    g.output("y", conv1d(g, "conv", layers::add(g, "add", layers::layernorm(g, "norm", x), x)));
  });
  for (const char* preset : {"default", "debug"}) {
    CAPTURE(preset);
    const std::string fused = "copy copy linear copy copy conv1d",
                      apart = "copy copy conv1d copy linear copy binary";
    check(
        std::string_view(preset) == "default" ? fused : apart,
        [](GraphBuilder& g) {
          const Value x = g.input("x", {kBatch, 5, 8});
          const Value left = layers::slice(g, "left", x, 1, 0, 4);
          const Value right = conv1d(g, "conv", layers::slice(g, "right", x, 1, 1, 4));
          g.output("y", layers::add(g, "add", layers::linear(g, "fc", left, 8), right));
        },
        model_options(preset));
  }
}

TEST_CASE("passes: a view that others read as it cannot lie is copied behind it") {
  check("linear copy conv2d", [](GraphBuilder& g) {  // channels last: of rows there are none
    const Value h = layers::linear(g, "fc", g.input("x", {kBatch, 8}), 4 * 4 * 6);
    g.output("y", layers::conv(g, "conv", layers::reshape(g, "image", h, {kBatch, 4, 4, 6}), 4,
                               {.padding = {1, 1}, .layout = channels_last}));
  });
  check("copy linear conv2d", [](GraphBuilder& g) {
    const Value x = layers::reshape(g, "view", g.input("x", {kBatch, 8}), {kBatch, 4, 1, 2});
    g.output("y", layers::linear(g, "fc", x, 3));
    g.output("z", layers::conv(g, "conv", x, 3, {.kernel = {1, 1}, .layout = channels_last}));
  });
}

TEST_CASE("passes: a copy that no node asks for is refused, not tried again and again") {
  const Graph graph = built([](GraphBuilder& g) {
    g.output("y", tanh(g, "tanh", g.input("x", {kBatch, 3})));
  });
  Notes notes;
  CHECK_THROWS_AS(Moves().insert(graph, MoveNeeded("y", {}, "y: lies wrong"), notes), MoveNeeded);
}

TEST_CASE("passes: one copy of a value that a node reads twice") {
  check("conv1d copy flash_attention", [](GraphBuilder& g) {
    const Value h = conv1d(g, "conv", g.input("x", {kBatch, 5, 6}));
    g.output("y", g.append("heads", FlashAttentionOp{.heads = 2}, {{"q", h}, {"k", h}, {"v", h}}));
  });
}

TEST_CASE("passes: an image of one position has channels last without a copy") {
  check(
      "conv2d",
      [](GraphBuilder& g) {
        g.output("y", conv1x1(g, "conv", g.input("x", {kBatch, 8, 1, 1})));
      },
      kLast);
  check(
      "linear conv2d",
      [](GraphBuilder& g) {
        const Value h = layers::linear(g, "fc", g.input("x", {kBatch, 6}), 8);
        g.output("y", conv1x1(g, "conv", layers::reshape(g, "image", h, {kBatch, 8, 1, 1})));
      },
      kLast);
}

TEST_CASE("passes: a shared image is copied for groups as the convolution reads it") {
  const auto grouped = [](GraphBuilder& g) {
    const Value x = g.shared_input("x", {kBatch, 6, 8, 8});
    g.output("y", layers::conv(g, "conv", x, 4, {.groups = 2}));
  };
  check("copy conv2d", grouped);
  check("copy conv2d copy", grouped, kLast);  // y is turned back
}

TEST_CASE("passes: of dropouts behind an input one stays, as the output's node") {
  check("copy", [](GraphBuilder& g) {
    const Value once = layers::dropout(g, "once", g.input("x", {kBatch, 8}), 0.5f);
    g.output("y", layers::dropout(g, "twice", once, 0.5f));
  });
}
