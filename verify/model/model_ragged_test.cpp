// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Models whose members have batches of their own: each member's rows are what the same model gives
// with that member alone, bit for bit, and nobody else's business; what runs for all at once, and
// what one by one; members that come and go; what is refused.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "verify/support/devices.hpp"
#include "verify/support/model_run.hpp"
#include "wide/chunked_model.hpp"
#include "wide/layers.hpp"
#include "wide/model_replay.hpp"
#include "wide/validate_model.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;
using test::ModelRun;
using test::small_model;

namespace {

ModelProblem ragged(std::vector<int64_t> batches) {
  const auto n = static_cast<int64_t>(batches.size());
  return {.num_members = n, .batches = std::move(batches)};
}

/// Parts that run in every way there is: shared, alike for all rows, as ragged_linear, one by one.
Graph mixed() {
  GraphBuilder g("mixed");
  const Value s = g.shared_input("s", {kBatch, 3, 7}), x = g.input("x", {kBatch, 3, 7});
  const Value trunk = layers::softmax(g, "trunk", s);
  const Value first = layers::linear(g, "first", trunk, 5);
  Value h = layers::linear(g, "second", x, 5);
  h = layers::add(g, "sum", h, first);
  h = layers::softmax(g, "soft", layers::layernorm(g, "norm", h));
  h = layers::linear(g, "third", layers::flatten(g, "flat", h), 9, {.has_bias = false});
  g.output("y", layers::relu(g, "act", h));
  g.output("late", layers::slice(g, "part", layers::softmax(g, "other", x), 1, 1, 2));
  return std::move(g).build();
}

/// Every member's outputs against those of a model of that member alone.
void check_bits(ModelRun& run, const Graph& graph, const ModelRun::Outputs& outputs,
                const ModelOptions& options = {}) {
  const std::vector<int64_t>& batches = run.plan().problem().batches;
  for (size_t m = 0; m < batches.size(); ++m) {
    if (batches[m] == 0) continue;
    CAPTURE(m, batches[m]);
    ModelRun alone(run.context(), graph, {.num_members = 1, .batch = batches[m]}, options, 7,
                   {static_cast<int64_t>(m)});
    for (const auto& [name, members] : alone.run()) {
      CAPTURE(name);
      REQUIRE(outputs.at(name)[m].shape == members[0].shape);
      CHECK(outputs.at(name)[m].values == members[0].values);
    }
  }
}

}  // namespace

TEST_CASE("model ragged: every named architecture gives each member what it gives it alone") {
  for (const Context& context : test::devices_at_hand()) {
    for (const NamedModel& named : named_models()) {
      const bool is_deep = named.name == "resnet18" || named.name == "unet" || named.name == "vit";
      if (is_deep && test::wants_small_cases()) continue;  // nothing that others have not
      const Graph graph = small_model(named.name);
      for (const char* preset : {"default", "debug", "safe"}) {
        CAPTURE(named.name, preset, to_string(context.device()));
        if (preset != std::string_view("default") && test::wants_small_cases()) continue;
        const ModelOptions options = model_options(preset);
        ModelRun run(context, graph, ragged({3, 0, 1, 2}), options);
        const ModelRun::Outputs outputs = run.run();
        CHECK(run.worst_error(outputs) < 2e-5);
        CHECK(run.worst_error(run.replay()) < 2e-5);
        check_bits(run, graph, outputs, options);
      }
    }
  }
}

TEST_CASE("model ragged: rows of one, of odd numbers and of many") {
  const int64_t many = test::wants_small_cases() ? 33 : 517;
  for (const Context& context : test::devices_at_hand()) {
    for (const Graph& graph : {mixed(), small_model("mlp")}) {
      CAPTURE(graph.name(), to_string(context.device()));
      ModelRun run(context, graph, ragged({1, many, 0, 7, 1}));
      const ModelRun::Outputs outputs = run.run();
      CHECK(run.worst_error(outputs) < 2e-5);
      check_bits(run, graph, outputs);
    }
  }
  ModelRun one(Context::cpu(), mixed(), ragged({5}));
  CHECK(one.worst_error(one.run()) < 2e-5);
  ModelRun last(Context::cpu(), mixed(), ragged({0, 0, 1}));
  CHECK(last.worst_error(last.run()) < 2e-5);
}

