// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What running a model costs the host: no allocation, one launch of a captured run; and that many
// threads run one model.
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "verify/support/allocations.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/model_run.hpp"
#include "verify/support/simulation.hpp"
#include "verify/support/tensors.hpp"
#include "wide/layers.hpp"
#include "wide/model_replay.hpp"

using namespace wide;
using test::AllocationCount;
using test::ModelRun;

TEST_CASE("model host cost: allocations are noticed") {
  const AllocationCount count;
  delete new std::string(100, 'x');
  CHECK(count.get() == 2);
  ::operator delete (::operator new (64, std::align_val_t{64}), std::align_val_t{64});
  CHECK(count.get() == 3);
  std::thread([] { delete new int; }).join();
  CHECK(count.get() >= 5);
}

namespace {

void check_no_allocation(const Context& context, const Graph& graph, const ModelProblem& problem,
                         const ModelOptions& options = {}) {
  ModelRun run(context, graph, problem, options);
  const ModelReplay replay(context, run.model(), run.arguments(), run.execution());
  const ModelArguments arguments = run.arguments();
  const Execution execution = run.execution();
  run.model().run(arguments, execution);  // what a thread or a library needs once
  replay.run(run.stream());
  context.synchronize(run.stream());
  int64_t of_run = -1, of_both = -1, of_all = -1;
  {
    const AllocationCount count;
    run.model().run(arguments, execution);
    of_run = count.get();
    replay.run(run.stream());
    of_both = count.get();
    if (options.drops_out) run.model().advance_dropout(run.stream());
    of_all = count.get();
  }
  CHECK(of_run == 0);
  CHECK(of_both == 0);
  CHECK(of_all == 0);
  context.synchronize(run.stream());
}

}  // namespace

TEST_CASE("model host cost: neither a run nor a captured run allocates") {
  for (const Context& context : test::devices_at_hand()) {
    for (const NamedModel& named : named_models()) {
      CAPTURE(named.name, to_string(context.device()));
      const bool is_deep = named.name == "resnet18" || named.name == "unet" || named.name == "vit";
      if (is_deep && test::wants_small_cases()) continue;  // nothing that others have not
      const Graph graph = test::small_model(named.name);
      check_no_allocation(context, graph, {.num_members = 3, .batch = 2});
      check_no_allocation(context, graph, {.num_members = 3, .batches = {1, 0, 2}});
    }
  }
}

TEST_CASE("model host cost: nor do layers that no named model has") {
  struct Case {
    const char* name;
    std::function<Value(GraphBuilder&)> build;
    ModelOptions options{};
  };
  const Shape sequence{kBatch, 5, 8}, image{kBatch, 6, 8, 8};
  const std::vector<Case> cases{
      {"lstm", [&](auto& g) { return layers::lstm(g, "l", g.input("x", sequence), 6); }},
      {"both directions",
       [&](auto& g) {
         return layers::bidirectional(g, "l", g.input("x", sequence), 6, RecurrentCell::gru);
       }},
      {"part of a sequence",
       [&](auto& g) {
         return layers::attention(g, "a", layers::slice(g, "s", g.input("x", sequence), 1, 1, 3),
                                  2);
       }},
      {"mlp",
       [&](auto& g) {
         const Value h = layers::linear(g, "a", g.input("x", {kBatch, 8}), 16);
         return layers::linear(g, "b", layers::relu(g, "r", h), 4);
       },
       {.strategies = {{"mlp", "layerwise"}}}},
      {"dropout",
       [&](auto& g) { return layers::dropout(g, "d", g.input("x", sequence), 0.5f); },
       {.drops_out = true}},
      {"norms and pools of channels", [&](auto& g) {
         Value h = layers::groupnorm(g, "g", g.input("x", image), 2);
         h = layers::max_pool(g, "p", layers::instancenorm(g, "i", h), {.kernel = 2});
         return layers::binary(g, "b", h, g.parameter("f", {6, 1, 1}), BinaryFunction::multiply);
       }}};
  for (const Context& context : test::devices_at_hand()) {
    for (const Case& c : cases) {
      CAPTURE(c.name, to_string(context.device()));
      GraphBuilder g("costs");
      g.output("y", c.build(g));
      const Graph graph = std::move(g).build();
      ModelOptions options = c.options;
      const bool is_on_cpu = context.device().type == DeviceType::cpu;
      if (is_on_cpu && !options.strategies.empty()) options.strategies = {{"mlp", "wide"}};
      check_no_allocation(context, graph, {.num_members = 3, .batch = 2}, options);
      check_no_allocation(context, graph, {.num_members = 3, .batches = {1, 0, 2}}, options);
    }
  }
}

