// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Models whose rows are routed to members on the device: each row is what its member alone gives
// for it, whatever the others are; captured runs follow other ids; what is refused.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <string>
#include <vector>

#include "host/routing/routing_run.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/model_run.hpp"
#include "wide/chunked_model.hpp"
#include "wide/layers.hpp"
#include "wide/model_replay.hpp"
#include "wide/routing.hpp"
#include "wide/tuning.hpp"
#include "wide/validate_model.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;
using test::built;
using test::ModelRun;
using test::refusal;
using test::small_model;

namespace {

ModelProblem routed(int64_t num_members, int64_t batch) {
  return {.num_members = num_members, .batch = batch, .is_routed = true};
}

/// A gated layer with a residual, and what needs no parameters, around linear layers.
Graph gated(Dtype dtype = Dtype::fp32) {
  return built([&](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 24}, dtype);
    const Value gate =
        layers::pointwise(g, "gate", layers::linear(g, "to_gate", x, 40), PointwiseFunction::silu);
    const Value up = layers::linear(g, "up", x, 40, {.has_bias = false});
    Value h = layers::binary(g, "product", gate, up, BinaryFunction::multiply);
    h = layers::add(g, "sum", layers::linear(g, "down", h, 24), x);
    g.output("y", layers::linear(g, "head", layers::softmax(g, "soft", h), 9));
    g.output("part", layers::slice(g, "cut", h, 1, 3, 8));
  });
}

/// "routing wide 5, routed_linear wide 5, "
std::string steps_of(const ModelPlan& plan) {
  std::string steps;
  for (const ModelStep& step : plan.steps()) {
    steps += step.primitive + " " + step.strategy + " " + std::to_string(step.num_members) + ", ";
  }
  return steps;
}

/// Norms of members' own: of what layers leave, and of sums, that others read, too; a chain.
Graph normed(Dtype dtype = Dtype::fp32) {
  return built([&](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 24}, dtype);
    const Value first = layers::layernorm(g, "first", x);
    const Value h = layers::relu(g, "act", layers::linear(g, "up", first, 24));
    const Value sum = layers::add(g, "sum", layers::softmax(g, "soft", h), x);
    const Value second = layers::rmsnorm(g, "second", sum);
    const Value bias = g.parameter("chain.bias", {24}, dtype),
                gamma = g.parameter("chain.weight", {24}, dtype);
    const Value chain =
        g.append("chain", ChainOp{.activation = Activation::silu, .norm = ChainNorm::rmsnorm},
                 {{"x", second}, {"bias", bias}, {"residual", sum}, {"gamma", gamma}});
    g.output("y", layers::linear(g, "head", chain, 9));
    g.output("last", layers::layernorm(g, "last", layers::linear(g, "side", sum, 7)));
  });
}

/// The row of an output as whole tensors have it.
std::vector<double> row_of(const ModelRun::Outputs& outputs, const std::string& name, int64_t row,
                           int64_t rows) {
  const std::vector<double>& all = outputs.at(name)[0].values;
  const auto length = static_cast<std::ptrdiff_t>(all.size()) / rows;
  return {all.begin() + row * length, all.begin() + (row + 1) * length};
}

}  // namespace

TEST_CASE("model routed: every row is what its member gives for it") {
  const int64_t many = test::wants_small_cases() ? 70 : 517;
  for (const Context& context : test::devices_at_hand()) {
    for (const char* preset : {"default", "debug", "safe"}) {
      for (const Graph& graph : {gated(), small_model("mlp"), small_model("deep_mlp")}) {
        CAPTURE(graph.name(), preset, to_string(context.device()));
        ModelRun run(context, graph, routed(3, many), model_options(preset));
        CHECK(run.worst_error(run.run()) < 2e-5);
        // Nobody's turn but the last's, none of the middle one.
        std::vector<int64_t> ids(static_cast<size_t>(many), 2);
        ids[4] = ids[9] = 0;
        run.route(ids);
        CHECK(run.worst_error(run.run()) < 2e-5);
      }
    }
    ModelRun one(context, gated(), routed(1, 1));
    CHECK(one.worst_error(one.run()) < 2e-5);
    ModelRun sparse(context, gated(), routed(40, 3));
    sparse.route({39, 17, 39});
    CHECK(sparse.worst_error(sparse.run()) < 2e-5);
  }
}