TEST_CASE("model ragged: in 16 bits, too") {
  for (const Context& context : test::devices_at_hand()) {
    for (const Dtype dtype : {Dtype::fp16, Dtype::bf16}) {
      ModelRun run(context, small_model("mlp", dtype), ragged({2, 5, 1}));
      CHECK(run.worst_error(run.run()) < (dtype == Dtype::fp16 ? 2e-2 : 1e-1));
    }
  }
}

TEST_CASE("model ragged: what runs for all members at once, and what for each") {
  const auto steps_of = [](const ModelOptions& options) {
    const ModelPlan plan = make_model_plan(Context::cpu(), mixed(), ragged({2, 0, 3}), options);
    std::vector<std::string> steps;
    for (const ModelStep& step : plan.steps()) {
      steps.push_back(step.node + " " + step.primitive + " " + step.strategy + " " +
                      std::to_string(step.num_members) + " " + std::to_string(step.member));
    }
    return steps;
  };
  using Steps = std::vector<std::string>;
  CHECK(steps_of({}) == Steps{"trunk softmax wide 1 -1", "second ragged_linear wide 3 -1",
                              "first ragged_linear wide 3 -1", "norm layernorm wide 1 0",
                              "norm layernorm wide 1 2", "soft softmax wide 3 -1",
                              "third ragged_linear wide 3 -1", "other softmax wide 3 -1",
                              "late copy  3 -1"});
  CHECK(steps_of({.strategies = {{"linear", "sequential"}}})[2] == "second linear sequential 1 2");
  CHECK(steps_of({.strategies = {{"linear", "wide"}, {"ragged_linear", "sequential"}}})[1] ==
        "second ragged_linear sequential 3 -1");
  CHECK(steps_of(model_options("safe"))[1] == "first ragged_linear sequential 3 -1");

  const std::string text = make_model_plan(Context::cpu(), mixed(), ragged({2, 0, 3})).explain();
  CHECK_THAT(text, ContainsSubstring("norm: layernorm by wide, rows of member 2: one pass "));
  CHECK_THAT(text, ContainsSubstring("trunk: softmax by wide, once for all members: one pass "));

  // Layers become one mlp for nobody but those who ask for it.
  const auto mlp_steps = [](const ModelOptions& options) {
    const ModelPlan plan =
        make_model_plan(Context::cpu(), small_model("mlp"), ragged({2, 3}), options);
    std::string primitives;
    for (const ModelStep& step : plan.steps()) primitives += step.primitive + " ";
    return primitives;
  };
  CHECK(mlp_steps({}) == "ragged_linear ragged_linear ");
  CHECK(mlp_steps({.strategies = {{"mlp", "wide"}}}) == "mlp mlp ");
}

TEST_CASE("model ragged: linear layers by linear, where that is what is named") {
  for (const Context& context : test::devices_at_hand()) {
    const bool is_cpu = context.device().type == DeviceType::cpu;
    const ModelOptions options{.strategies = {{"linear", is_cpu ? "wide" : "simt"}}};
    ModelRun run(context, mixed(), ragged({4, 1, 0, 3}), options);
    CHECK(run.plan().steps()[1].primitive == "linear");
    const ModelRun::Outputs outputs = run.run();
    CHECK(run.worst_error(outputs) < 2e-5);
    check_bits(run, mixed(), outputs, options);
  }
}

