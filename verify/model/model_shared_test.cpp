// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Every operation that can tell members apart, on a value that is one for all of them: each member
// as the plain loops have it, and as it is alone; by copies where the primitive takes these.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <string>
#include <utility>

#include "verify/support/devices.hpp"
#include "verify/support/model_run.hpp"
#include "verify/support/simulation.hpp"
#include "wide/layers.hpp"
#include "wide/validate_model.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;
using test::ModelRun;

namespace {

constexpr ModelProblem kProblem{.num_members = 3, .batch = 2};

/// Node "node" of what `build` makes of a shared x; so many of its operands are copied for it.
struct Case {
  std::string name;
  int copies;
  Shape x;
  std::function<Value(GraphBuilder&, Value)> build;
  Dtype dtype = Dtype::fp32;
};

Graph graph_of(const Case& c) {
  GraphBuilder g("shared");
  const Value x = g.shared_input("x", c.x, c.dtype);
  g.output("y", c.build(g, x));
  return std::move(g).build();
}

int64_t num_copies(const ModelPlan& plan) {
  const auto steps = plan.steps();
  const auto notes = plan.notes();
  const auto noted = std::count_if(notes.begin(), notes.end(), [](const std::string& note) {
    return note.starts_with("node: ") &&
           note.ends_with("is one for all members, and copied for each");
  });
  const auto made = std::count_if(steps.begin(), steps.end(), [](const ModelStep& step) {
    return step.node == "node.copy" && step.primitive == "copy" && step.num_members == 3;
  });
  CHECK(noted == made);
  return made;
}

void check(const Case& c) {
  CAPTURE(c.name);
  const Graph graph = graph_of(c);
  const bool is_ensemble = std::holds_alternative<EnsembleOp>(graph.nodes().back().operation);
  for (const Context& context : test::devices_at_hand()) {
    CAPTURE(to_string(context.device()));
    ModelRun run(context, graph, kProblem);
    CAPTURE(run.plan().explain());
    CHECK(run.worst_error(run.run()) < 2e-5);
    CHECK(num_copies(run.plan()) == c.copies);
    if (is_ensemble) continue;  // joins members: it has no one that is alone, nor rows of one's own
    ModelRun ragged(context, graph, {.num_members = 3, .batches = {1, 0, 3}});
    CHECK(ragged.worst_error(ragged.run()) < 2e-5);
    CHECK(num_copies(ragged.plan()) == 0);  // members read the first rows of x where it lies
  }
  const Context cpu = Context::cpu({.num_threads = 2, .allocator = nullptr});
  std::vector<OwnedParameters> owned;
  for (int64_t m = 0; m < 3; ++m) owned.push_back(random_parameters(graph, 7, m));
  const std::vector<MemberParameters> members = views_of(owned);
  for (const double error : validate_model(cpu, graph, kProblem, members)) CHECK(error < 1e-6);

  ModelOptions strict;
  strict.moves_data = false;
  if (c.copies == 0) {
    CHECK_NOTHROW(make_model_plan(cpu, graph, kProblem, strict));
  } else {
    CHECK_THROWS_WITH(make_model_plan(cpu, graph, kProblem, strict),
                      ContainsSubstring("model: node (") &&
                          ContainsSubstring("is one for all members, expected one for each"));
  }
}

const Shape kRows{kBatch, 4, 12}, kImage{kBatch, 6, 5, 4}, kSignal{kBatch, 6, 9},
    kPositions{kBatch, 3, 8};

Value own_image(GraphBuilder& g) {
  return g.input("own", kImage);
}

Value conv_with_residual(GraphBuilder& g, Value x, Value residual, int64_t groups) {
  const Value weight = g.parameter("weight", {6, 6 / groups, 3, 3});
  return g.append("node",
                  ConvOp{.groups = groups,
                         .padding = {1, 1},
                         .activation = Activation::relu,
                         .residual = Residual::before_activation},
                  {{"x", x}, {"weight", weight}, {"residual", residual}});
}

Value multiply(GraphBuilder& g, Value x, const Shape& factors) {
  return g.append("node", BinaryOp{.function = BinaryFunction::multiply},
                  {{"x", x}, {"other", g.parameter("factors", factors)}});
}

}  // namespace