TEST_CASE("model routed: norms have the parameters of each row's member") {
  const int64_t many = test::wants_small_cases() ? 40 : 517;
  for (const Context& context : test::devices_at_hand()) {
    for (const char* preset : {"default", "debug", "safe"}) {
      CAPTURE(preset, to_string(context.device()));
      ModelRun run(context, normed(), routed(3, many), model_options(preset));
      CHECK(run.worst_error(run.run()) < 2e-5);
      std::vector<int64_t> ids(static_cast<size_t>(many), 2);
      ids[4] = ids[9] = 0;
      run.route(ids);
      CHECK(run.worst_error(run.run()) < 2e-5);
    }
    ModelRun half(context, normed(Dtype::fp16), routed(4, 37));
    CHECK(half.worst_error(half.run()) < 2e-2);

    // A captured run follows other ids; rows of no member become zeros.
    ModelRun run(context, normed(), routed(3, 6));
    const ModelReplay replay(context, run.model(), run.arguments(), run.execution());
    const std::vector<std::vector<int64_t>> turns{
        {0, 1, 2, 2, 1, 0}, {1, -1, 0, 3, 2, std::numeric_limits<int64_t>::max()}};
    for (const std::vector<int64_t>& ids : turns) {
      run.route(ids);
      run.poison();
      replay.run(run.stream());
      const ModelRun::Outputs outputs = run.read();
      CHECK(run.worst_error(outputs) < 2e-5);
      for (int64_t row = 0; row < 6; ++row) {
        const bool is_of_none =
            ids[static_cast<size_t>(row)] < 0 || ids[static_cast<size_t>(row)] > 2;
        CHECK((row_of(outputs, "last", row, 6) == std::vector<double>(7, 0)) == is_of_none);
      }
    }

    run.replace(1, 17);
    CHECK(run.worst_error(run.run()) < 2e-5);
  }
}

TEST_CASE("model routed: norms run once over all rows, and take no memory") {
  const ModelPlan plan = make_model_plan(Context::cpu(), normed(), routed(5, 8));
  CHECK(steps_of(plan) ==
        "routing wide 5, layernorm wide 5, routed_linear wide 5, softmax wide 5, rmsnorm wide 5, "
        "chain wide 5, routed_linear wide 5, routed_linear wide 5, layernorm wide 5, ");
  for (const ModelStep& step : plan.steps()) {
    if (step.primitive != "routing") CHECK(step.scratch_bytes == 0);
  }
  // Members' parameters, each in whole 256 bytes for all.
  const auto bytes = [](int64_t elements) { return (5 * 4 * elements + 255) / 256 * 256; };
  CHECK(plan.memory().weights_bytes == 5 * bytes(24) + bytes(24 * 24) + bytes(24) + bytes(9 * 24) +
                                           bytes(9) + bytes(7 * 24) + 3 * bytes(7));
  const ModelPlan named = make_model_plan(Context::cpu(), normed(), routed(5, 8),
                                          {.strategies = {{"layernorm", "sequential"}}});
  CHECK(named.steps()[1].strategy == "sequential");
}

TEST_CASE("model routed: in 16 bits, too") {
  for (const Context& context : test::devices_at_hand()) {
    for (const Dtype dtype : {Dtype::fp16, Dtype::bf16}) {
      ModelRun run(context, gated(dtype), routed(4, 37));
      CHECK(run.worst_error(run.run()) < (dtype == Dtype::fp16 ? 2e-2 : 1e-1));
      if (context.info().compute_capability != 90) continue;
      ModelRun on_hopper(context, gated(dtype), routed(3, 300),
                         {.strategies = {{"routed_linear", "wgmma"}}});
      CHECK(on_hopper.worst_error(on_hopper.run()) < (dtype == Dtype::fp16 ? 2e-2 : 1e-1));
      for (const ModelStep& step : on_hopper.plan().steps()) {
        if (step.primitive == "routed_linear") CHECK(step.strategy == "wgmma");
      }
    }
  }
}

TEST_CASE("model routed: quantised weights, which are no routed_mlp's") {
  for (const Context& context : test::devices_at_hand()) {
    const bool is_cpu = context.device().type == DeviceType::cpu;
    for (const auto& [format, group] :
         {std::pair{WeightFormat::int4, 64}, {WeightFormat::fp8_e4m3, 128}}) {
      for (const Graph& graph : {gated(Dtype::bf16), small_model("mlp", Dtype::bf16)}) {
        const Graph quantized =
            with_quantized_weights(graph, {.format = format, .group_size = group});
        ModelRun run(context, quantized, routed(3, 40),
                     {.strategies = {{"routed_linear", is_cpu ? "wide" : "weight_only"}}});
        CHECK(run.worst_error(run.run()) < 1e-1);
        run.route(std::vector<int64_t>(40, 1));
        CHECK(run.worst_error(run.run()) < 1e-1);
        for (const ModelStep& step : run.plan().steps()) CHECK(step.primitive != "routed_mlp");
      }
    }
  }
}

