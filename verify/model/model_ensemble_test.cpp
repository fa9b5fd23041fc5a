// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Models whose members become one result: every ensemble beside the members' own outputs, against
// fp64; members that are masked and come back under a captured run; what members share.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "verify/support/devices.hpp"
#include "verify/support/model_run.hpp"
#include "wide/error.hpp"
#include "wide/layers.hpp"
#include "wide/model.hpp"
#include "wide/model_replay.hpp"

using namespace wide;
using Catch::Matchers::Message;
using test::ModelRun;

namespace {

/// Log-probabilities of each member, and all that ensembles make of them.
Graph classifier(int64_t classes, Dtype dtype = Dtype::fp32) {
  GraphBuilder g("classifier", dtype);
  Value x = g.input("x", {kBatch, 12});
  x = layers::relu(g, "act", layers::linear(g, "fc1", x, 16));
  x = layers::log_softmax(g, "log_softmax", layers::linear(g, "fc2", x, classes));
  g.output("members", x);
  for (const EnsembleFunction function : kAllEnsembleFunctions) {
    const std::string name(ensemble_function_name(function));
    g.output(name, layers::ensemble(g, name, x, function));
  }
  return std::move(g).build();
}

bool is_equal(const catalog::Doubles& a, const catalog::Doubles& b) {
  return a.values == b.values;
}

}  // namespace

TEST_CASE("model: every ensemble beside the members' own outputs") {
  for (const Context& context : test::devices_at_hand()) {
    for (const int64_t classes : {5, 8}) {
      for (const char* preset : {"default", "debug", "safe"}) {
        CAPTURE(classes, preset, to_string(context.device()));
        ModelRun run(context, classifier(classes), {.num_members = 4, .batch = 3},
                     model_options(preset));
        CHECK(run.worst_error(run.run()) < 2e-5);
        CHECK(run.worst_error(run.replay()) < 2e-5);
      }
    }
    ModelRun half(context, classifier(8, Dtype::fp16), {.num_members = 3, .batch = 2});
    const auto got = half.run(), expected = half.reference();
    for (const char* name : {"mean", "log_mean_exp"}) {
      for (size_t i = 0; i < 16; ++i) {
        CHECK(std::abs(got.at(name)[0].values[i] - expected.at(name)[0].values[i]) < 1e-2);
      }
    }
  }
}

TEST_CASE("model: outputs of an ensemble are one for all members") {
  const Context cpu = Context::cpu();
  const ModelPlan plan = make_model_plan(cpu, classifier(5), {.num_members = 4, .batch = 3});
  REQUIRE(plan.outputs().size() == 6);
  CHECK(plan.outputs()[0].shape == Shape{3, 20});
  for (size_t i = 1; i < 6; ++i) {
    CHECK(plan.outputs()[i].shape == Shape{3, 5});
    CHECK(plan.outputs()[i].member_axis == -1);
  }
  CHECK(plan.memory().output_bytes == (20 + 5 * 5) * 3 * 4);
  CHECK(plan.steps().back().primitive == "ensemble");
  CHECK(plan.steps().back().num_members == 4);
  CHECK(make_model_plan(cpu, classifier(5), {.num_members = 2, .batch = 1},
                        {.strategies = {{"ensemble", "sequential"}}})
            .steps()
            .back()
            .strategy == "sequential");
}

TEST_CASE("model: members that are masked and come back change what a captured run gives") {
  for (const Context& context : test::devices_at_hand()) {
    CAPTURE(to_string(context.device()));
    ModelRun run(context, classifier(5), {.num_members = 4, .batch = 3});
    const ModelReplay replay(context, run.model(), run.arguments(), run.execution());
    const auto replayed = [&] {
      run.poison();
      replay.run(run.stream());
      const auto outputs = run.read();
      CHECK(run.worst_error(outputs) < 2e-5);
      return outputs;
    };
    const auto all = replayed();
    run.model().mask(1, run.stream());
    const auto three = replayed();
    run.model().mask(3, run.stream());
    const auto two = replayed();
    for (const char* name : {"mean", "variance", "log_mean_exp", "sum"}) {
      CAPTURE(name);
      CHECK_FALSE(is_equal(all.at(name)[0], three.at(name)[0]));
      CHECK_FALSE(is_equal(three.at(name)[0], two.at(name)[0]));
    }
    CHECK(is_equal(all.at("members")[1], two.at("members")[1]));  // masked members go on
    run.model().unmask(1, run.stream());
    run.model().unmask(3, run.stream());
    const auto again = replayed();
    for (const auto& [name, values] : all) CHECK(is_equal(values[0], again.at(name)[0]));
    for (const int64_t member : {0, 1, 2}) run.model().mask(member, run.stream());
    CHECK_THROWS_AS(run.model().mask(3, run.stream()), Error);
    run.poison();
    replay.run(run.stream());
    const auto one = run.read();
    CHECK(is_equal(one.at("mean")[0], one.at("members")[3]));
    CHECK(is_equal(one.at("sum")[0], one.at("members")[3]));
    for (const double v : one.at("variance")[0].values) CHECK(std::isnan(v));
  }
}

