// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// interpolate in models: the judge against numbers worked out by hand, and models of several
// members against the judge, wherever outputs lie.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>

#include "verify/model/model_case.hpp"
#include "wide/error.hpp"
#include "wide/layers.hpp"

using namespace wide;
using catalog::Doubles;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using test::ModelRun;

namespace {

double allowed(Dtype dtype) {
  return dtype == Dtype::fp32 ? 2e-6 : dtype == Dtype::fp16 ? 2e-3 : 2e-2;
}

/// On every device, with one batch, with batches of members' own, and of what members share.
void check(const std::function<Graph(bool is_shared)>& graph_of, double most) {
  for (const Context& context : test::devices_at_hand()) {
    CAPTURE(to_string(context.device()));
    for (const bool is_shared : {false, true}) {
      ModelRun run(context, graph_of(is_shared), {.num_members = 3, .batch = 2});
      CHECK(run.worst_error(run.run()) < most);
    }
    ModelRun ragged(context, graph_of(false), {.num_members = 3, .batches = {1, 0, 3}});
    CHECK(ragged.worst_error(ragged.run()) < most);
  }
}

void refused(const char* why, const Shape& x, const InterpolateOp& op) {
  const auto build = [&] {
    GraphBuilder g("g");
    (void)g.append("between", op, {{"x", g.input("x", x)}});
  };
  CHECK_THROWS_MATCHES(build(), Error, MessageMatches(ContainsSubstring(why)));
}

}  // namespace

TEST_CASE("interpolate in a graph: the judge's numbers are those worked out by hand") {
  const auto evaluated = [](const Doubles& x, const Shape& shape, const InterpolateOp& op) {
    GraphBuilder g("by hand");
    g.output("y", g.append("between", op, {{"x", g.input("x", shape)}}));
    return catalog::evaluate_graph(std::move(g).build(), {{"x", x}}, {}).at("y").values;
  };
  using Values = std::vector<double>;
  const auto signal = [&](const InterpolateOp& op) {
    return evaluated({{1, 1, 3}, {1, 2, 4}}, {kBatch, 1, 3}, op);
  };
  CHECK(signal({.out_width = 6}) == Values{1, 1.25, 1.75, 2.5, 3.5, 4});
  CHECK(signal({.out_width = 1}) == Values{2});
  CHECK(signal({.coordinates = CoordinateMode::asymmetric, .column_scale = 2}) ==
        Values{1, 1.5, 2, 3, 4, 4});
  CHECK(signal({.out_width = 5, .coordinates = CoordinateMode::align_corners}) ==
        Values{1, 1.5, 2, 3, 4});
  CHECK(signal({.out_width = 1, .coordinates = CoordinateMode::pytorch_half_pixel}) == Values{1});
  CHECK(evaluated({{1, 1, 2, 2}, {0, 4, 8, 12}}, {kBatch, 1, 2, 2},
                  {.out_height = 4, .out_width = 4}) ==
        Values{0, 1, 3, 4, 2, 3, 5, 6, 6, 7, 9, 10, 8, 9, 11, 12});
}

TEST_CASE("interpolate in a model: signals and images of every dtype, wherever outputs lie") {
  for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
    CAPTURE(dtype_name(dtype));
    check(
        [&](bool is_shared) {
          GraphBuilder g("between", dtype);
          const auto input = [&](const char* name, const Shape& shape) {
            return test::input_of(g, name, shape, is_shared);
          };
          const Value signal = input("signal", {kBatch, 3, 5}),
                      image = input("image", {kBatch, 3, 4, 6});
          g.output("a", layers::interpolate(g, "a", signal, 0, 8));
          const Value b = layers::interpolate(g, "b", image, 8, 12);
          g.output("b", layers::relu(g, "act", b));
          g.output("c", layers::interpolate(g, "c", image, 7, 3, CoordinateMode::align_corners));
          g.output("d", g.append("d",
                                 InterpolateOp{.coordinates = CoordinateMode::asymmetric,
                                               .row_scale = 1.6f,
                                               .column_scale = 0.7f},
                                 {{"x", image}}));
          return std::move(g).build();
        },
        allowed(dtype));
  }
}

TEST_CASE("interpolate in a model: channels last") {
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
    CAPTURE(dtype_name(dtype));
    check(
        [&](bool is_shared) {
          GraphBuilder g("between", dtype);
          InterpolateOp op{.out_height = 7, .out_width = 3};
          op.layout = ChannelLayout::channels_last;
          g.output("a", g.append("a", op,
                                 {{"x", test::input_of(g, "signal", {kBatch, 5, 3}, is_shared)}}));
          g.output(
              "b",
              g.append("b", op, {{"x", test::input_of(g, "image", {kBatch, 4, 6, 8}, is_shared)}}));
          return std::move(g).build();
        },
        allowed(dtype));
  }
}

TEST_CASE("interpolate in a model: between convolutions, strategies by its name") {
  const auto graph_of = [] {
    GraphBuilder g("decoder");
    Value x = layers::conv(g, "down", g.input("x", {kBatch, 2, 6, 6}), 4,
                           {.kernel = {3, 3}, .padding = {1, 1}});
    x = layers::interpolate(g, "up", x, 12, 12);
    g.output("y", layers::conv(g, "out", x, 2, {.kernel = {3, 3}, .padding = {1, 1}}));
    return std::move(g).build();
  };
  for (const Context& context : test::devices_at_hand()) {
    for (const char* strategy : {"sequential", "wide"}) {
      ModelOptions options;
      options.strategies = {{"interpolate", strategy}};
      ModelRun run(context, graph_of(), {.num_members = 3, .batch = 2}, options);
      CHECK(run.worst_error(run.run()) < 1e-4);
      const ModelPlan plan =
          make_model_plan(context, graph_of(), {.num_members = 3, .batch = 2}, options);
      int64_t num_steps = 0;
      for (const ModelStep& step : plan.steps()) {
        if (step.primitive != "interpolate") continue;
        CHECK(step.strategy == strategy);
        ++num_steps;
      }
      CHECK(num_steps == 1);
    }
  }
}

TEST_CASE("interpolate in a graph: what cannot be is refused with what was got") {
  const Shape image{kBatch, 2, 4, 6};
  refused("between: interpolate: y's number of rows is -1, expected 1 to 2^30", image,
          {.out_height = -1});
  refused("between: interpolate: y's number of columns is 1099511627776", image,
          {.out_width = int64_t{1} << 40});
  refused("interpolate: the scale of columns is -1, expected 0 or 2^-30 to 2^30", image,
          {.column_scale = -1});
  refused("interpolate: y's number of columns is 20, expected up to x's 6 times 2, and 1", image,
          {.out_width = 20, .column_scale = 2});
  refused("interpolate: out_height * out_width is 1099511627776", image,
          {.out_height = 1 << 20, .out_width = 1 << 20});
  refused("interpolate: coordinates is enumerator 99", image, {.coordinates = CoordinateMode(99)});
  refused("expected 3 to 4 axes", {kBatch, 4}, {});
  refused("expected 3 to 4 axes", {kBatch, 1, 2, 3, 4}, {});
}
