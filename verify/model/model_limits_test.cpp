// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Models as large as numbers go: planned, counted or refused by name, and never slowly.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <ctime>
#include <limits>

#include "verify/support/model_run.hpp"
#include "verify/support/sanitizers.hpp"
#include "wide/error.hpp"
#include "wide/layers.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

const Context kCpu = Context::cpu({.num_threads = 1, .allocator = nullptr});

}  // namespace

TEST_CASE("model: what is larger than plans can be described is refused by name") {
  const Graph vit = make_named_model("vit"), mlp = make_named_model("mlp");
  CHECK(make_model_plan(kCpu, vit, {.num_members = 1 << 21}).memory().input_bytes ==
        (int64_t{1} << 21) * 224 * 224 * 3 * 4);
  CHECK_THROWS_WITH(make_model_plan(kCpu, mlp, {.num_members = int64_t{1} << 40}),
                    ContainsSubstring("model: mlp: x of 1099511627776 members of 1 row needs "
                                      "281474976710656 bytes, expected fewer than 17592186044416"));
  CHECK_THROWS_WITH(make_model_plan(kCpu, mlp, {.num_members = kMost, .batch = kMost}),
                    ContainsSubstring("model: mlp: x of"));
  const ModelPlan plan = make_model_plan(kCpu, mlp, {.num_members = 2});
  const OwnedParameters owned = random_parameters(mlp, 1, 0);
  const MemberParameters member = views_of(owned);
  const Model model(kCpu, plan, std::vector<MemberParameters>{member, member});
  CHECK_THROWS_WITH(model.with_batch(int64_t{1} << 50), ContainsSubstring("expected fewer than"));
  CHECK_THROWS_WITH(model.with_batches({int64_t{1} << 62, 1}),
                    ContainsSubstring("expected fewer than"));
}

TEST_CASE("model: the largest numbers are told whatever the limits are") {
  const Graph mlp = make_named_model("mlp");
  const auto total = [&](int64_t n) {
    return make_model_plan(kCpu, mlp, {.num_members = n}).memory().total_bytes();
  };
  constexpr int64_t kMany = (int64_t{1} << 21) + 3;
  CHECK(largest_num_members_that_fits(kCpu, mlp, 1, total(kMany)) == kMany);
  CHECK(largest_num_members_that_fits(kCpu, mlp, 1, kMost) > kMany);
  CHECK(largest_num_members_that_fits(kCpu, mlp, 1, 1) == 0);

  // Nothing in it is a member's own but the batch, of which there is one for all.
  GraphBuilder g("shared", Dtype::fp32);
  g.output("y", layers::softmax(g, "softmax", g.shared_input("x", {kBatch, 4})));
  const Graph shared = std::move(g).build();
  CHECK(largest_num_members_that_fits(kCpu, shared, 1, 1000) == kMost);
  for (const int64_t most : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{7}}) {
    CHECK(largest_batch_that_fits(kCpu, mlp, 2, kMost, most) == most);
  }
  const int64_t rows = largest_batch_that_fits(kCpu, mlp, 2, kMost, kMost);
  CHECK(rows > int64_t{1} << 33);
  CHECK_NOTHROW(make_model_plan(kCpu, mlp, {.num_members = 2, .batch = rows}));
  CHECK_THROWS(make_model_plan(kCpu, mlp, {.num_members = 2, .batch = rows + 1}));
}

