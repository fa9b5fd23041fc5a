// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What models are given, to run and to become: arguments that are wrong, each refused by name.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/model/model_state.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/error_of.hpp"
#include "verify/support/model_run.hpp"
#include "verify/support/simulation.hpp"
#include "wide/chunked_model.hpp"
#include "wide/error.hpp"
#include "wide/layers.hpp"
#include "wide/model_replay.hpp"
#include "wide/tuning.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using test::error_of;
using test::ModelRun;
using test::small_model;

namespace {

/// An engine's: what is given back has another user at once, who fills it on a stream of its own.
class SharedMemory final : public Allocator {
 public:
  explicit SharedMemory(const Context& device) : device_(device), next_user_(device) {}
  ~SharedMemory() override {
    for (const TensorView& block : given_back_)
      device_.allocator().deallocate(block.data, block.span_bytes());
  }
  void* allocate(int64_t bytes) override { return device_.allocator().allocate(bytes); }
  void deallocate(void* data, int64_t bytes) noexcept override {
    given_back_.emplace_back(data, Dtype::uint8, Shape{bytes}, device_.device());
    fill_bytes(given_back_.back(), kFilled, next_user_.get());
    device_.synchronize(next_user_.get());
  }
  bool all_is_as_filled() const {
    for (const TensorView& block : given_back_) {
      std::vector<uint8_t> bytes(static_cast<size_t>(block.span_bytes()));
      copy(block, TensorView(bytes.data(), Dtype::uint8, block.shape, Device{}), next_user_.get());
      device_.synchronize(next_user_.get());
      for (const uint8_t byte : bytes) {
        if (byte != kFilled) return false;
      }
    }
    return !given_back_.empty();
  }

 private:
  static constexpr uint8_t kFilled = 0xee;
  Context device_;
  OwnedStream next_user_;
  std::vector<TensorView> given_back_;
};

}  // namespace

TEST_CASE("model: a stream of the CPU is refused on CUDA, whatever it is for") {
  const Graph graph = small_model("mlp");
  for (const Context& context : test::devices_at_hand()) {
    ModelRun run(context, graph, {.num_members = 2, .batch = 3});
    const ModelReplay replay(context, run.model(), run.arguments(), run.execution());
    Execution execution = run.execution();
    execution.stream = Stream::cpu();
    const MemberParameters parameters = run.parameters_of(0);
    Model& model = run.model();
    const std::function<void()> calls[] = {
        [&] { model.run(run.arguments(), execution); },
        [&] { replay.run(Stream::cpu()); },
        [&] { model.replace(1, parameters, Stream::cpu()); },
        [&] { model.clone(0, 1, Stream::cpu()); },
        [&] { (void)model.get(1, Stream::cpu()); },
        [&] { model.mask(1, Stream::cpu()); },
        [&] { (void)model.compact(Stream::cpu()); },
    };
    const std::string expected = context.device().type == DeviceType::cpu
                                     ? "nothing was thrown"
                                     : "model: stream is null, as Stream::cpu() is, expected one "
                                       "of cuda:0 (cudaStreamLegacy: the default one)";
    for (const auto& call : calls) CHECK(error_of(call) == expected);
  }
}

TEST_CASE("model: one that cannot be made gives its memory back when it is at rest") {
  const Context device = test::require_cuda();
  if (test::Simulation::is_present()) test::Simulation::clear_findings();
  const auto memory = std::make_shared<SharedMemory>(device);
  const Context context = Context::cuda(0, {.allocator = memory});
  // The mask of a member that is in place is still being written when the next one is refused.
  const Graph graph = with_ensembles(small_model("mlp"), {});
  const ModelPlan plan = make_model_plan(context, graph, {.num_members = 2, .batch = 3},
                                         {.strategies = {{"linear", "simt"}}});
  const OwnedParameters owned = random_parameters(graph, 1, 0);
  MemberParameters incomplete = views_of(owned);
  incomplete.erase("fc1.weight");
  const MemberParameters members[] = {views_of(owned), incomplete};
  CHECK_THAT(error_of([&] { Model(context, plan, members); }), ContainsSubstring("fc1.weight"));
  CHECK(memory->all_is_as_filled());
  if (test::Simulation::is_present()) CHECK(test::Simulation::findings() == "");
}