TEST_CASE("model routed: a captured run follows other ids") {
  for (const Context& context : test::devices_at_hand()) {
    ModelRun run(context, gated(), routed(3, 20));
    const ModelReplay replay(context, run.model(), run.arguments(), run.execution());
    for (const int64_t shift : {0, 1, 2}) {
      std::vector<int64_t> ids;
      for (int64_t row = 0; row < 20; ++row) ids.push_back((row / 3 + shift) % 3);
      run.route(ids);
      run.poison();
      replay.run(run.stream());
      CHECK(run.worst_error(run.read()) < 2e-5);
    }
  }
}

TEST_CASE("model routed: rows of no member become zeros, and are none of the others' business") {
  const Graph graph = built([](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 24});
    g.output("y", layers::linear(g, "second",
                                 layers::relu(g, "act", layers::linear(g, "first", x, 40)), 9));
  });
  for (const Context& context : test::devices_at_hand()) {
    ModelRun run(context, graph, routed(3, 6));
    run.route({0, 1, 2, 2, 1, 0});
    const ModelRun::Outputs all = run.run();
    constexpr int64_t kFar = std::numeric_limits<int64_t>::min();
    run.route({0, -1, 2, 3, 1, kFar});
    const ModelRun::Outputs some = run.run();
    CHECK(run.worst_error(some) < 2e-5);
    for (const int64_t row : {0, 2, 4}) {
      CHECK(row_of(some, "y", row, 6) == row_of(all, "y", row, 6));
    }
    for (const int64_t row : {1, 3, 5}) {
      CHECK(row_of(some, "y", row, 6) == std::vector<double>(9, 0));
    }
  }
}

TEST_CASE("model routed: ids of 32 bits say the same") {
  const bool has_norms = GENERATE(false, true);
  const Graph graph = has_norms ? normed() : gated();
  for (const Context& context : test::devices_at_hand()) {
    for (const Router router : {Router::ids, Router::gated_ids}) {
      ModelProblem problem = routed(4, 7);
      problem.router = router, problem.choices = router == Router::ids ? 1 : 2;
      problem.first_id = 3;
      ModelRun longs(context, graph, problem);
      problem.id_dtype = Dtype::int32;
      ModelRun ints(context, graph, problem);
      const ModelOperand& ids = ints.plan().inputs()[1];
      CHECK((ids.name == "member_ids" && ids.dtype == Dtype::int32));
      CHECK(longs.plan().memory().input_bytes - ints.plan().memory().input_bytes ==
            7 * problem.choices * 4);
      std::vector<int64_t> members;
      for (int64_t row = 0; row < 7 * problem.choices; ++row) members.push_back(row * 3 % 6 - 1);
      longs.route(members);
      ints.route(members);
      const ModelRun::Outputs expected = longs.run(), outputs = ints.run();
      CHECK(ints.worst_error(outputs) < 2e-5);
      for (const auto& [name, members_of] : expected)
        CHECK(outputs.at(name)[0].values == members_of[0].values);
      CHECK(ints.model().with_batch(3).plan().inputs()[1].dtype == Dtype::int32);
    }
  }
}

TEST_CASE("model routed: its operands and steps") {
  const ModelPlan plan = make_model_plan(Context::cpu(), gated(), routed(5, 8));
  REQUIRE(plan.inputs().size() == 2);
  CHECK(plan.inputs()[0].shape == Shape{8, 24});
  const ModelOperand& ids = plan.inputs()[1];
  CHECK((ids.name == "member_ids" && ids.dtype == Dtype::int64 && ids.shape == Shape{8}));
  CHECK((ids.member_axis == -1 && ids.num_members == 5 && ids.first_rows.empty()));
  CHECK(plan.outputs()[0].shape == Shape{8, 9});
  CHECK(plan.memory().input_bytes == 8 * 24 * 4 + 8 * 8);
  CHECK(steps_of(plan) ==
        "routing wide 5, routed_linear wide 5, routed_linear wide 5, binary wide 5, "
        "routed_linear wide 5, softmax wide 5, routed_linear wide 5, copy  1, ");
  const ModelPlan safe =
      make_model_plan(Context::cpu(), gated(), routed(5, 8), model_options("safe"));
  CHECK((safe.steps()[0].strategy == "sequential" && safe.steps()[1].strategy == "sequential"));
  const ModelPlan named =
      make_model_plan(Context::cpu(), gated(), routed(5, 8),
                      {.strategies = {{"routed_linear", "sequential"}, {"routing", "wide"}}});
  CHECK((named.steps()[0].strategy == "wide" && named.steps()[1].strategy == "sequential"));
}

