// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Mixtures of experts as one model: each row is the sum of what its members make of it, times their
// gates, by ids or by scores; captured runs follow others; what is refused.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "host/routing/top_k_run.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/model_run.hpp"
#include "verify/support/tensors.hpp"
#include "wide/chunked_model.hpp"
#include "wide/layers.hpp"
#include "wide/model_replay.hpp"
#include "wide/top_k.hpp"
#include "wide/tuning.hpp"
#include "wide/validate_model.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;
using test::built;
using test::ModelRun;
using test::refusal;
using test::small_model;

namespace {

ModelProblem mixture(int64_t num_members, int64_t batch, int64_t choices,
                     Router router = Router::scores) {
  return {.num_members = num_members,
          .batch = batch,
          .is_routed = true,
          .choices = choices,
          .router = router};
}

/// An expert as engines have them: silu(x W1) * (x W3), then W2.
Graph swiglu(Dtype dtype = Dtype::fp32) {
  return built([&](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 24}, dtype);
    const layers::LinearLayer plain{.has_bias = false};
    const Value gate =
        layers::pointwise(g, "act", layers::linear(g, "w1", x, 40, plain), PointwiseFunction::silu);
    const Value product = layers::binary(g, "product", gate, layers::linear(g, "w3", x, 40, plain),
                                         BinaryFunction::multiply);
    g.output("y", layers::linear(g, "w2", product, 17, plain));
  });
}

/// Outputs that no layer writes as they are to be summed, and nodes that read the input as well as
/// what members compute.
Graph tangled(Dtype dtype = Dtype::fp32) {
  return built([&](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 24}, dtype);
    const Value scaled = layers::softmax(g, "scaled", x);  // once for each row of the batch
    const Value h = layers::add(g, "sum", layers::linear(g, "first", x, 24), x);
    const Value both = layers::binary(g, "product", h, scaled, BinaryFunction::multiply);
    const Value pair = layers::concat(g, "pair", {scaled, x}, 1);  // likewise
    const Value wide = layers::concat(g, "wide", {both, pair}, 1);
    const Value last = layers::linear(g, "last", wide, 12);
    g.output("probabilities", layers::softmax(g, "soft", last));
    g.output("last", last);
    g.output("part", layers::slice(g, "cut", layers::linear(g, "side", h, 9), 1, 3, 5));
    g.output("images",
             layers::reshape(g, "image", layers::linear(g, "grid", h, 12), {kBatch, 3, 4}));
    g.output("corner",
             layers::slice(g, "crop", layers::reshape(g, "map", h, {kBatch, 4, 6}), 2, 1, 3));
  });
}

std::string primitives(const ModelPlan& plan) {
  std::string all;
  for (const ModelStep& step : plan.steps()) all += step.primitive + " ";
  return all;
}

}  // namespace

TEST_CASE("model mixture: every row is the gated sum of what its members make of it") {
  const int64_t many = test::wants_small_cases() ? 21 : 131;
  for (const Context& context : test::devices_at_hand()) {
    for (const char* preset : {"default", "debug", "safe"}) {
      for (const Router router : kAllRouters) {
        for (const int64_t choices : {1, 2, 5}) {
          for (const int64_t batch : {int64_t{1}, many}) {
            CAPTURE(preset, router_name(router), choices, batch, to_string(context.device()));
            ModelRun run(context, swiglu(), mixture(5, batch, choices, router),
                         model_options(preset));
            CHECK(run.worst_error(run.run()) < 2e-5);
          }
        }
      }
    }
  }
}

TEST_CASE("model mixture: every way to make gates of scores") {
  for (const Context& context : test::devices_at_hand()) {
    for (const GateFunction gate : kAllGateFunctions) {
      for (const int64_t choices : {1, 3}) {
        CAPTURE(gate_function_name(gate), choices);
        ModelProblem problem = mixture(4, 9, choices);
        problem.gate = gate;
        ModelRun run(context, swiglu(), problem);
        CHECK(run.worst_error(run.run()) < 2e-5);
      }
    }
  }
}

