// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Models: the named architectures with several members against a plain evaluation of their graphs,
// by all presets; isolation; members that are replaced, copied and read back; what is refused.
#include "wide/model.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "host/linear/linear_problem.hpp"
#include "host/linear/linear_strategy.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/error_of.hpp"
#include "verify/support/folder.hpp"
#include "verify/support/model_run.hpp"
#include "wide/catalog.hpp"
#include "wide/checkpoint.hpp"
#include "wide/chunked_model.hpp"
#include "wide/layers.hpp"
#include "wide/model_replay.hpp"
#include "wide/safetensors.hpp"
#include "wide/validate_model.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;
using test::error_of;
using test::ModelRun;
using test::small_model;

namespace {

double tolerance(Dtype dtype) {
  return dtype == Dtype::fp32 ? 2e-5 : dtype == Dtype::fp16 ? 2e-2 : 1e-1;
}

}  // namespace

TEST_CASE("model: every named architecture computes what its graph says, for every member") {
  for (const Context& context : test::devices_at_hand()) {
    for (const NamedModel& named : named_models()) {
      for (const char* preset : {"default", "debug", "safe"}) {
        CAPTURE(named.name, preset, to_string(context.device()));
        ModelRun run(context, small_model(named.name), {.num_members = 3, .batch = 2},
                     model_options(preset));
        CHECK(run.worst_error(run.run()) < tolerance(Dtype::fp32));
        if (std::string_view(preset) == "default") {
          CHECK(run.worst_error(run.replay()) < tolerance(Dtype::fp32));
        }
      }
    }
  }
}

TEST_CASE("model: in 16 bits, too") {
  for (const Context& context : test::devices_at_hand()) {
    for (const Dtype dtype : {Dtype::fp16, Dtype::bf16}) {
      for (const char* name : {"mlp", "resblock", "bert"}) {
        CAPTURE(name, dtype_name(dtype));
        ModelRun run(context, small_model(name, dtype), {.num_members = 2, .batch = 3});
        CHECK(run.worst_error(run.run()) < tolerance(dtype));
      }
    }
  }
}

TEST_CASE("model: layers behind one another run as one mlp where that is asked for") {
  for (const Context& context : test::devices_at_hand()) {
    const bool is_cpu = context.device().type == DeviceType::cpu;
    for (const char* name : {"mlp", "deep_mlp"}) {
      CAPTURE(name, to_string(context.device()));
      ModelRun run(context, small_model(name), {.num_members = 3, .batch = 5},
                   {.strategies = {{"mlp", is_cpu ? "wide" : "fused"}}});
      REQUIRE(run.plan().steps().size() == 1);
      CHECK(run.plan().steps()[0].primitive == "mlp");
      CHECK(run.worst_error(run.run()) < tolerance(Dtype::fp32));
      run.replace(1, 9);
      CHECK(run.worst_error(run.replay()) < tolerance(Dtype::fp32));
      const OwnedParameters got = run.model().get(1, run.stream());
      const MemberParameters given = run.parameters_of(9);
      for (const auto& [parameter, tensor] : got) {
        CHECK(std::memcmp(tensor.data(), given.at(parameter).data,
                          static_cast<size_t>(tensor.bytes())) == 0);
      }
    }
  }
}

TEST_CASE("model: a member's bits depend on nothing but its own operands") {
  for (const Context& context : test::devices_at_hand()) {
    for (const char* name : {"mlp", "convnet", "bert"}) {
      CAPTURE(name);
      const Graph graph = small_model(name);
      ModelRun a(context, graph, {.num_members = 3, .batch = 2}, {}, 7, {4, 5, 6});
      ModelRun b(context, graph, {.num_members = 3, .batch = 2}, {}, 7, {6, 9, 4});
      const auto first = a.run(), second = b.run();
      const std::string y = graph.outputs()[0].name;
      CHECK(first.at(y)[0].values == second.at(y)[2].values);
      CHECK(first.at(y)[2].values == second.at(y)[0].values);
      CHECK(first.at(y)[1].values != second.at(y)[1].values);
    }
  }
}

TEST_CASE("model: members are replaced, cloned and read back, and a captured run goes on") {
  for (const Context& context : test::devices_at_hand()) {
    for (const char* name : {"mlp", "resblock", "vit"}) {
      CAPTURE(name);
      const Graph graph = small_model(name);
      ModelRun run(context, graph, {.num_members = 3, .batch = 2});
      const ModelReplay replay(context, run.model(), run.arguments(), run.execution());
      const auto replayed = [&] {
        run.poison();
        replay.run(run.stream());
        return run.read();
      };
      CHECK(run.worst_error(replayed()) < 2e-5);
      run.replace(1, 8);
      CHECK(run.worst_error(replayed()) < 2e-5);

      const std::string y = graph.outputs()[0].name;
      run.model().clone(1, 2, run.stream());
      for (const int64_t member : {1, 2}) {
        const OwnedParameters got = run.model().get(member, run.stream());
        const MemberParameters given = run.parameters_of(8);
        REQUIRE(got.size() == given.size());
        for (const auto& [parameter, tensor] : got) {
          CAPTURE(parameter);
          REQUIRE(tensor.shape() == given.at(parameter).shape);
          CHECK(std::memcmp(tensor.data(), given.at(parameter).data,
                            static_cast<size_t>(tensor.bytes())) == 0);
        }
      }
      CHECK(replayed().at(y)[0].values != replayed().at(y)[1].values);
      CHECK(run.model().is_masked(0) == false);
    }
  }
}