TEST_CASE("model: operands that overlap are refused, whole or in chunks") {
  const Context cpu = Context::cpu();
  GraphBuilder g("two");
  const Value x = g.input("x", {kBatch, 16}), z = g.input("z", {kBatch, 16});
  g.output("a", layers::linear(g, "fc1", x, 16));
  g.output("b", layers::linear(g, "fc2", layers::linear(g, "fc3", z, 16), 16));
  ModelRun run(cpu, std::move(g).build(), {.num_members = 2, .batch = 4});
  Tensor memory(cpu, Dtype::fp32, {1024});
  const auto at = [&](int64_t element, int64_t rows) {
    return TensorView(static_cast<float*>(memory.data()) + element, Dtype::fp32, {rows, 32},
                      cpu.device());
  };
  REQUIRE(run.plan().workspace_bytes() > 0);
  const auto runs = [&](int64_t rows, int64_t a, int64_t b, int64_t in, int64_t workspace) {
    const std::vector<ConstTensorView> inputs{at(in, rows), at(in, rows)};
    const std::vector<TensorView> outputs{at(a, rows), at(b, rows)};
    Execution execution = run.execution();
    execution.workspace.data = at(workspace, 0).data;
    return error_of([&] {
      if (rows == 4) return run.model().run({inputs, outputs}, execution);
      ChunkedModel(run.model(), rows).run({inputs, outputs}, execution);
    });
  };
  const std::string fine = "nothing was thrown";
  CHECK(runs(4, 0, 128, 256, 384) == fine);  // side by side; inputs may be one
  CHECK(runs(4, 0, 128, 127, 384) ==
        "model: output a overlaps input x, expected memory of its own");
  CHECK(runs(4, 0, 128, 129, 384) ==
        "model: output b overlaps input x, expected memory of its own");
  CHECK(runs(4, 0, 127, 256, 384) ==
        "model: output b overlaps output a, expected memory of its own");
  CHECK(runs(4, 0, 512, 256, 512) ==
        "model: output b overlaps the workspace, expected memory of its own");
  CHECK(runs(4, 0, 128, 256, 320) ==
        "model: input x overlaps the workspace, expected memory of its own");
  CHECK(runs(8, 0, 256, 512, 768) == fine);
  // The second chunk of x is where the first one of a is.
  CHECK_THAT(runs(8, 128, 512, 0, 768), ContainsSubstring("output a overlaps input x"));
}

TEST_CASE("model: a replay and a model in chunks take operands spelled out, as a model does") {
  const Context cpu = Context::cpu();
  ModelRun run(cpu, small_model("mlp"), {.num_members = 2, .batch = 3});
  const ConstTensorView x = run.arguments().inputs[0];
  const TensorView y = run.arguments().outputs[0];
  const auto expected = run.run();
  const Execution execution = run.execution();
  run.poison();
  ModelReplay(cpu, run.model(), {x}, {y}, execution).run(Stream::cpu());
  CHECK(run.read().at("y")[1].values == expected.at("y")[1].values);
  run.poison();
  ModelReplay(cpu, run.model(), {x}, {y}, {execution.stream, execution.workspace}, {})
      .run(Stream::cpu());
  CHECK(run.read().at("y")[1].values == expected.at("y")[1].values);
  run.poison();
  ChunkedModel(run.model(), 3).run({x}, {y}, execution);
  CHECK(run.read().at("y")[1].values == expected.at("y")[1].values);
}

