// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Members against themselves run alone, where alone is not just the same with fewer members: what
// they drop, and what becomes one result of all. On the CPU: on CUDA members alone need vendors.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "host/model/input_numbers.hpp"
#include "verify/support/model_run.hpp"
#include "wide/layers.hpp"
#include "wide/model_builder.hpp"
#include "wide/validate_model.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;

namespace {

const Context kCpu = Context::cpu({.num_threads = 2, .allocator = nullptr});

/// Three members, one of which may be made to compute NaN.
class Members {
 public:
  explicit Members(const Graph& graph) {
    for (int64_t m = 0; m < 3; ++m) owned_.push_back(random_parameters(graph, 7, m));
    views_ = views_of(owned_);
  }
  std::span<const MemberParameters> views() const { return views_; }
  void spoil(size_t member, const char* parameter) {
    static_cast<float*>(owned_[member].at(parameter).data())[0] =
        std::numeric_limits<float>::quiet_NaN();
  }

 private:
  std::vector<OwnedParameters> owned_;
  std::vector<MemberParameters> views_;
};

/// Dropout of images, of features, and of what is one for all members.
Graph dropping() {
  return test::built([](GraphBuilder& g) {
    Value x = g.input("image", {kBatch, 3, 6, 6});
    x = layers::dropout(g, "d1", layers::conv(g, "conv", x, 8, {.padding = {1, 1}}), 0.3f);
    x = layers::relu(g, "act", layers::batchnorm(g, "norm", x));
    x = layers::dropout(g, "d2", layers::global_average_pool(g, "pool", x), 0.5f);
    const Value s = layers::dropout(g, "d3", g.shared_input("s", {kBatch, 8}), 0.2f);
    x = layers::add(g, "sum", layers::flatten(g, "flat", x), s);
    g.output("y", layers::linear(g, "head", x, 5));
  });
}

Graph joined(bool has_members_too) {
  return test::built([&](GraphBuilder& g) {
    const Value h = layers::linear(g, "fc", g.input("x", {kBatch, 12}), 16);
    const Value y = layers::softmax(g, "soft", layers::linear(g, "head", h, 5));
    g.output("y", layers::ensemble(g, "mean", y, EnsembleFunction::mean));
    g.output("y.joined", layers::ensemble(g, "spread", h, EnsembleFunction::variance));
    if (has_members_too) g.output("members", y);
  });
}

}  // namespace

TEST_CASE("model validation: members that drop out drop the same alone") {
  const Graph graph = dropping();
  Members members(graph);
  for (const char* preset : {"default", "debug", "safe"}) {
    CAPTURE(preset);
    ModelOptions options = model_options(preset);
    options.drops_out = true;
    for (const ModelProblem& problem : {ModelProblem{.num_members = 3, .batch = 4},
                                        ModelProblem{.num_members = 3, .batches = {3, 0, 2}}}) {
      for (const double error : validate_model(kCpu, graph, problem, members.views(), options)) {
        CHECK(error < 2e-5);
      }
    }
    options.channel_layout = ChannelLayout::channels_last;
    const ModelProblem problem{.num_members = 3, .batch = 4};
    for (const double error : validate_model(kCpu, graph, problem, members.views(), options)) {
      CHECK(error < 2e-5);
    }
    CHECK_NOTHROW(ModelBuilder(kCpu, graph)
                      .members(members.views())
                      .batch(2)
                      .options(options)
                      .validate(1e-4)
                      .build());
  }
  members.spoil(2, "head.bias");
  const std::vector<double> errors = validate_model(kCpu, graph, {.num_members = 3, .batch = 4},
                                                    members.views(), {.drops_out = true});
  CHECK(errors[0] < 2e-5);
  CHECK(errors[1] < 2e-5);
  CHECK(std::isinf(errors[2]));
}

/// Ids of three tables, of which one reads them in another shape; lengths of fewer keys than
/// queries.
Graph with_numbers() {
  return test::built([](GraphBuilder& g) {
    const Value ids = g.input("ids", {kBatch, 6}, Dtype::int64);
    const Value few = layers::embedding(g, "few", ids, 3, 8);
    const Value many = layers::embedding(g, "many", ids, 500, 8);
    const Value key = layers::embedding(g, "key", layers::slice(g, "cut", ids, 1, 0, 4), 20, 8);
    const Value lengths = g.input("lengths", {kBatch}, Dtype::int32);
    g.output("y", layers::attention(g, "cross", layers::add(g, "sum", few, many), 2,
                                    {.key_lengths = lengths, .key = key}));
  });
}

TEST_CASE("model validation: numbers of inputs are those that all their readers know") {
  const Graph graph = with_numbers();
  CHECK(input_numbers(graph, graph.inputs()[0]).last == 2);
  CHECK(input_numbers(graph, graph.inputs()[1]).first == 1);
  CHECK(input_numbers(graph, graph.inputs()[1]).last == 4);
  Members members(graph);
  const ModelProblem problem{.num_members = 3, .batch = 4};
  for (const double error : validate_model(kCpu, graph, problem, members.views()))
    CHECK(error < 2e-5);
}

TEST_CASE("model validation: what ensembles join is compared") {
  for (const bool has_members_too : {false, true}) {
    const Graph graph = joined(has_members_too);
    Members members(graph);
    const ModelProblem problem{.num_members = 3, .batch = 4};
    for (const double error : validate_model(kCpu, graph, problem, members.views())) {
      CHECK(error < 2e-5);
    }
    const ModelOptions named{.strategies = {{"mean", "sequential"}, {"ensemble", "wide"}}};
    for (const double error : validate_model(kCpu, graph, problem, members.views(), named)) {
      CHECK(error < 2e-5);
    }
    members.spoil(1, "head.bias");
    const std::vector<double> errors = validate_model(kCpu, graph, problem, members.views());
    CHECK(errors[0] < 2e-5);
    CHECK(std::isinf(errors[1]));
    CHECK(errors[2] < 2e-5);
    CHECK_THROWS_WITH(
        ModelBuilder(kCpu, graph).members(members.views()).batch(4).validate(1e-3).build(),
        ContainsSubstring("model: member 1 of built is inf"));
  }
}