TEST_CASE("model: what members share is computed once") {
  GraphBuilder g("trunk");
  Value x = g.shared_input("x", {kBatch, 6});
  x = layers::relu(g, "act", layers::linear(g, "trunk", x, 8));
  g.output("y", layers::linear(g, "head", x, 4));
  const Graph graph = std::move(g).build();
  for (const Context& context : test::devices_at_hand()) {
    ModelRun own(context, graph, {.num_members = 3, .batch = 2});
    CHECK(own.worst_error(own.run()) < 2e-5);
    CHECK(own.plan().steps()[0].num_members == 3);

    // All members with member 0's trunk.
    const auto source = random_parameters(graph, 7, 0);
    std::vector<OwnedParameters> owned;
    std::vector<MemberParameters> members;
    for (int64_t i = 0; i < 3; ++i) {
      owned.push_back(random_parameters(graph, 7, i));
      MemberParameters views;
      for (const auto& [name, tensor] : owned.back()) {
        views.emplace(name, name.starts_with("trunk") ? source.at(name) : tensor);
      }
      members.push_back(views);
    }
    const std::vector<std::string> equal = equal_parameters(graph, members);
    CHECK(equal == std::vector<std::string>{"trunk.weight", "trunk.bias"});
    const ModelPlan plan = make_model_plan(context, graph, {.num_members = 3, .batch = 2},
                                           {.shared_parameters = equal});
    CHECK(plan.steps()[0].num_members == 1);
    CHECK(plan.memory().weights_bytes < own.plan().memory().weights_bytes);
    const Model model = compile(context, graph, members, 2, {.shared_parameters = equal});
    CHECK(model.plan().memory().weights_bytes == plan.memory().weights_bytes);
    members[2]["trunk.bias"] = owned[2].at("trunk.bias");
    CHECK_THAT(error_of([&] { Model(context, plan, members); }),
               ContainsSubstring("member 2: trunk.bias differs"));
  }
}

TEST_CASE(
    "model: memory is told before anything is allocated, and no two values that live at one "
    "time share any") {
  const Context cpu = Context::cpu();
  const Graph graph = small_model("resnet18");
  const ModelPlan tight = make_model_plan(cpu, graph, {.num_members = 4, .batch = 2});
  const ModelPlan loose =
      make_model_plan(cpu, graph, {.num_members = 4, .batch = 2}, {.reuses_memory = false});
  CHECK(tight.memory().activation_bytes < loose.memory().activation_bytes / 2);
  CHECK(tight.memory().input_bytes == 4 * 2 * 3 * 32 * 32 * 4);
  CHECK(tight.memory().output_bytes == 4 * 2 * 10 * 4);
  CHECK(tight.memory().weights_bytes >= 4 * 4 * graph.num_parameters() * 9 / 10);

  const int64_t bytes = tight.memory().total_bytes() + tight.memory().host_bytes;
  CHECK(largest_num_members_that_fits(cpu, graph, 2, bytes) == 4);
  CHECK(largest_num_members_that_fits(cpu, graph, 2, bytes - 1) == 3);
  CHECK(largest_num_members_that_fits(cpu, graph, 2, 1000) == 0);
}

TEST_CASE("model: a batch in chunks gives the bits of the whole") {
  for (const Context& context : test::devices_at_hand()) {
    const Graph graph = small_model("convnet");
    ModelRun whole(context, graph, {.num_members = 2, .batch = 5});
    const auto expected = whole.run();
    const Model part = whole.model().with_batch(2);
    const ChunkedModel chunked(part, 5);
    CHECK(chunked.workspace_bytes() < whole.plan().workspace_bytes());
    Tensor workspace(context, Dtype::uint8, {chunked.workspace_bytes()});
    whole.poison();
    Execution execution = whole.execution();
    execution.workspace = {workspace.data(), workspace.bytes()};
    chunked.run(whole.arguments(), execution);
    CHECK(whole.read().at("y")[1].values == expected.at("y")[1].values);
    whole.replace(1, 9);  // of both
    chunked.run(whole.arguments(), execution);
    CHECK(whole.worst_error(whole.read()) < 2e-5);
    CHECK_THAT(error_of([&] { ChunkedModel(part, 4).run(whole.arguments(), execution); }),
               ContainsSubstring("input x is [5, 6, 8, 8], expected [4, 6, 8, 8]"));
  }
}