TEST_CASE("model: one image for all members") {
  using layers::conv;
  for (const Case& c : std::initializer_list<Case>{
           {"conv", 0, kImage, [](auto& g, Value x) { return conv(g, "node", x, 4, {}); }},
           {"signal", 0, kSignal,
            [](auto& g, Value x) { return conv(g, "node", x, 4, {.kernel = {1, 3}}); }},
           {"channels last", 0, kImage,
            [](auto& g, Value x) {
              return conv(g, "node", x, 4, {.layout = ChannelLayout::channels_last});
            }},
           {"groups", 1, kImage,
            [](auto& g, Value x) { return conv(g, "node", x, 4, {.groups = 2}); }},
           {"depthwise", 1, kImage,
            [](auto& g, Value x) { return conv(g, "node", x, 6, {.groups = 6}); }},
           {"channels last, groups", 1, kImage,
            [](auto& g, Value x) {
              return conv(g, "node", x, 4, {.groups = 2, .layout = ChannelLayout::channels_last});
            }},
           {"x and residual", 1, kImage,
            [](auto& g, Value x) { return conv_with_residual(g, x, x, 1); }},
           {"x and residual, groups", 2, kImage,
            [](auto& g, Value x) { return conv_with_residual(g, x, x, 3); }},
           {"residual alone", 1, kImage,
            [](auto& g, Value x) { return conv_with_residual(g, own_image(g), x, 1); }},
           {"x alone", 0, kImage,
            [](auto& g, Value x) { return conv_with_residual(g, x, own_image(g), 1); }},
           {"batchnorm", 1, kImage,
            [](auto& g, Value x) { return layers::batchnorm(g, "node", x); }},
           {"batchnorm of vectors", 1, Shape{kBatch, 9},
            [](auto& g, Value x) { return layers::batchnorm(g, "node", x); }},
           {"groupnorm", 1, kImage,
            [](auto& g, Value x) { return layers::groupnorm(g, "node", x, 3); }},
           {"instancenorm", 1, kImage,
            [](auto& g, Value x) { return layers::instancenorm(g, "node", x); }},
           {"instancenorm of signals", 1, kSignal,
            [](auto& g, Value x) { return layers::instancenorm(g, "node", x); }},
           {"factors of channels", 1, kImage,
            [](auto& g, Value x) { return multiply(g, x, {6, 1, 1}); }},
           {"factors of rows", 0, kImage, [](auto& g, Value x) { return multiply(g, x, {5, 4}); }},
           {"factors", 0, kImage, [](auto& g, Value x) { return multiply(g, x, {6, 5, 4}); }},
           {"factor", 0, kImage, [](auto& g, Value x) { return multiply(g, x, {1}); }},
           {"sum", 0, kImage,
            [](auto& g, Value x) { return layers::add(g, "node", x, own_image(g)); }},
           {"sum with it", 0, kImage,
            [](auto& g, Value x) { return layers::add(g, "node", own_image(g), x); }},
           {"part", 1, Shape{kBatch, 9, 5, 4},
            [](auto& g, Value x) {
              return layers::groupnorm(g, "node", layers::slice(g, "slice", x, 1, 2, 6), 3);
            }},
           {"concat", 0, kImage,
            [](auto& g, Value x) { return layers::concat(g, "node", {x, own_image(g)}, 1); }}}) {
    check(c);
  }
}

TEST_CASE("model: one sequence for all members") {
  const auto prelu = PointwiseOp{.function = PointwiseFunction::prelu};
  for (const Case& c : std::initializer_list<Case>{
           {"linear", 0, kRows, [](auto&g, Value x) { return layers::linear(g, "node", x, 7); }},
           {"linear with residual", 0, kRows,
            [](auto&g, Value x) {
              return g.append(
                  "node", LinearOp{.residual = Residual::before_activation},
                  {{"x", x}, {"weight", g.parameter("weight", {12, 12})}, {"residual", x}});
            }},
           {"layernorm", 0, kRows, [](auto&g, Value x) { return layers::layernorm(g, "node", x); }},
           {"rmsnorm", 0, kRows, [](auto&g, Value x) { return layers::rmsnorm(g, "node", x); }},
           {"chain", 0, kRows,
            [](auto&g, Value x) {
              return g.append("node",
                              ChainOp{.activation = Activation::gelu, .norm = ChainNorm::rmsnorm},
                              {{"x", x},
                               {"bias", g.parameter("bias", {12})},
                               {"residual", x},
                               {"gamma", g.parameter("gamma", {12})}});
            }},
           {"slope", 0, kRows,
            [=](auto&g, Value x) {
              return g.append("node", prelu, {{"x", x}, {"slope", g.parameter("slope", {1})}});
            }},
           {"slopes", 0, kRows,
            [=](auto&g, Value x) {
              return g.append("node", prelu, {{"x", x}, {"slope", g.parameter("slope", {12})}});
            }},
           {"attention", 0, kPositions,
            [](auto&g, Value x) { return layers::attention(g, "node", x, 2); }},
           {"lengths", 0, Shape{kBatch},
            [](auto&g, Value x) {
              return layers::attention(g, "node", g.input("own", kPositions), 2,
                                       {.key_lengths = x});
            },
            Dtype::int32},
           {"queries", 0, kPositions,
            [](auto&g, Value x) {
              const Value k = layers::linear(g, "k", x, 8);
              return g.append("node", FlashAttentionOp{.heads = 2}, {{"q", x}, {"k", k}, {"v", k}});
            }},
           {"keys and values", 0, kPositions,
            [](auto&g, Value x) {
              return g.append("node", FlashAttentionOp{.heads = 2},
                              {{"q", g.input("own", kPositions)}, {"k", x}, {"v", x}});
            }},
           {"embedding", 0, Shape{kBatch, 3},
            [](auto&g, Value x) { return layers::embedding(g, "node", x, 5, 4); }, Dtype::int32},
           {"ensemble", 0, kRows, [](auto&g, Value x) {
              return layers::ensemble(g, "node", x, EnsembleFunction::mean);
            }}}) {
    check(c);
  }
}