TEST_CASE("model: positions, values that members share, and who reads an ensemble") {
  for (const Context& context : test::devices_at_hand()) {
    GraphBuilder g("positions");
    const Value x = g.input("x", {kBatch, 3, 6});
    const Value y = layers::relu(g, "act", layers::linear(g, "fc", x, 7));
    const Value shared = layers::relu(g, "own", g.shared_input("s", {kBatch, 6}));
    g.output("mean", layers::ensemble(g, "mean", y, EnsembleFunction::mean));
    g.output("same", layers::ensemble(g, "same", shared, EnsembleFunction::log_mean_exp));
    g.output("none", layers::ensemble(g, "none", shared, EnsembleFunction::variance));
    const Value voted = layers::ensemble(g, "vote", y, EnsembleFunction::vote);
    CHECK_THROWS_AS(layers::relu(g, "too_late", voted), Error);
    g.output("vote", voted);
    ModelRun run(context, std::move(g).build(), {.num_members = 3, .batch = 2});
    const auto got = run.run(), expected = run.reference();
    for (const char* name : {"mean", "same", "vote"}) {
      REQUIRE(got.at(name)[0].shape == expected.at(name)[0].shape);
      for (size_t i = 0; i < got.at(name)[0].values.size(); ++i) {
        CAPTURE(name, i);
        CHECK(std::abs(got.at(name)[0].values[i] - expected.at(name)[0].values[i]) < 2e-5);
      }
    }
    for (const double v : got.at("none")[0].values) CHECK(v == 0);
  }
}

namespace {

std::vector<std::string> output_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Operand& output : graph.outputs()) names.push_back(output.name);
  return names;
}

/// Two outputs of each member, as a file has them.
Graph two_outputs() {
  GraphBuilder g("two");
  const Value x = layers::linear(g, "fc1", g.input("x", {kBatch, 12}), 16);
  g.output("scores", layers::linear(g, "fc2", x, 5));
  g.output("value", layers::linear(g, "fc3", x, 1));
  return std::move(g).build();
}

}  // namespace

TEST_CASE("model: ensembles stand behind outputs of a graph that is finished") {
  using Names = std::vector<std::string>;
  const std::vector<EnsembleFunction> both{EnsembleFunction::mean, EnsembleFunction::variance};
  const Graph graph = two_outputs();
  CHECK(output_names(with_ensembles(graph, {})) == Names{"scores.mean", "value.mean"});
  CHECK(output_names(with_ensembles(graph, {.ensembles = both, .outputs = {"value"}})) ==
        Names{"scores", "value.mean", "value.variance"});
  const Graph all = with_ensembles(graph, {.ensembles = both, .keeps_members = true});
  CHECK(output_names(all) ==
        Names{"scores", "scores.mean", "scores.variance", "value", "value.mean", "value.variance"});
  // Again: what is an ensemble stays as it is.
  const Graph again = with_ensembles(all, {.ensembles = {EnsembleFunction::vote}});
  CHECK(output_names(again) == Names{"scores.vote", "scores.mean", "scores.variance", "value.vote",
                                     "value.mean", "value.variance"});
  CHECK(all.parameters().size() == graph.parameters().size());

  for (const Context& context : test::devices_at_hand()) {
    CAPTURE(to_string(context.device()));
    for (const Graph& any : {all, again}) {
      ModelRun run(context, any, {.num_members = 4, .batch = 3});
      CHECK(run.worst_error(run.run()) < 2e-5);
      CHECK(run.worst_error(run.replay()) < 2e-5);
    }
  }
}

TEST_CASE("model: what has no members left has no ensemble") {
  const auto refused = [](const Graph& graph, const OutputEnsembles& what,
                          const std::string& message) {
    CHECK_THROWS_MATCHES(with_ensembles(graph, what), Error, Message(message));
  };
  const Graph graph = two_outputs();
  refused(graph, {.outputs = {"scored"}},
          "graph: two has no output \"scored\" that is each member's, did you mean scores?");
  refused(graph, {.ensembles = {}}, "graph: two: there is no ensemble, expected at least one");
  refused(graph, {.ensembles = {EnsembleFunction::mean, EnsembleFunction::mean}},
          "graph: two: node scores.mean, expected another name: it is taken");
  const Graph means = with_ensembles(graph, {});
  refused(means, {}, "graph: two has no output that is each member's");
  refused(means, {.outputs = {"value.mean"}}, "graph: two has no output that is each member's");
}