TEST_CASE("model ragged: a residual that is shared, one that lies elsewhere, parts of inputs") {
  GraphBuilder g("residuals");
  const Value x = g.input("x", {kBatch, 4, 6}), s = g.shared_input("s", {kBatch, 4, 6});
  g.output("shared", g.append("fc1", LinearOp{.residual = Residual::before_activation},
                              {{"x", x}, {"weight", g.parameter("w", {6, 6})}, {"residual", s}}));
  const Value wide =
      layers::pointwise(g, "wide", layers::linear(g, "fc2", x, 8), PointwiseFunction::tanh);
  const Value part = layers::slice(g, "part", wide, 2, 1, 6);
  g.output("part_of", layers::add(g, "add2", layers::linear(g, "fc3", x, 6), part));
  const Value row = layers::flatten(g, "row", layers::slice(g, "one", x, 1, 2, 1));
  g.output("of_part", layers::linear(g, "fc4", row, 3));
  g.output("token", layers::concat(g, "concat", {g.parameter("class", {1, 6}), x}, 1));
  g.output("both", layers::concat(g, "both_node", {x, layers::add(g, "add3", x, s)}, 2));
  const Graph graph = std::move(g).build();
  for (const Context& context : test::devices_at_hand()) {
    ModelRun run(context, graph, ragged({2, 5, 0, 1}));
    CHECK(run.worst_error(run.run()) < 2e-5);
    CHECK_THAT(run.plan().explain(),
               ContainsSubstring("fc3: residual is copied, to lie as the node reads it"));
    CHECK_THAT(run.plan().explain(), ContainsSubstring("fc1: linear by"));
  }
}

TEST_CASE("model ragged: nobody's bits depend on the others, nor on NaN in them") {
  for (const Context& context : test::devices_at_hand()) {
    for (const Graph& graph : {mixed(), small_model("convnet")}) {
      CAPTURE(graph.name(), to_string(context.device()));
      ModelRun a(context, graph, ragged({2, 3, 1}), {}, 7, {4, 5, 6});
      ModelRun b(context, graph, ragged({2, 3, 1}), {}, 7, {4, 9, 6});
      const ModelRun::Outputs first = a.run(), other = b.run();
      OwnedParameters broken = random_parameters(graph, 7, 9);
      for (auto& [name, tensor] : broken) {
        std::memset(tensor.data(), 0xff, static_cast<size_t>(tensor.bytes()));
      }
      b.model().replace(1, views_of(broken), b.stream());
      for (size_t k = 0; k < b.arguments().inputs.size(); ++k) {
        const ConstTensorView& x = b.arguments().inputs[k];
        if (b.plan().inputs()[k].first_rows.empty()) continue;
        const ConstTensorView rows = x.narrow(0, 2, 3);
        fill_bytes(TensorView(const_cast<void*>(rows.data), rows.dtype, rows.shape, rows.strides,
                              rows.device),
                   0xff, b.stream());
      }
      const ModelRun::Outputs poisoned = b.run();
      for (const auto& [name, members] : first) {
        for (const size_t m : {size_t{0}, size_t{2}}) {
          CHECK(members[m].values == other.at(name)[m].values);
          CHECK(members[m].values == poisoned.at(name)[m].values);
        }
        CHECK(members[1].values != other.at(name)[1].values);
      }
      CHECK(std::isnan(poisoned.at("y")[1].values[0]));
    }
  }
}

TEST_CASE("model ragged: members are replaced and cloned, batches change, and a replay goes on") {
  for (const Context& context : test::devices_at_hand()) {
    const Graph graph = small_model("bert");
    ModelRun run(context, graph, ragged({2, 0, 3}));
    const ModelReplay replay(context, run.model(), run.arguments(), run.execution());
    const auto replayed = [&] {
      run.poison();
      replay.run(run.stream());
      return run.read();
    };
    run.replace(2, 8);
    CHECK(run.worst_error(replayed()) < 2e-5);
    run.model().clone(2, 0, run.stream());
    // Of shared inputs both read the same first rows.
    const std::vector<double> two = replayed().at("y")[0].values,
                              three = run.read().at("y")[2].values;
    CHECK(two == std::vector<double>(three.begin(), three.begin() + std::ssize(two)));
    const OwnedParameters got = run.model().get(0, run.stream());
    const MemberParameters given = run.parameters_of(8);
    for (const auto& [parameter, tensor] : got) {
      CHECK(std::memcmp(tensor.data(), given.at(parameter).data,
                        static_cast<size_t>(tensor.bytes())) == 0);
    }
    run.model().mask(1, run.stream());
    CHECK(run.model().compact(run.stream()) == std::vector<int64_t>{0, 2});
    CHECK(run.model().is_masked(2));
  }
}