TEST_CASE("model mixture: outputs of any node, and nodes that read the input too") {
  for (const Context& context : test::devices_at_hand()) {
    for (const char* preset : {"default", "debug", "safe"}) {
      for (const Router router : kAllRouters) {
        for (const int64_t choices : {1, 2}) {
          CAPTURE(preset, router_name(router), choices, to_string(context.device()));
          ModelRun run(context, tangled(), mixture(3, 7, choices, router), model_options(preset));
          CHECK(run.worst_error(run.run()) < 2e-5);
        }
      }
    }
  }
}

TEST_CASE("model mixture: experts with norms of their own") {
  const Graph graph = built([](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 24});
    const Value h = layers::linear(g, "up", layers::layernorm(g, "before", x), 40);
    g.output("y", layers::linear(g, "down", layers::rmsnorm(g, "between", h), 17));
    g.output("normed", layers::layernorm(g, "after", h));
  });
  for (const Context& context : test::devices_at_hand()) {
    for (const Router router : kAllRouters) {
      for (const int64_t choices : {1, 3}) {
        CAPTURE(router_name(router), choices, to_string(context.device()));
        ModelProblem problem = mixture(5, 21, choices, router);
        problem.first_id = 3;
        ModelRun run(context, graph, problem);
        CHECK(run.worst_error(run.run()) < 2e-5);
      }
    }
  }
  const ModelPlan plan = make_model_plan(Context::cpu(), graph, mixture(5, 21, 3));
  CHECK(primitives(plan).starts_with("top_k routing copy layernorm routed_linear rmsnorm "));
  CHECK(plan.notes().front() == "before: x is one for all members of a row, and copied for each");
  CHECK_THAT(refusal(graph, mixture(5, 21, 3), {.moves_data = false}),
             ContainsSubstring("before (layernorm): x is one for all members of a row"));
}

TEST_CASE("model mixture: in 16 bits, and with quantised weights") {
  for (const Context& context : test::devices_at_hand()) {
    const bool is_cpu = context.device().type == DeviceType::cpu;
    for (const Dtype dtype : {Dtype::fp16, Dtype::bf16}) {
      const double bound = dtype == Dtype::fp16 ? 2e-2 : 1e-1;
      ModelRun run(context, swiglu(dtype), mixture(4, 19, 2));
      CHECK(run.plan().inputs()[1].dtype == dtype);
      CHECK(run.worst_error(run.run()) < bound);
      ModelRun gated(context, tangled(dtype), mixture(3, 7, 2, Router::gated_ids));
      CHECK(gated.worst_error(gated.run()) < bound);
      const Graph quantized =
          with_quantized_weights(swiglu(dtype), {.format = WeightFormat::int8, .group_size = 64});
      ModelRun small(context, quantized, mixture(4, 19, 2, Router::gated_ids),
                     {.strategies = {{"routed_linear", is_cpu ? "wide" : "weight_only"}}});
      CHECK(small.worst_error(small.run()) < bound);
    }
  }
}