TEST_CASE("model: a last row lies as the others, even where it needs no copy alone") {
  for (const Context& context : test::devices_at_hand()) {
    const Graph graph = test::built([](GraphBuilder& g) {
      const Value x = g.input("x", {kBatch, 4, 4, 3});
      const Value rows =
          layers::reshape(g, "rows", layers::slice(g, "cut", x, 1, 3, 1), {-1, 4, 3});
      g.output("y", layers::linear(g, "fc", rows, 5));
    });
    ModelRun whole(context, graph, {.num_members = 2, .batch = 5});
    const ChunkedModel chunked(whole.model().with_batch(2), 5);
    Tensor workspace(context, Dtype::uint8, {chunked.workspace_bytes()});
    whole.poison();
    Execution execution = whole.execution();
    execution.workspace = {workspace.data(), workspace.bytes()};
    chunked.run(whole.arguments(), execution);
    CHECK(whole.worst_error(whole.read()) < 2e-5);
  }
}

TEST_CASE("model: other batches are tuned as the first was, when the cache is gone") {
  const Context cpu = Context::cpu();
  ModelOptions options;
  std::optional<TuningCache> cache(std::in_place);
  LinearProblem layer{.num_members = 2, .batch = 5, .in_features = 64, .out_features = 48};
  layer.epilogue = {.has_bias = true, .activation = Activation::relu};
  for (const int64_t batch : {5, 2, 1}) {
    layer.batch = batch;
    cache->set(cpu.info(), "linear", tuning_key(layer).problem, {"sequential", "", 1, 2, ""});
  }
  options.tuning = &*cache;
  ModelRun run(cpu, small_model("mlp"), {.num_members = 2, .batch = 5}, options);
  cache.reset();
  const auto strategy = [](const Model& model) { return model.plan().steps()[0].strategy; };
  const Model part = run.model().with_batch(2);
  CHECK(strategy(run.model()) == "sequential");
  CHECK(strategy(part) == "sequential");
  CHECK(strategy(part.with_batch(1)) == "sequential");
  CHECK(strategy(part.with_batch(3)) == "wide");  // not measured
}

TEST_CASE("model: in the catalogue, too, \"auto\" asks the tuning cache for each step") {
  const Context cpu = Context::cpu();
  TuningCache cache;
  LinearProblem layer{.num_members = 2, .batch = 5, .in_features = 64, .out_features = 128};
  layer.epilogue = {.has_bias = true, .activation = Activation::relu};
  cache.set(cpu.info(), "linear", tuning_key(layer).problem, {"sequential", "", 1, 2, ""});
  const catalog::PrimitiveSpec& spec = catalog::find_primitive("model:mlp");
  std::vector<catalog::Case::Entry> axes{{"n", int64_t{2}}, {"batch", int64_t{5}}};
  for (const catalog::AxisInfo& axis : spec.axes)
    axes.push_back({std::string(axis.name), axis.default_value});
  const auto workload = spec.make_workload(cpu, {"model:mlp", axes}, {});
  CHECK_THAT(workload->prepare(PlanOptions{.tuning = &cache}).explain,
             ContainsSubstring("1 linear (sequential, tuned), 1 linear (wide)"));
  const PlanOptions by_name{.strategy = "compiled", .tuning = &cache};
  CHECK_THAT(workload->prepare(by_name).explain, ContainsSubstring("2 linear (wide)"));
}

TEST_CASE("model: members without parameters are saved, too") {
  const Context cpu = Context::cpu();
  const test::TemporaryFolder folder;
  GraphBuilder g("soft");
  g.output("y", layers::softmax(g, "node", g.input("x", {kBatch, 4})));
  ModelRun run(cpu, std::move(g).build(), {.num_members = 3, .batch = 2});
  save_members("none.safetensors", run.model(), run.stream());
  CHECK(MembersFile::open("none.safetensors").num_members() == 3);
}