TEST_CASE("model routed: layers behind one another run as one routed_mlp where that is named") {
  for (const Context& context : test::devices_at_hand()) {
    const bool is_cpu = context.device().type == DeviceType::cpu;
    for (const char* name : {"mlp", "deep_mlp"}) {
      for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
        ModelRun run(context, small_model(name, dtype), routed(3, 70),
                     {.strategies = {{"routed_mlp", is_cpu ? "wide" : "fused"}}});
        const double bound = dtype == Dtype::fp32 ? 2e-5 : 1e-1;
        REQUIRE(run.plan().steps().size() == 2);
        CHECK(run.plan().steps()[1].primitive == "routed_mlp");
        CHECK(run.plan().steps()[1].num_members == 3);
        CHECK(run.worst_error(run.run()) < bound);
        std::vector<int64_t> ids(70, 2);
        ids[4] = ids[9] = 0;
        run.route(ids);
        CHECK(run.worst_error(run.run()) < bound);
      }
    }
  }
  const auto primitives = [](const ModelOptions& options) {
    std::string all;
    const ModelPlan plan =
        make_model_plan(Context::cpu(), small_model("mlp"), routed(3, 7), options);
    for (const ModelStep& step : plan.steps()) all += step.primitive + " ";
    return all;
  };
  CHECK(primitives({}) == "routing routed_linear routed_linear ");
  CHECK(primitives({.strategies = {{"mlp", "wide"}}}) == "routing routed_linear routed_linear ");
  CHECK(primitives({.strategies = {{"routed_mlp", "wide"}}}) == "routing routed_mlp ");
  CHECK(primitives({.strategies = {{"routed_linear", "wide"}, {"routed_mlp", "wide"}}}) ==
        "routing routed_mlp ");
}

TEST_CASE("model routed: members come and go, batches change, runs are chunked") {
  for (const Context& context : test::devices_at_hand()) {
    ModelRun run(context, gated(), routed(3, 12));
    run.replace(1, 17);
    CHECK(run.worst_error(run.run()) < 2e-5);
    const ModelRun::Outputs whole = run.run();

    // In pieces of 5 rows: the model has those of with_batch(5).
    const Model small = run.model().with_batch(5);
    CHECK((small.plan().problem().is_routed && small.plan().inputs()[1].shape == Shape{5}));
    const ChunkedModel chunked(small, 12);
    Tensor workspace(context, Dtype::uint8, {chunked.workspace_bytes()});
    Execution execution = run.execution();
    execution.workspace = {workspace.data(), workspace.bytes()};
    run.poison();
    chunked.run(run.arguments(), execution);
    CHECK(run.worst_error(run.read()) < 2e-5);

    // The first two members alone: rows of the third are nobody's.
    const Model fewer = run.model().with_num_members(2);
    CHECK(fewer.plan().problem().is_routed);
    Tensor less(context, Dtype::uint8, {fewer.plan().workspace_bytes()});
    execution.workspace = {less.data(), less.bytes()};
    run.poison();
    fewer.run(run.arguments(), execution);
    const ModelRun::Outputs two = run.read();
    CHECK(row_of(two, "y", 0, 12) == row_of(whole, "y", 0, 12));
    CHECK(row_of(two, "y", 1, 12) == row_of(whole, "y", 1, 12));
    CHECK(row_of(two, "y", 2, 12) == std::vector<double>(9, 0));
    CHECK_FALSE(run.model().with_batches({4, 4, 4}).plan().problem().is_routed);
  }
}

TEST_CASE("model routed: a trunk of shared parameters is computed once") {
  const Graph graph = built([](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 24});
    const Value trunk = layers::layernorm(g, "norm", layers::linear(g, "trunk", x, 16));
    g.output("y", layers::linear(g, "head", trunk, 9));
  });
  const ModelOptions options{
      .shared_parameters = {"trunk.weight", "trunk.bias", "norm.weight", "norm.bias"}};
  std::vector<OwnedParameters> owned;
  for (int64_t m = 0; m < 4; ++m) owned.push_back(random_parameters(graph, 7, m));
  std::vector<MemberParameters> members = views_of(owned);
  for (MemberParameters& member : members) {
    for (const std::string& name : options.shared_parameters) member[name] = members[0].at(name);
  }
  for (const double error :
       validate_model(Context::cpu(), graph, routed(4, 30), members, options)) {
    CHECK(error < 2e-5);
  }
  const ModelPlan plan = make_model_plan(Context::cpu(), graph, routed(4, 30), options);
  CHECK((plan.steps()[1].primitive == "linear" && plan.steps()[1].num_members == 1));
}