TEST_CASE("model mixture: its operands, steps and memory") {
  const Context cpu = Context::cpu();
  const ModelPlan plan = make_model_plan(cpu, swiglu(), mixture(5, 8, 2));
  REQUIRE(plan.inputs().size() == 2);
  CHECK(plan.inputs()[0].shape == Shape{8, 24});
  const ModelOperand& scores = plan.inputs()[1];
  CHECK((scores.name == "scores" && scores.dtype == Dtype::fp32 && scores.shape == Shape{8, 5}));
  CHECK((scores.member_axis == -1 && scores.num_members == 5));
  CHECK(plan.outputs()[0].shape == Shape{8, 17});
  CHECK(primitives(plan) ==
        "top_k routing routed_linear routed_linear binary routed_linear ensemble ");
  CHECK(plan.memory().input_bytes == 8 * 24 * 4 + 8 * 5 * 4);
  CHECK(plan.memory().output_bytes == 8 * 17 * 4);
  // Gates, first_rows and order live on; of w1's and w3's results one is their product, too, and
  // the other's place w2's; ids' is free before there are any.
  const int64_t routing = 256 + 256 + 256, hidden = 16 * 40 * 4;
  CHECK(plan.memory().activation_bytes == routing + 2 * hidden);

  const ModelPlan gated = make_model_plan(cpu, swiglu(), mixture(5, 8, 2, Router::gated_ids));
  REQUIRE(gated.inputs().size() == 3);
  CHECK((gated.inputs()[1].name == "member_ids" && gated.inputs()[1].dtype == Dtype::int64));
  CHECK((gated.inputs()[2].name == "gates" && gated.inputs()[2].dtype == Dtype::fp32));
  CHECK((gated.inputs()[1].shape == Shape{8, 2} && gated.inputs()[2].shape == Shape{8, 2}));

  // One choice: the last layer writes the output, times the gates.
  const ModelPlan one = make_model_plan(cpu, swiglu(), mixture(5, 8, 1, Router::gated_ids));
  CHECK((one.inputs()[1].shape == Shape{8} && one.inputs()[2].shape == Shape{8}));
  CHECK(primitives(one) == "routing routed_linear routed_linear binary routed_linear ");
  CHECK(primitives(make_model_plan(cpu, tangled(), mixture(5, 8, 2))) ==
        "top_k routing softmax copy routed_linear copy binary copy copy copy copy copy "
        "routed_linear softmax routed_linear routed_linear routed_linear ensemble routed_linear "
        "ensemble ensemble ensemble copy routed_linear ensemble ");
  const ModelPlan safe = make_model_plan(cpu, swiglu(), mixture(5, 8, 2), model_options("safe"));
  for (const ModelStep& step : safe.steps()) CHECK(step.strategy == "sequential");
  const ModelPlan named =
      make_model_plan(cpu, swiglu(), mixture(5, 8, 2),
                      {.strategies = {{"top_k", "sequential"}, {"ensemble", "sequential"}}});
  CHECK(named.steps().front().strategy == "sequential");
  CHECK(named.steps().back().strategy == "sequential");
  CHECK(named.steps()[1].strategy == "wide");
}

TEST_CASE("model mixture: layers behind one another run as one routed_mlp, gates and all") {
  for (const Context& context : test::devices_at_hand()) {
    const bool is_cpu = context.device().type == DeviceType::cpu;
    for (const Router router : kAllRouters) {
      for (const int64_t choices : {1, 3}) {
        CAPTURE(router_name(router), choices);
        ModelRun run(context, small_model("mlp"), mixture(3, 30, choices, router),
                     {.strategies = {{"routed_mlp", is_cpu ? "wide" : "fused"}}});
        const std::string steps = primitives(run.plan());
        CHECK_THAT(steps, ContainsSubstring("routed_mlp"));
        CHECK_THAT(steps, !ContainsSubstring("routed_linear"));
        CHECK(run.worst_error(run.run()) < 2e-5);
      }
    }
  }
}

TEST_CASE("model mixture: a captured run follows other scores, or ids and gates") {
  for (const Context& context : test::devices_at_hand()) {
    ModelRun scored(context, swiglu(), mixture(4, 11, 2));
    const ModelReplay follows(context, scored.model(), scored.arguments(), scored.execution());
    for (const uint64_t seed : {5, 6, 7}) {
      scored.score(test::uniform(11 * 4, -3, 3, seed));
      scored.poison();
      follows.run(scored.stream());
      CHECK(scored.worst_error(scored.read()) < 2e-5);
    }
    ModelRun given(context, swiglu(), mixture(4, 3, 2, Router::gated_ids));
    const ModelReplay replay(context, given.model(), given.arguments(), given.execution());
    for (const std::vector<int64_t>& ids :
         {std::vector<int64_t>{3, 3, 3, 3, 3, 3}, {0, 1, 2, 3, 0, 1}, {-1, 2, 4, -7, 1, 1}}) {
      given.route(ids);
      given.weigh(test::uniform(6, -1, 1, static_cast<uint64_t>(ids[0] + 9)));
      given.poison();
      replay.run(given.stream());
      CHECK(given.worst_error(given.read()) < 2e-5);
    }
  }
}