TEST_CASE("model: deep chains are planned soon, and models of too many layers are refused") {
  // Of processor time, the least of three plans. However the library is compiled, eight times the
  // layers take eight times as long; 64 times where each layer looked at all others.
  const auto time_to_plan = [](int64_t layers) {
    const Graph deep = make_named_model("deep_mlp", {.layers = layers, .width = 8});
    std::clock_t least = std::numeric_limits<std::clock_t>::max();
    for (int i = 0; i < 3; ++i) {
      const std::clock_t start = std::clock();
      (void)make_model_plan(kCpu, deep, {});
      least = std::min(least, std::clock() - start);
    }
    return static_cast<double>(least) / CLOCKS_PER_SEC;
  };
  const double few = time_to_plan(200), many = time_to_plan(1600);
  INFO("200 layers: " << few << " s, 1600 layers: " << many << " s");
  CHECK(many < 16 * few);
  if (!test::is_watched()) CHECK(many < 1.5);
  const Graph deep = make_named_model("deep_mlp", {.layers = 1600, .width = 8});
  const ModelPlan plan = make_model_plan(kCpu, deep, {});
  for (const ModelStep& step : plan.steps()) CHECK(step.primitive != "copy");
  CHECK_THROWS_WITH(
      make_named_model("deep_mlp", {.layers = 1'000'000'000}),
      ContainsSubstring("model: deep_mlp: layers is 1000000000, expected 1 to 16384"));
  CHECK_THROWS_WITH(make_named_model("convnet", {.width = kMost}),
                    ContainsSubstring("model: convnet: width is 9223372036854775807, expected 1"));
  CHECK_THROWS_WITH(make_named_model("bert", {.seq = -1}),
                    ContainsSubstring("model: bert: seq is -1, expected 1 to"));
}

TEST_CASE("model: sizes that a named model does not have are refused") {
  CHECK_THROWS_WITH(make_named_model("mlp", {.layers = 3}),
                    ContainsSubstring("model: mlp: layers is 3, expected 0, as it has no effect "
                                      "here: it is of deep_mlp, unet, bert, vit, not of mlp"));
  CHECK_THROWS_WITH(make_named_model("unet", {.image = 30}),
                    ContainsSubstring("model: unet: image is 30, expected a multiple of 2^3"));
  CHECK_THROWS_WITH(make_named_model("unet", {.layers = 17}),
                    ContainsSubstring("model: unet: layers is 17, expected at most 16"));
  struct Field {
    const char* name;
    int64_t ModelSizes::*size;
    int64_t value;
  };
  const Field fields[] = {{"layers", &ModelSizes::layers, 2}, {"width", &ModelSizes::width, 48},
                          {"heads", &ModelSizes::heads, 2},   {"seq", &ModelSizes::seq, 2},
                          {"image", &ModelSizes::image, 48},  {"classes", &ModelSizes::classes, 3},
                          {"vocab", &ModelSizes::vocab, 2}};
  for (const NamedModel& model : named_models()) {
    const std::string usual = to_string(make_named_model(model.name), GraphStyle::json);
    for (const auto& [name, size, value] : fields) {
      CAPTURE(model.name, name);
      ModelSizes sizes;
      sizes.*size = value;
      if (model.has_size(name)) {
        CHECK(to_string(make_named_model(model.name, sizes), GraphStyle::json) != usual);
      } else {
        CHECK_THROWS_WITH(make_named_model(model.name, sizes),
                          ContainsSubstring(idle_size_text(name, model)));
        CHECK(to_string(model.make(sizes), GraphStyle::json) == usual);
      }
    }
  }
}

TEST_CASE("model: copies of values with too many axes are refused by their names") {
  const auto refusal_of = [](bool is_output) {
    const Graph graph = test::built([&](GraphBuilder& g) {
      const Value x = g.input("x", {kBatch, 64});
      const Value y = layers::relu(g, "act", layers::reshape(g, "six", x, {kBatch, 2, 2, 2, 2, 4}));
      g.output("y", is_output ? y : layers::transpose(g, "turn", y, {0, 2, 1, 3, 4, 5}));
      if (is_output) g.output("again", y);
    });
    try {
      (void)make_model_plan(kCpu, graph, {.num_members = 3});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string rest =
      ": has more than 6 axes with that of the members, expected at most 5 of its own";
  CHECK(refusal_of(true) == "model: again" + rest);
  CHECK(refusal_of(false) == "model: turn" + rest);
  const Graph stacked = test::built([](GraphBuilder& g) {
    const Value y = layers::linear(g, "fc", g.input("x", {kBatch, 2, 6}), 6);
    g.output("last", layers::reshape(g, "six", y, {kBatch, 3, 2, 2, 1, 1}));
  });
  CHECK_THROWS_WITH(make_model_plan(kCpu, stacked, {.num_members = 3}),
                    Catch::Matchers::Equals("model: last" + rest));
}

TEST_CASE("parameters: of no member, or spread by no number, there are none") {
  const Graph graph = make_named_model("mlp", {.width = 2});
  const OwnedParameters owned = random_parameters(graph, 1, 0);
  const MemberParameters given = views_of(owned);
  CHECK_THROWS_WITH(random_parameters(graph, 1, -1),
                    ContainsSubstring("parameters: member is -1, expected >= 0"));
  CHECK_THROWS_WITH(perturbed_parameters(given, 0.1, 1, -1),
                    ContainsSubstring("parameters: member is -1, expected >= 0"));
  for (const double spread :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    CHECK_THROWS_WITH(perturbed_parameters(given, spread, 1, 1),
                      ContainsSubstring("expected a finite number >= 0"));
  }
  CHECK_NOTHROW(perturbed_parameters(given, 0, 1, 1));
  MemberParameters nowhere = given;
  nowhere.at("fc1.bias").data = nullptr;
  CHECK_THROWS_WITH(
      perturbed_parameters(nowhere, 0.1, 1, 0),
      ContainsSubstring("parameters: fc1.bias is a null pointer, expected [2] elements"));
  CHECK_THROWS_WITH(equal_parameters(graph, std::vector<MemberParameters>{given, nowhere}),
                    ContainsSubstring("member 1: fc1.bias is a null pointer, expected fp32 [2]"));
}

TEST_CASE("model: primitives of strategies are known by near names, or all") {
  const auto plan_with = [](const char* primitive) {
    return make_model_plan(kCpu, make_named_model("mlp"), {},
                           {.strategies = {{primitive, "wide"}}});
  };
  CHECK_THROWS_WITH(plan_with("linaer"),
                    ContainsSubstring("\"linaer\", which is no primitive and no node that is left "
                                      "after the passes, did you mean linear?"));
  CHECK_THROWS_WITH(plan_with("zzzzzzzz"),
                    ContainsSubstring("left after the passes, expected one of all, linear, "));
}

TEST_CASE("model: strategies that look like none are answered by all there are") {
  CHECK_THROWS_WITH(
      make_model_plan(kCpu, make_named_model("mlp"), {}, {.strategies = {{"linear", "zzzzzzzz"}}}),
      ContainsSubstring("strategy is \"zzzzzzzz\", expected one of") && !ContainsSubstring("?"));
}

TEST_CASE("model: parameters on another device are refused before that is asked for anything") {
  const Graph graph = make_named_model("mlp", {.width = 2});
  const OwnedParameters owned = random_parameters(graph, 1, 0);
  MemberParameters member = views_of(owned);
  Model model(kCpu, make_model_plan(kCpu, graph, {}), std::vector<MemberParameters>{member});
  member.at("fc1.bias").device = {DeviceType::cuda, 0};
  CHECK_THROWS_WITH(model.replace(0, member, Stream::cpu()),
                    ContainsSubstring("member 0: fc1.bias is on cuda:0, expected cpu"));
}