TEST_CASE(
    "model: what the last rows of a chunked model lack is refused before the first ones run") {
  GraphBuilder g("net");
  g.output("y", layers::lstm(g, "lstm", g.input("x", {kBatch, 2, 4}), 4));
  const Graph graph = std::move(g).build();
  const Context cpu = Context::cpu();
  const ModelProblem problem{.num_members = 4, .batch = 4};
  const ModelPlan untuned = make_model_plan(cpu, graph, problem);
  TuningCache tuning;  // four rows run member after member, any other number of them together
  for (const StepPlanner& planner : untuned.state().planners) {
    const TuningKey key = planner.key();
    tuning.set(cpu.info(), key.primitive, key.problem, {"sequential", "", 1, 2, ""});
  }
  ModelRun run(cpu, graph, problem, {.tuning = &tuning});
  const ChunkedModel chunked(run.model(), 7);
  REQUIRE(chunked.workspace_bytes() > run.plan().workspace_bytes());

  Tensor x(cpu, Dtype::fp32, {7, 2, 16}), y(cpu, Dtype::fp32, {7, 2, 16});
  Tensor workspace(cpu, Dtype::uint8, {chunked.workspace_bytes()});
  const ConstTensorView in = x.view();
  const TensorView out = y.view();
  fill_bytes(x, 0, Stream::cpu());
  fill_bytes(y, 0xff, Stream::cpu());
  const auto runs = [&](int64_t workspace_bytes) {
    return error_of([&] {
      chunked.run({{&in, 1}, {&out, 1}}, {Stream::cpu(), {workspace.data(), workspace_bytes}});
    });
  };
  CHECK_THAT(runs(workspace.bytes() - 1), StartsWith("model: workspace is "));
  CHECK(std::isnan(static_cast<const float*>(y.data())[0]));
  CHECK(runs(workspace.bytes()) == "nothing was thrown");
}

TEST_CASE("model: what a primitive refuses is told with its node's name") {
  GraphBuilder g("net");
  const Value x = layers::linear(g, "fc", g.input("x", {kBatch, 16}), 8);
  g.output("y", layers::pointwise(g, "act", x, PointwiseFunction::clamp));
  const Graph graph = std::move(g).build();
  const auto refusal = [&](const ModelProblem& problem, const ModelOptions& options) {
    return error_of([&] { (void)make_model_plan(Context::cpu(), graph, problem, options); });
  };
  for (const ModelProblem& problem : {ModelProblem{2, 3, {}}, ModelProblem{2, 3, {1, 2}}}) {
    CHECK_THAT(refusal(problem, {.strategies = {{"pointwise", "fastest"}}}),
               StartsWith("model: act: pointwise: strategy is \"fastest\""));
    CHECK_THAT(refusal(problem, {.strategies = {{"linear", "fastest"}}}),
               StartsWith("model: fc: linear: strategy is \"fastest\""));
  }
}

TEST_CASE("model: where a step's library has no handles no step has run") {
  GraphBuilder g("net");
  const Value x = g.input("x", {kBatch, 16});
  const Value soft = layers::softmax(g, "soft", x);
  g.output("soft", soft);
  g.output("y", layers::linear(g, "fc", soft, 8));
  const Graph graph = std::move(g).build();
  const Context context = test::require_cuda();
  ModelRun run(context, graph, {.num_members = 2, .batch = 3},
               {.strategies = {{"softmax", "wide"}, {"linear", "cublas_batched"}}});
  CHECK(run.plan().vendor_calls() == VendorCalls{.cublas = true});
  Execution execution = run.execution();
  execution.handles = nullptr;
  run.poison();
  CHECK_THAT(error_of([&] { run.model().run(run.arguments(), execution); }),
             StartsWith("model: fc: execution.handles is null, expected handles of the vendors' "
                        "libraries: this strategy calls cuBLAS"));
  for (const auto& [name, members] : run.read()) {
    for (const catalog::Doubles& values : members) {
      CHECK(std::all_of(values.values.begin(), values.values.end(),
                        [](double v) { return std::isnan(v); }));
    }
  }
  run.model().run_step(0, run.arguments(), execution);  // which calls no library
}