TEST_CASE("model mixture: ids of no member add nothing, whatever the last node makes of zeros") {
  constexpr int64_t kFar = std::numeric_limits<int64_t>::min();
  for (const Context& context : test::devices_at_hand()) {
    for (const Router router : {Router::ids, Router::gated_ids}) {
      for (const Graph& graph : {swiglu(), tangled()}) {
        ModelRun run(context, graph, mixture(3, 4, 2, router));
        run.route({0, -1, 3, 2, kFar, 7, 1, 0});
        const ModelRun::Outputs outputs = run.run();
        CHECK(run.worst_error(outputs) < 2e-5);
        for (const auto& [name, values] : outputs) {  // of the third row
          const auto length = static_cast<std::ptrdiff_t>(values[0].values.size()) / 4;
          const auto row = values[0].values.begin() + 2 * length;
          CHECK(std::all_of(row, row + length, [](double value) { return value == 0; }));
        }
      }
    }
  }
}

TEST_CASE("model mixture: parts of all experts add up, by scores or ids of all") {
  const int64_t batch = 9, choices = 3, all = 7;
  for (const Context& context : test::devices_at_hand()) {
    for (const Router router : kAllRouters) {
      for (const GateFunction gate : {GateFunction::softmax, GateFunction::softmax_all}) {
        CAPTURE(router_name(router), gate_function_name(gate), to_string(context.device()));
        ModelProblem problem = mixture(all, batch, choices, router);
        problem.gate = gate;
        ModelRun whole(context, tangled(), problem);
        const std::vector<int64_t> chosen = whole.routed_to();
        std::map<std::string, std::vector<double>> sums;
        for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 2}, {2, 1}, {3, 4}}) {
          problem.num_members = count, problem.first_id = first;
          if (router == Router::scores) problem.num_scores = all;
          std::vector<int64_t> ids(static_cast<size_t>(count));
          std::iota(ids.begin(), ids.end(), first);
          ModelRun part(context, tangled(), problem, {}, 7, ids);
          if (router != Router::scores) {
            std::vector<int64_t> own = chosen;
            for (int64_t& id : own) id -= first;
            part.route(own);
          }
          const ModelRun::Outputs outputs = part.run();
          CHECK(part.worst_error(outputs, 0.1) < 2e-5);
          for (const auto& [name, members] : outputs) {
            std::vector<double>& sum = sums[name];
            sum.resize(members[0].values.size());
            for (size_t i = 0; i < sum.size(); ++i) sum[i] += members[0].values[i];
          }
        }
        ModelRun::Outputs added = whole.run();
        for (auto& [name, members] : added) {
          for (auto& member : members) member.values = sums.at(name);
        }
        CHECK(whole.worst_error(added) < 2e-5);
      }
    }
  }
}