TEST_CASE("model: parameters that nobody reads may be shared, those that are none may not") {
  GraphBuilder g("unread");
  (void)g.parameter("dead", {3});
  const Value x = g.input("x", {kBatch, 8});
  (void)layers::linear(g, "unread", x, 4);
  g.output("y", layers::relu(g, "act", layers::linear(g, "fc", x, 8)));
  const Graph graph = std::move(g).build();
  const Context cpu = Context::cpu({.num_threads = 2, .allocator = nullptr});
  const OwnedParameters owned = random_parameters(graph, 7, 0);
  const std::vector<MemberParameters> equal(3, views_of(owned));
  ModelOptions options;
  options.shared_parameters = equal_parameters(graph, equal);
  CHECK(options.shared_parameters.size() == 5);  // all there are, also of what is never computed
  for (const Context& context : test::devices_at_hand()) {
    ModelRun run(context, graph, kProblem, options, 7, {1, 1, 1});
    CHECK(run.worst_error(run.run()) < 2e-5);
    CHECK_NOTHROW(run.model().with_batch(5));
  }
  options.shared_parameters = {"daed"};
  CHECK_THROWS_WITH(make_model_plan(cpu, graph, kProblem, options),
                    ContainsSubstring("model: shared_parameters has daed, expected names of the "
                                      "graph's parameters, did you mean dead?"));
}

TEST_CASE("model: members that are loaded neither read back nor write what the first one shares") {
  test::require_simulation();  // which counts calls
  const Context context = test::require_cuda();
  // Calls of making a model of that many members, of so many layers that are all shared.
  const auto calls_of = [&](int64_t num_layers, size_t num_members) {
    const Graph graph = test::built([&](GraphBuilder& g) {
      Value h = g.shared_input("x", {kBatch, 8});
      for (int64_t i = 0; i < num_layers; ++i) {
        h = layers::linear(g, "layer" + std::to_string(i), h, 8);
      }
      g.output("y", h);
    });
    const OwnedParameters owned = random_parameters(graph, 7, 0);
    const std::vector<MemberParameters> equal(num_members, views_of(owned));
    const ModelPlan plan = make_model_plan(
        context, graph, {.num_members = static_cast<int64_t>(num_members), .batch = 2},
        {.shared_parameters = equal_parameters(graph, equal)});
    const int64_t before = test::Simulation::num_calls();
    const Model model(context, plan, equal);
    return test::Simulation::num_calls() - before;
  };
  const int64_t of_one_layer = calls_of(1, 9) - calls_of(1, 2);
  CHECK(of_one_layer == calls_of(5, 9) - calls_of(5, 2));
  CHECK(calls_of(5, 2) > calls_of(1, 2));  // the first has its own
}

TEST_CASE("model: members drop out what is one for all of them") {
  const Graph graph = graph_of(
      {"dropout", 0, kRows, [](auto& g, Value x) { return layers::dropout(g, "node", x, 0); }});
  for (const Context& context : test::devices_at_hand()) {
    ModelRun run(context, graph, kProblem, {.drops_out = true});
    CHECK(run.plan().steps()[0].num_members == 3);
    CHECK(run.worst_error(run.run()) == 0);
  }
}

TEST_CASE("model: what is computed once stays so beside what is each member's own") {
  const Graph graph = test::built([](GraphBuilder& g) {
    const Value x = g.shared_input("x", {kBatch, 12}), image = g.shared_input("image", kImage);
    const Value fc = layers::linear(g, "fc", x, 8, {.has_bias = false});
    g.output("biased", layers::add(g, "bias", fc, g.parameter("own_bias", {8})));
    const Value sum = layers::add(g, "sum", fc, layers::relu(g, "act", fc));
    g.output("sum_of_all", sum);
    g.output("normed", layers::layernorm(g, "own_norm", sum));
    const Value conv = layers::conv(g, "conv", image, 6, {.has_bias = false});
    g.output("folded", layers::batchnorm(g, "own_batchnorm", conv));
  });
  ModelOptions options;
  options.shared_parameters = {"fc.weight", "conv.weight"};
  for (const Context& context : test::devices_at_hand()) {
    ModelRun run(context, graph, kProblem, options, 7, {1, 1, 1});
    INFO(run.plan().explain());
    CHECK(run.worst_error(run.run()) < 2e-5);
    CHECK(run.plan().outputs()[1].member_axis < 0);
    for (const ModelParameter& parameter : run.plan().parameters()) {
      const Value given = graph.find_parameter(parameter.name);
      CHECK(graph.type(given) == ValueType{parameter.dtype, parameter.shape});
      CHECK(parameter.is_shared ==
            (parameter.name == "fc.weight" || parameter.name == "conv.weight"));
    }
    CHECK(std::ssize(run.plan().parameters()) == std::ssize(graph.parameters()));
    int computed_once = 0;
    for (const ModelStep& step : run.plan().steps()) {
      const bool is_layer = step.primitive == "linear" || step.primitive.starts_with("conv");
      computed_once += is_layer && step.num_members == 1;
    }
    CHECK(computed_once == 2);
  }
}