TEST_CASE("model ragged: one model takes other batches, and one for all") {
  for (const Context& context : test::devices_at_hand()) {
    const Graph graph = small_model("convnet");
    ModelRun wanted(context, graph, ragged({0, 3, 1}));
    const ModelRun::Outputs expected = wanted.run();
    ModelRun other(context, graph, {.num_members = 3, .batch = 2});
    const Model model = other.model().with_batches({0, 3, 1});
    CHECK(model.plan().problem() == wanted.plan().problem());
    wanted.poison();
    model.run(wanted.arguments(), wanted.execution());
    CHECK(wanted.read().at("y")[1].values == expected.at("y")[1].values);
    const Model back = model.with_batch(2);
    other.poison();
    back.run(other.arguments(), other.execution());
    CHECK(other.worst_error(other.read()) < 2e-5);
    other.replace(1, 9);  // of all of them
    wanted.poison();
    model.run(wanted.arguments(), wanted.execution());
    CHECK(wanted.read().at("y")[1].values != expected.at("y")[1].values);
    CHECK_THROWS_WITH(model.with_batches({}), ContainsSubstring("batches is empty"));
    CHECK_THROWS_WITH(ChunkedModel(model, 4), ContainsSubstring("members have rows of their own") &&
                                                  ContainsSubstring("cannot run in chunks"));
  }
}

namespace {

/// Passes on to another context's, and counts.
class Counting final : public Allocator {
 public:
  explicit Counting(Context base) : base_(std::move(base)) {}
  void* allocate(int64_t bytes) override {
    held += bytes;
    return base_.allocator().allocate(bytes);
  }
  void deallocate(void* data, int64_t bytes) noexcept override {
    held -= bytes;
    base_.allocator().deallocate(data, bytes);
  }
  int64_t held = 0;

 private:
  Context base_;
};

}  // namespace

TEST_CASE("model ragged: operands say whose rows are whose, and memory is told to the byte") {
  for (const Context& base : test::devices_at_hand()) {
    const bool is_cpu = base.device().type == DeviceType::cpu;
    const auto counting = std::make_shared<Counting>(base);
    const Context context = is_cpu ? Context::cpu({.num_threads = 1, .allocator = counting})
                                   : Context::cuda(0, {.allocator = counting});
    const ModelOptions options =
        is_cpu ? ModelOptions{}
               : ModelOptions{.strategies = {{"ragged_linear", "simt"}, {"all", "wide"}}};
    const Graph graph = mixed();
    const ModelPlan plan = make_model_plan(context, graph, ragged({2, 0, 3}), options);
    const ModelMemory& memory = plan.memory();
    CHECK(counting->held == memory.table_bytes);
    CHECK((memory.table_bytes > 0) == !is_cpu);
    std::vector<OwnedParameters> owned;
    for (int64_t m = 0; m < 3; ++m) owned.push_back(random_parameters(graph, 7, m));
    const Model model(context, plan, views_of(owned));
    CHECK(counting->held == memory.table_bytes + memory.weights_bytes);

    CHECK(plan.problem().batch == 3);
    CHECK(plan.inputs()[0].shape == Shape{3, 3, 7});
    CHECK(plan.inputs()[0].first_rows.empty());
    CHECK(plan.inputs()[0].member_axis == -1);
    CHECK(plan.inputs()[1].shape == Shape{5, 3, 7});
    CHECK(plan.inputs()[1].first_rows == std::vector<int64_t>{0, 2, 2, 5});
    CHECK(plan.inputs()[1].member_axis == 0);
    CHECK(!plan.inputs()[1].is_stacked);
    CHECK(plan.outputs()[0].shape == Shape{5, 9});
    CHECK(plan.outputs()[0].first_rows == plan.inputs()[1].first_rows);
    CHECK(memory.input_bytes == (3 + 5) * 3 * 7 * 4);
    CHECK(memory.output_bytes == 5 * (9 + 2 * 7) * 4);
    CHECK(memory.total_bytes() == memory.weights_bytes + memory.workspace_bytes() +
                                      memory.input_bytes + memory.output_bytes +
                                      memory.table_bytes);
  }
}