TEST_CASE("model mixture: members come and go, batches change, runs are chunked") {
  for (const Context& context : test::devices_at_hand()) {
    for (const Router router : kAllRouters) {
      CAPTURE(router_name(router));
      ModelRun run(context, tangled(), mixture(3, 12, 2, router));
      run.replace(1, 17);
      CHECK(run.worst_error(run.run()) < 2e-5);
      CHECK(run.worst_error(run.replay()) < 2e-5);

      const ChunkedModel chunked(run.model().with_batch(5), 12);
      Tensor workspace(context, Dtype::uint8, {chunked.workspace_bytes()});
      Execution execution = run.execution();
      execution.workspace = {workspace.data(), workspace.bytes()};
      run.poison();
      chunked.run(run.arguments(), execution);
      CHECK(run.worst_error(run.read()) < 2e-5);
    }
    // The first two members alone: choices of the third add nothing.
    ModelRun run(context, swiglu(), mixture(3, 3, 2, Router::gated_ids));
    const Model fewer = run.model().with_num_members(2);
    Tensor less(context, Dtype::uint8, {fewer.plan().workspace_bytes()});
    Execution execution = run.execution();
    execution.workspace = {less.data(), less.bytes()};
    run.route({0, 2, 2, 1, 2, 2});
    run.poison();
    fewer.run(run.arguments(), execution);
    const ModelRun::Outputs two = run.read();
    run.route({0, -1, -1, 1, -1, -1});
    CHECK(run.worst_error(two) < 2e-5);
    const Model scored = ModelRun(context, swiglu(), mixture(3, 3, 2)).model();
    CHECK(scored.with_num_members(2).plan().inputs()[1].shape == Shape{3, 2});
    // Of scores of all there are, the others' stay, and add nothing.
    ModelProblem of_three = mixture(3, 3, 2);
    of_three.num_scores = 3;
    const Model part = ModelRun(context, swiglu(), of_three).model().with_num_members(1);
    CHECK(part.plan().inputs()[1].shape == Shape{3, 3});
    CHECK_THROWS_WITH(scored.with_num_members(1),
                      ContainsSubstring("choices is 2, expected at most num_members = 1"));
  }
}

TEST_CASE("model mixture: its choice asks the tuning cache") {
  const Context cpu = Context::cpu();
  TuningCache cache;
  const TuningKey key = tuning_key(TopKProblem{
      .num_members = 5, .rows = 8, .choices = 2, .id_dtype = Dtype::int32, .has_gates = true});
  cache.set(cpu.info(), key.primitive, key.problem, {"sequential", "", 1, 2, ""});
  const ModelPlan plan = make_model_plan(cpu, swiglu(), mixture(5, 8, 2), {.tuning = &cache});
  CHECK((plan.steps()[0].strategy == "sequential" && plan.steps()[0].is_tuned));
}

TEST_CASE("model mixture: a trunk of shared parameters is computed once for each row") {
  const Graph graph = built([](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 24});
    const Value trunk = layers::layernorm(g, "norm", layers::linear(g, "trunk", x, 16));
    const Value h = layers::add(g, "sum", layers::linear(g, "mix", trunk, 16), trunk);
    g.output("y", layers::linear(g, "head", h, 9));
  });
  const ModelOptions options{
      .shared_parameters = {"trunk.weight", "trunk.bias", "norm.weight", "norm.bias"}};
  std::vector<OwnedParameters> owned;
  for (int64_t m = 0; m < 4; ++m) owned.push_back(random_parameters(graph, 7, m));
  std::vector<MemberParameters> members = views_of(owned);
  for (MemberParameters& member : members) {
    for (const std::string& name : options.shared_parameters) member[name] = members[0].at(name);
  }
  const Context cpu = Context::cpu();
  for (const double error : validate_model(cpu, graph, mixture(4, 30, 3), members, options)) {
    CHECK(error < 2e-5);
  }
  const ModelPlan plan = make_model_plan(cpu, graph, mixture(4, 30, 3), options);
  CHECK((plan.steps()[2].primitive == "linear" && plan.steps()[2].num_members == 1));
}