TEST_CASE("model routed: its routing, too, asks the tuning cache") {
  const Context cpu = Context::cpu();
  TuningCache cache;
  const TuningKey key = tuning_key(RoutingProblem{.num_members = 5, .num_rows = 8});
  cache.set(cpu.info(), key.primitive, key.problem, {"sequential", "", 1, 2, ""});
  const ModelPlan plan = make_model_plan(cpu, gated(), routed(5, 8), {.tuning = &cache});
  CHECK((plan.steps()[0].strategy == "sequential" && plan.steps()[0].is_tuned));
}

TEST_CASE("model routed: validation finds the rows of each member") {
  const Graph graph = gated();
  std::vector<OwnedParameters> owned;
  for (int64_t m = 0; m < 3; ++m) owned.push_back(random_parameters(graph, 7, m));
  for (const Dtype dtype : {Dtype::int64, Dtype::int32}) {
    ModelProblem problem = routed(3, 40);
    problem.id_dtype = dtype;
    const std::vector<double> errors =
        validate_model(Context::cpu(), graph, problem, views_of(owned));
    REQUIRE(errors.size() == 3);
    for (const double error : errors) CHECK(error < 2e-5);
  }
}

TEST_CASE("model routed: what is refused says why") {
  CHECK_THAT(refusal(gated(), {.num_members = 2, .batches = {1, 2}, .is_routed = true}),
             ContainsSubstring("batches has 2 entries, expected none"));
  ModelProblem other = routed(2, 3);
  other.id_dtype = Dtype::fp32;
  CHECK_THAT(refusal(gated(), other),
             ContainsSubstring("model: id_dtype is fp32, expected int64 or int32"));
  other.id_dtype = Dtype::int32;
  CHECK(refusal(gated(), other).empty());
  other.router = Router::scores;
  CHECK_THAT(refusal(gated(), other), ContainsSubstring("expected int64 where no ids are given"));
  CHECK_THAT(refusal(gated(), {.num_members = 2, .id_dtype = Dtype::int32}),
             ContainsSubstring("id_dtype is int32, expected int64 where no ids are given"));
  const Graph scaled = built([](GraphBuilder& g) {
    g.output("y", layers::binary(g, "scale", g.input("x", {kBatch, 8}), g.parameter("s", {8}),
                                 BinaryFunction::multiply));
  });
  CHECK_THAT(refusal(scaled, routed(2, 3)),
             ContainsSubstring("scale (binary): rows are routed to members, expected linear, "
                               "layernorm, rmsnorm, chain, or an operation in which members do "
                               "not differ"));
  const Graph groups = built([](GraphBuilder& g) {
    g.output("y", layers::groupnorm(g, "norm", g.input("x", {kBatch, 4, 8}), 2));
  });
  CHECK_THAT(refusal(groups, routed(2, 3)),
             ContainsSubstring("norm (groupnorm): rows are routed to members, expected linear, "));
  const Graph steps = built([](GraphBuilder& g) {
    g.output("y", layers::rmsnorm(g, "norm", g.input("x", {kBatch, 3, 8})));
  });
  CHECK_THAT(
      refusal(steps, routed(2, 3)),
      ContainsSubstring("norm (rmsnorm): rows are routed to members, expected values [batch, "
                        "D], got [3, 3, 8]"));
  const Graph positions = built([](GraphBuilder& g) {
    g.output("y", layers::linear(g, "fc", g.input("x", {kBatch, 3, 8}), 4));
  });
  CHECK_THAT(refusal(positions, routed(2, 3)),
             ContainsSubstring("expected values [batch, D], got [3, 3, 8]"));
  const Graph joined = built([](GraphBuilder& g) {
    g.output("y", layers::ensemble(g, "mean", layers::linear(g, "fc", g.input("x", {kBatch, 8}), 4),
                                   EnsembleFunction::mean));
  });
  CHECK_THAT(refusal(joined, routed(2, 3)), ContainsSubstring("mean (ensemble): rows are routed"));
  const Graph dropped = built([](GraphBuilder& g) {
    g.output("y", layers::dropout(g, "drop", g.input("x", {kBatch, 8}), 0.5f));
  });
  CHECK_THAT(refusal(dropped, routed(2, 3), {.drops_out = true}),
             ContainsSubstring("drop (dropout): rows are routed"));
  CHECK(refusal(dropped, routed(2, 3)).empty());
}