TEST_CASE("model host cost: a captured run is one launch") {
  test::require_simulation();
  const Context context = Context::cuda(0);
  for (const ModelProblem& problem : {ModelProblem{.num_members = 2, .batch = 1},
                                      ModelProblem{.num_members = 2, .batches = {1, 2}}}) {
    ModelRun run(context, test::small_model("bert"), problem);
    REQUIRE(run.plan().steps().size() > 10);
    const ModelReplay replay(context, run.model(), run.arguments(), run.execution());
    const int64_t before = test::Simulation::num_calls();
    replay.run(run.stream());
    const int64_t num_calls = test::Simulation::num_calls() - before;
    // Each of them by its name: it is told to fail.
    std::vector<std::string> calls;
    for (int64_t k = 1; k <= num_calls; ++k) {
      test::Simulation::fail_at(k, 400, false);
      CHECK_THROWS(replay.run(run.stream()));
      calls.push_back(test::Simulation::failed_call());
    }
    test::Simulation::fail_at(0, 0, false);
    CHECK(calls == std::vector<std::string>{"cudaGetDevice", "cudaGraphLaunch"});
    context.synchronize(run.stream());
  }
}

TEST_CASE("model host cost: eight threads run one model, each with a stream and a workspace") {
  constexpr size_t kThreads = 8;
  for (const Context& context : test::devices_at_hand()) {
    for (const char* name : {"mlp", "convnet"}) {
      CAPTURE(name, to_string(context.device()));
      ModelRun run(context, test::small_model(name), {.num_members = 3, .batch = 2});
      CHECK(run.worst_error(run.run()) < 2e-5);
      const ModelOperand& operand = run.plan().outputs()[0];
      const ModelArguments arguments = run.arguments();
      Tensor alone(context, operand.dtype, operand.shape);
      const TensorView alone_view = alone;
      run.model().run({arguments.inputs, {&alone_view, 1}}, run.execution());
      context.synchronize(run.stream());
      const std::vector<double> expected = test::download(context, alone);
      std::vector<OwnedStream> streams;
      std::vector<VendorHandles> handles;
      std::vector<Tensor> workspaces, outputs;
      for (size_t i = 0; i < kThreads; ++i) {
        streams.emplace_back(context);
        handles.emplace_back(context);
        workspaces.emplace_back(context, Dtype::uint8, Shape{run.plan().workspace_bytes()});
        outputs.emplace_back(context, operand.dtype, operand.shape);
      }
      std::vector<std::thread> threads;
      for (size_t i = 0; i < kThreads; ++i) {
        threads.emplace_back([&, i] {
          const TensorView y = outputs[i];
          const Execution execution{
              streams[i].get(), {workspaces[i].data(), workspaces[i].bytes()}, &handles[i]};
          for (int k = 0; k < 3; ++k) {
            fill_bytes(y, 0xff, execution.stream);
            run.model().run({arguments.inputs, {&y, 1}}, execution);
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      for (size_t i = 0; i < kThreads; ++i) {
        CAPTURE(i);
        context.synchronize(streams[i].get());
        CHECK(test::download(context, outputs[i]) == expected);
      }
    }
  }
}