TEST_CASE("model mixture: validation sums what members alone make of their rows") {
  for (const Router router : kAllRouters) {
    for (const GateFunction gate : kAllGateFunctions) {
      ModelProblem problem = mixture(3, 40, 2, router);
      problem.gate = gate;
      std::vector<OwnedParameters> owned;
      for (int64_t m = 0; m < 3; ++m) owned.push_back(random_parameters(tangled(), 7, m));
      for (const int64_t first : {0, 2}) {
        problem.first_id = first;
        const std::vector<double> errors =
            validate_model(Context::cpu(), tangled(), problem, views_of(owned));
        REQUIRE(errors.size() == 3);
        for (const double error : errors) CHECK(error < 2e-5);
      }
    }
  }
}

TEST_CASE("model mixture: what is refused says why") {
  const auto text = [](auto... given) { return refusal(swiglu(), mixture(given...)); };
  CHECK_THAT(text(3, 4, 0), ContainsSubstring("choices is 0, expected at least 1"));
  CHECK_THAT(text(3, 4, 4), ContainsSubstring("choices is 4, expected at most num_members = 3"));
  CHECK(text(3, 4, 4, Router::ids).empty());
  CHECK_THAT(text(3, int64_t{1} << 30, 2),
             ContainsSubstring("batch is 1073741824 and choices is 2, expected up to 2^31 - 1"));
  CHECK_THAT(refusal(swiglu(), {.num_members = 3, .choices = 2}),
             ContainsSubstring("choices is 2 and router is ids, expected 1 and ids where rows are "
                               "not routed"));
  CHECK_THAT(refusal(swiglu(), {.num_members = 3, .router = Router::scores}),
             ContainsSubstring("choices is 1 and router is scores, expected 1 and ids"));
  CHECK_THAT(refusal(tangled(), mixture(3, 4, 2), {.moves_data = false}),
             ContainsSubstring("x is one for all members of a row, expected one for each"));
  ModelProblem spoilt = mixture(3, 4, 2);
  spoilt.first_id = -1;
  CHECK_THAT(refusal(swiglu(), spoilt), ContainsSubstring("first_id is -1, expected at least 0"));
  spoilt.first_id = std::numeric_limits<int64_t>::max() - 2;
  CHECK_THAT(refusal(swiglu(), spoilt), ContainsSubstring("ids of all members in 64 bits"));
  spoilt.first_id = 2, spoilt.num_scores = 4;
  CHECK_THAT(refusal(swiglu(), spoilt),
             ContainsSubstring("num_scores is 4, expected at least first_id + num_members = 5"));
  spoilt.num_scores = 5, spoilt.choices = 6;
  CHECK_THAT(refusal(swiglu(), spoilt),
             ContainsSubstring("choices is 6, expected at most num_scores = 5"));
  spoilt = mixture(3, 4, 2, Router::ids), spoilt.num_scores = 3;
  CHECK_THAT(refusal(swiglu(), spoilt),
             ContainsSubstring("num_scores is 3, expected 0 where router is ids"));
  CHECK_THAT(refusal(swiglu(), {.num_members = 3, .first_id = 1}),
             ContainsSubstring("first_id is 1, expected 0 where rows are not routed"));
  spoilt = mixture(3, 4, 2);
  spoilt.router = static_cast<Router>(99);
  CHECK_THAT(refusal(swiglu(), spoilt), ContainsSubstring("router is enumerator 99"));
  spoilt = mixture(3, 4, 2);
  spoilt.gate = static_cast<GateFunction>(99);
  CHECK_THAT(refusal(swiglu(), spoilt), ContainsSubstring("gate is enumerator 99"));
  const Graph idle = built([](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 8});
    g.output("y", layers::linear(g, "fc", x, 4));
    g.output("same", layers::softmax(g, "soft", x));
  });
  CHECK_THAT(refusal(idle, mixture(3, 4, 2)),
             ContainsSubstring("output same: no member computes it"));
  CHECK(refusal(idle, mixture(3, 4, 1, Router::ids)).empty());
  CHECK_THAT(refusal(swiglu(), mixture(3, 4, 2), {.strategies = {{"top", "wide"}}}),
             ContainsSubstring("did you mean top_k"));
}