TEST_CASE("model: members are saved, all or one, and loaded as they were") {
  const Context cpu = Context::cpu();
  const test::TemporaryFolder folder;
  const Graph graph = small_model("convnet");
  ModelRun run(cpu, graph, {.num_members = 3, .batch = 2});
  const std::string path = "all.safetensors";
  save_members(path, run.model(), run.stream());
  const MembersFile file = MembersFile::open(path);
  CHECK(file.num_members() == 3);
  CHECK(file.graph_name() == "convnet");
  for (int64_t i = 0; i < 3; ++i) {
    const MemberParameters given = run.parameters_of(i);
    const MemberParameters& got = file.members()[static_cast<size_t>(i)];
    REQUIRE(got.size() == given.size());
    for (const auto& [name, view] : given) {
      REQUIRE(got.at(name).shape == view.shape);
      CHECK(std::memcmp(got.at(name).data, view.data, static_cast<size_t>(view.span_bytes())) == 0);
    }
  }
  const std::string single = "one.safetensors";
  save_member(single, run.model(), 1, run.stream());
  CHECK(Safetensors::open(single).find("fc.weight") != nullptr);
  CHECK_THAT(error_of([&] { (void)MembersFile::open(single); }),
             ContainsSubstring("has no wide.num_members"));

  const float number = 1;
  const ConstTensorView scalar(&number, Dtype::fp32, Shape{}, Device{});
  const std::vector<NamedTensor> twice{{"01/w", scalar}, {"1/w", scalar}};
  save_safetensors("twice.safetensors", twice, {{"wide.num_members", "2"}});
  CHECK_THAT(error_of([] { (void)MembersFile::open("twice.safetensors"); }),
             ContainsSubstring("twice.safetensors has parameter w of member 1 twice"));
}

TEST_CASE("model: what a BatchNorm counted in training is in checkpoints, and passed over") {
  const test::TemporaryFolder folder;
  ModelRun run(Context::cpu(), small_model("resblock"), {.num_members = 2, .batch = 3});
  const int64_t count = 1234;
  const ConstTensorView counter(&count, Dtype::int64, Shape{}, Device{});
  std::vector<NamedTensor> tensors{{"block.bn1.num_batches_tracked", counter},
                                   {"block.bn2.num_batches_tracked", counter}};
  for (const auto& [name, view] : run.parameters_of(1)) tensors.push_back({name, view});
  save_safetensors("checkpoint.safetensors", tensors);
  const Safetensors file = Safetensors::open("checkpoint.safetensors");
  const MemberParameters parameters = parameters_of(file);
  run.model().replace(1, parameters, run.stream());
  CHECK(run.worst_error(run.run()) < 2e-5);
  CHECK(run.model().get(1, run.stream()).size() == parameters.size() - 2);

  const auto refusal = [&](const char* name) {
    MemberParameters own = run.parameters_of(1);
    own.emplace(name, counter);
    return error_of([&] { run.model().replace(1, own, run.stream()); });
  };
  CHECK_THAT(
      refusal("block.bn3.num_batches_tracked"),
      ContainsSubstring("has a parameter block.bn3.num_batches_tracked, which resblock has"));
  CHECK_THAT(refusal("block.bn1.num_batches"), ContainsSubstring("block.bn1.num_batches, which"));
}

TEST_CASE("model: validation sees every member, and one that is broken") {
  for (const Context& context : test::devices_at_hand()) {
    if (context.device().type != DeviceType::cpu) continue;  // the members alone need vendors there
    const Graph graph = small_model("bert");
    std::vector<OwnedParameters> owned;
    for (int64_t i = 0; i < 3; ++i) owned.push_back(random_parameters(graph, 5, i));
    const std::vector<MemberParameters> members = views_of(owned);
    const std::vector<double> errors =
        validate_model(context, graph, {.num_members = 3, .batch = 2}, members);
    REQUIRE(errors.size() == 3);
    for (const double error : errors) CHECK(error < 2e-5);
    auto* bias = static_cast<float*>(owned[1].at("classifier.bias").data());
    bias[0] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<double> broken =
        validate_model(context, graph, {.num_members = 3, .batch = 2}, members);
    CHECK(broken[0] < 2e-5);
    CHECK(std::isinf(broken[1]));
    CHECK(broken[2] < 2e-5);
  }
}

TEST_CASE("model: what would mix members is refused with the node's name") {
  const Context cpu = Context::cpu();
  ModelOptions strict;
  strict.moves_data = false;
  const auto refusal = [&](const Graph& graph) {
    return error_of(
        [&] { (void)make_model_plan(cpu, graph, {.num_members = 2, .batch = 3}, strict); });
  };
  {  // channels first, then a linear layer over what are positions
    GraphBuilder g("mixed");
    Value x = g.input("x", {kBatch, 3, 8});
    x = layers::conv(g, "conv", x, 4, {.kernel = {1, 3}});
    g.output("y", layers::linear(g, "over_positions", x, 5));
    CHECK_THAT(refusal(std::move(g).build()),
               ContainsSubstring("over_positions (linear)") && ContainsSubstring("conv1d conv"));
  }
  {
    GraphBuilder g("shared");
    Value x = g.shared_input("x", {kBatch, 3, 4, 4});
    g.output("y", layers::groupnorm(g, "norm", x, 3));
    CHECK_THAT(refusal(std::move(g).build()),
               ContainsSubstring("norm (groupnorm): x is one for all members"));
  }
}
