// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Products of two activations: the judge against numbers worked out by hand, and models of several
// members against the judge, wherever members stand.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "verify/model/model_case.hpp"
#include "wide/error.hpp"
#include "wide/layers.hpp"
#include "wide/model_replay.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using layers::MatmulLayer;
using test::allowed_error, test::built;
using test::ModelRun;

namespace {

/// By kernels of ours, too.
void check(const Graph& graph, double most = 2e-5) {
  test::check_on_all_devices(graph, most);
  for (const Context& context : test::devices_at_hand()) {
    CAPTURE(to_string(context.device()));
    ModelRun ours(context, graph, {.num_members = 3, .batch = 2},
                  {.strategies = {{"linear", "auto_unverified"}}});
    INFO(ours.plan().explain());
    CHECK(ours.worst_error(ours.run()) < most);
  }
}

Graph product_of(const Shape& left, const Shape& right, const MatmulLayer& layer = {},
                 Dtype dtype = Dtype::fp32) {
  GraphBuilder g("product", dtype);
  const Value a = g.input("a", left), b = g.input("b", right);
  g.output("y", layers::matmul(g, "product", a, b, layer));
  return std::move(g).build();
}

std::vector<ModelStep> steps_of(const Graph& graph, const ModelProblem& problem) {
  const ModelPlan plan = make_model_plan(Context::cpu(), graph, problem);
  return {plan.steps().begin(), plan.steps().end()};
}
int64_t num_steps(const std::vector<ModelStep>& steps, std::string_view primitive) {
  return std::ranges::count(steps, primitive, &ModelStep::primitive);
}

}  // namespace

TEST_CASE("matmul: products that were worked out by hand") {
  const auto values = [](const MatmulLayer& layer) {
    return catalog::evaluate_graph(
               product_of({kBatch, 2, 2}, {kBatch, 2, 2}, layer),
               {{"a", {{1, 2, 2}, {1, 2, 3, 4}}}, {"b", {{1, 2, 2}, {5, 6, 7, 8}}}}, {})
        .at("y")
        .values;
  };
  using Values = std::vector<double>;
  CHECK(values({}) == Values{19, 22, 43, 50});
  CHECK(values({.transposes_right = true}) == Values{17, 23, 39, 53});
  CHECK(values({.transposes_left = true}) == Values{26, 30, 38, 44});
  CHECK(values({.transposes_left = true, .transposes_right = true, .alpha = 0.5f}) ==
        Values{11.5, 15.5, 17, 23});
}

TEST_CASE("matmul: members' own products, of any shape") {
  check(product_of({kBatch, 3, 5}, {kBatch, 5, 4}));
  check(product_of({kBatch, 1, 8}, {kBatch, 8, 1}, {.alpha = -2}));
  check(product_of({kBatch, 2, 3, 8}, {kBatch, 2, 6, 8}, {.transposes_right = true}));
  check(product_of({kBatch, 2, 2, 7, 3}, {kBatch, 2, 2, 7, 5}, {.transposes_left = true}));
  const int64_t wide = test::wants_small_cases() ? 24 : 96;
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16}) {
    check(
        product_of({kBatch, 2, 17, wide}, {kBatch, 2, 9, wide}, {.transposes_right = true}, dtype),
        allowed_error(dtype));
    check(product_of({kBatch, 40, 16}, {kBatch, 16, 24}, {}, dtype), allowed_error(dtype));
  }
}

TEST_CASE("matmul: scores, a softmax and values are an attention spelled out") {
  const Graph graph = built([](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 6, 12});
    const auto heads = [&](const std::string& name, Value rows, const Dims& order) {
      const Value apart = layers::reshape(g, name + ".apart", rows, {kBatch, 6, 3, 4});
      return layers::transpose(g, name + ".heads", apart, order);
    };
    const Value q_rows = layers::linear(g, "q", x, 12), k_rows = layers::linear(g, "k", x, 12),
                v_rows = layers::linear(g, "v", x, 12);
    const Value q = heads("q", q_rows, {0, 2, 1, 3}), k = heads("k", k_rows, {0, 2, 1, 3}),
                v = heads("v", v_rows, {0, 2, 3, 1});
    const Value scores =
        layers::matmul(g, "scores", q, k, {.transposes_right = true, .alpha = 0.5f});
    const Value shares = layers::softmax(g, "shares", scores);
    const Value mixed = layers::matmul(g, "mixed", shares, v, {.transposes_right = true});
    const Value back = layers::transpose(g, "back", mixed, {0, 2, 1, 3});
    const Value y = layers::reshape(g, "together", back, {kBatch, 6, 12});
    g.output("y", layers::linear(g, "out", y, 12));
    g.output("attention",
             layers::flash_attention(g, "attention", q_rows, k_rows, v_rows, 3, {.scale = 0.5f}));
  });
  check(graph);
}