TEST_CASE("model: a plan says which libraries its steps call") {
  const Graph graph = small_model("mlp");
  const Context cpu = Context::cpu();
  CHECK_FALSE(make_model_plan(cpu, graph, {}).vendor_calls().any());
  const Context context = test::require_cuda();
  const auto calls = [&](const char* strategy) {
    const ModelPlan plan =
        make_model_plan(context, graph, {}, {.strategies = {{"linear", strategy}}});
    for (const ModelStep& step : plan.steps()) CHECK(step.vendor_calls == plan.vendor_calls());
    return plan.vendor_calls();
  };
  CHECK_FALSE(calls("simt").any());
  CHECK(calls("sequential") == VendorCalls{.cublas = true});
}

TEST_CASE("model: arguments that contradict the plan are refused") {
  const Context cpu = Context::cpu();
  const Graph graph = small_model("mlp");
  ModelRun run(cpu, graph, {.num_members = 2, .batch = 3});
  std::vector<ConstTensorView> inputs(run.arguments().inputs.begin(), run.arguments().inputs.end());
  const std::vector<TensorView> outputs(run.arguments().outputs.begin(),
                                        run.arguments().outputs.end());
  Execution execution = run.execution();
  CHECK_THAT(error_of([&] {
               run.model().run({{}, outputs}, execution);
             }),
             ContainsSubstring("0 inputs, expected 1: x"));
  inputs[0].shape = {3, 64};
  inputs[0].strides = {64, 1};
  CHECK_THAT(error_of([&] {
               run.model().run({inputs, outputs}, execution);
             }),
             ContainsSubstring("input x is fp32 [3, 64], expected fp32 [3, 128]"));
  execution = run.execution();
  inputs[0] = run.arguments().inputs[0];
  execution.workspace.bytes = 1;
  CHECK_THAT(error_of([&] { run.model().run(run.arguments(), execution); }),
             ContainsSubstring("workspace is 1 byte"));
  CHECK_THAT(error_of([&] { run.replace(2, 0); }), ContainsSubstring("member is 2"));

  MemberParameters parameters = run.parameters_of(0);
  const Stream stream = run.stream();
  parameters.erase("fc2.bias");
  CHECK_THAT(error_of([&] { run.model().replace(1, parameters, stream); }),
             ContainsSubstring("member 1 has no parameter fc2.bias, expected fp32 [64]"));
  parameters["fc2.bios"] = run.parameters_of(0).at("fc2.bias");
  CHECK_THAT(
      error_of([&] { run.model().replace(1, parameters, stream); }),
      ContainsSubstring("fc2.bios") && ContainsSubstring("did you mean fc2.bias, fc1.bias?"));
  parameters = run.parameters_of(0);
  parameters["fc2.bias"].shape = {63};
  CHECK_THAT(error_of([&] { run.model().replace(1, parameters, stream); }),
             ContainsSubstring("member 1: fc2.bias is fp32 [63], expected fp32 [64]"));
  CHECK(run.worst_error(run.run()) < 2e-5);  // nothing was changed

  CHECK_THAT(error_of([&] { (void)make_model_plan(cpu, graph, {.num_members = 0, .batch = 3}); }),
             ContainsSubstring("num_members is 0"));
  CHECK_THAT(error_of([&] { (void)make_model_plan(cpu, graph, {.num_members = 1, .batch = 0}); }),
             ContainsSubstring("batch is 0"));
  CHECK_THAT(error_of([&] { (void)model_options("quick"); }),
             ContainsSubstring("expected default, fast, debug or safe"));
  CHECK_THAT(error_of([&] { (void)make_named_model("resnet"); }),
             ContainsSubstring("did you mean resnet18?"));
  CHECK_THAT(error_of([&] {
               (void)make_model_plan(cpu, graph, {.num_members = 1, .batch = 1},
                                     {.strategies = {{"linaer", "wide"}}});
             }),
             ContainsSubstring("linaer") && ContainsSubstring("linear"));
}