TEST_CASE("model ragged: dropout draws for a member what it draws for it alone") {
  GraphBuilder g("mc");
  const Value x = g.input("x", {kBatch, 64});
  const Value one = layers::dropout(g, "one", layers::linear(g, "fc", x, 33), 0.5f);
  g.output("y", layers::dropout(g, "two", layers::relu(g, "act", one), 0.25f));
  const Graph graph = std::move(g).build();
  for (const Context& context : test::devices_at_hand()) {
    const ModelOptions options{.drops_out = true};
    ModelRun run(context, graph, ragged({3, 0, 1, 6}), options);
    run.model().seed_dropout(40, 2, run.stream());
    const ModelRun::Outputs outputs = run.run();
    for (const int64_t m : {0, 2, 3}) {
      const int64_t rows = run.plan().problem().batches[static_cast<size_t>(m)];
      ModelRun alone(context, graph, {.num_members = 1, .batch = rows}, options, 7, {m});
      alone.model().seed_dropout(static_cast<uint64_t>(40 + m), 2, alone.stream());
      CHECK(outputs.at("y")[static_cast<size_t>(m)].values == alone.run().at("y")[0].values);
    }
  }
}

TEST_CASE("model ragged: validation sees every member, and one that is broken") {
  const Context cpu = Context::cpu();
  const Graph graph = small_model("bert");
  std::vector<OwnedParameters> owned;
  for (int64_t i = 0; i < 4; ++i) owned.push_back(random_parameters(graph, 5, i));
  const std::vector<MemberParameters> members = views_of(owned);
  auto* bias = static_cast<float*>(owned[2].at("classifier.bias").data());
  bias[0] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<double> errors = validate_model(cpu, graph, ragged({2, 0, 1, 3}), members);
  REQUIRE(errors.size() == 4);
  CHECK(errors[0] < 2e-5);
  CHECK(errors[1] == 0);
  CHECK(std::isinf(errors[2]));
  CHECK(errors[3] < 2e-5);
}

TEST_CASE("model ragged: what cannot be is refused with names") {
  const Context cpu = Context::cpu();
  const Graph graph = small_model("mlp");
  const auto make = [&](const ModelProblem& problem) {
    (void)make_model_plan(cpu, graph, problem);
  };
  CHECK_THROWS_WITH(make({.num_members = 2, .batches = {1, 2, 3}}),
                    ContainsSubstring("batches has 3 entries, expected one per member = 2"));
  CHECK_THROWS_WITH(make(ragged({4, -1})),
                    ContainsSubstring("batches of member 1 is -1, expected >= 0"));
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  CHECK_THROWS_WITH(make(ragged({most, 1})), ContainsSubstring("more rows than fit in 64 bits"));
  CHECK_THROWS_WITH(make(ragged({most / 4, 1})),
                    ContainsSubstring("expected fewer than 17592186044416"));
  CHECK_THROWS_WITH(make(ragged({0, 0})), ContainsSubstring("batches are 0 for every member"));
  CHECK_THROWS_WITH(make({.num_members = 0, .batches = {1}}),
                    ContainsSubstring("num_members is 0"));

  GraphBuilder g("joined");
  const Value y = layers::linear(g, "fc", g.input("x", {kBatch, 4}), 3);
  g.output("y", layers::ensemble(g, "mean_of_all", y, EnsembleFunction::mean));
  const Graph joined = std::move(g).build();
  CHECK_THROWS_WITH(make_model_plan(cpu, joined, ragged({2, 2})),
                    ContainsSubstring("mean_of_all (ensemble): members have rows of their own"));

  ModelRun run(cpu, graph, ragged({2, 3}));
  std::vector<ConstTensorView> inputs(run.arguments().inputs.begin(), run.arguments().inputs.end());
  inputs[0] = inputs[0].narrow(0, 0, 4);
  CHECK_THROWS_WITH(run.model().run({inputs, run.arguments().outputs}, run.execution()),
                    ContainsSubstring("input x is fp32 [4, 64], expected fp32 [5, 64]"));
}