TEST_CASE("matmul: what follows is fused, and what members stand beside is moved") {
  const auto fused = [](const Shape& left, const Shape& right) {
    return built([&](GraphBuilder& g) {
      const Value a = g.input("a", left), b = g.input("b", right), c = g.input("c", left);
      const Value y = layers::matmul(g, "product", a, b);
      g.output("y", layers::add(g, "sum", layers::relu(g, "act", y), c));
    });
  };
  const Graph graph = fused({kBatch, 4, 6}, {kBatch, 6, 6});
  check(graph);
  const auto steps = steps_of(graph, {.num_members = 3, .batch = 2});
  CHECK(num_steps(steps, "matmul") == 1);
  CHECK(num_steps(steps, "pointwise") + num_steps(steps, "binary") == 0);

  // Channels packed are matrices one after another; features packed are not.
  const Graph channels = built([](GraphBuilder& g) {
    const Value x = layers::conv(g, "conv", g.input("x", {kBatch, 3, 8}), 4, {.kernel = {1, 1}});
    g.output("y", layers::matmul(g, "gram", x, x, {.transposes_right = true}));
  });
  check(channels);
  CHECK(num_steps(steps_of(channels, {.num_members = 3, .batch = 2}), "copy") == 0);
  const Graph features = built([](GraphBuilder& g) {
    const Value x = layers::linear(g, "rows", g.input("x", {kBatch, 4, 8}), 8);
    g.output("y", layers::matmul(g, "gram", x, x, {.transposes_right = true}));
    g.output("x1", layers::layernorm(g, "norm", x));
  });
  check(features);
  // A part of an axis: its matrices are apart by more than they have.
  const Graph parts = built([](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 3, 5, 12});
    const Value q = layers::slice(g, "q", x, 3, 0, 4), k = layers::slice(g, "k", x, 3, 4, 4);
    const Value two = layers::slice(g, "two", x, 1, 1, 2);
    g.output("y", layers::matmul(g, "scores", q, k, {.transposes_right = true}));
    g.output("z", layers::matmul(g, "other", two, two, {.transposes_right = true}));
  });
  check(parts);
  const ModelProblem problem{.num_members = 3, .batch = 2};
  CHECK(num_steps(steps_of(parts, problem), "copy") == 1);
  CHECK_THAT(test::refusal(parts, problem, {.moves_data = false}),
             ContainsSubstring("expected matrices of one stride: this would move data"));
}

TEST_CASE("matmul: what all members share is computed once, or copied for each and noted") {
  const Graph graph = built([](GraphBuilder& g) {
    const Value a = g.input("a", {kBatch, 3, 4}), s = g.shared_input("s", {kBatch, 5, 4});
    g.output("y", layers::matmul(g, "product", a, s, {.transposes_right = true}));
    g.output("z", layers::matmul(g, "once", s, s, {.transposes_right = true}));
  });
  check(graph);
  const ModelPlan plan = make_model_plan(Context::cpu(), graph, {.num_members = 3, .batch = 2});
  for (const ModelStep& step : plan.steps())
    if (step.node == "once") CHECK(step.num_members == 1);
  CHECK(std::ranges::count(plan.notes(),
                           "product: right is one for all members, and copied for each") == 1);
  CHECK_THAT(test::refusal(graph, {.num_members = 3, .batch = 2}, {.moves_data = false}),
             ContainsSubstring("right is one for all members, expected one for each"));
}

TEST_CASE("matmul: routed rows, and a captured run") {
  const Graph graph = built([](GraphBuilder& g) {
    const Value rows = layers::linear(g, "rows", g.input("x", {kBatch, 8}), 12);
    const Value x = layers::reshape(g, "apart", rows, {kBatch, 3, 4});
    const Value gram = layers::matmul(g, "gram", x, x, {.transposes_right = true, .alpha = 0.25f});
    g.output("y", layers::linear(g, "out", layers::flatten(g, "flat", gram), 5));
  });
  for (const Context& context : test::devices_at_hand()) {
    CAPTURE(to_string(context.device()));
    ModelRun routed(context, graph, {.num_members = 3, .batch = 7, .is_routed = true});
    CHECK(routed.worst_error(routed.run()) < 2e-5);
    ModelRun run(context, graph, {.num_members = 3, .batch = 2});
    CHECK(run.worst_error(run.replay()) < 2e-5);
  }
}

TEST_CASE("matmul: what cannot be is refused with what was got and what is expected") {
  const auto refused = [](const std::string& message,
                          const std::function<void(GraphBuilder&)>& add) {
    GraphBuilder g("refused");
    CAPTURE(message);
    CHECK_THROWS_MATCHES(add(g), Error, MessageMatches(ContainsSubstring(message)));
  };
  const auto product = [](const Shape& left, const Shape& right, const MatmulLayer& layer = {}) {
    return [=](GraphBuilder& g) {
      (void)layers::matmul(g, "product", g.input("a", left), g.input("b", right), layer);
    };
  };
  refused(
      "product: right is fp32 [B, 4, 6], expected left's dtype and axes, fp32 [B, 3, 5], but for "
      "the last but one",
      product({kBatch, 3, 5}, {kBatch, 6, 4}));
  refused("right is [B, 2, 4, 5], expected 3 axes", product({kBatch, 3, 5}, {kBatch, 2, 5, 4}));
  refused("left is [B, 5], expected 3 to 5 axes",
          product({kBatch, 5}, {kBatch, 3, 5}, {.transposes_right = true}));
  refused("right is fp32 [B, 5], expected a batch and two or more axes after it",
          product({kBatch, 3, 5}, {kBatch, 5}));
  refused("alpha is inf, expected a finite number",
          product({kBatch, 3, 5}, {kBatch, 5, 4}, {.alpha = INFINITY}));
  refused("right is absent, expected one", [](GraphBuilder& g) {
    (void)layers::matmul(g, "product", g.input("a", {kBatch, 3, 5}), {});
  });
  refused("right is a parameter of shape [3, 4, 5], expected a value with a batch",
          [](GraphBuilder& g) {
            (void)layers::matmul(g, "product", g.input("a", {kBatch, 3, 5}),
                                 g.parameter("b", {3, 4, 5}), {.transposes_right = true});
          });
  refused("residual is absent, expected one", [](GraphBuilder& g) {
    const Value a = g.input("a", {kBatch, 3, 5});
    (void)g.append("product", MatmulOp{.residual = Residual::before_activation},
                   {{"left", a}, {"right", a}});
  });
}
