// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// An engine captures a stream of its own, in the mode that refuses most, while the library's
// memory, streams, models and replays come and go: the capture becomes a graph, nothing leaks, and
// nothing of it is left in the runtime as an error. Nor is what could not be given back.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "verify/support/devices.hpp"
#include "verify/support/model_run.hpp"
#include "verify/support/refusals.hpp"
#include "verify/support/simulation.hpp"
#include "wide/error.hpp"
#include "wide/layers.hpp"
#include "wide/linear.hpp"
#include "wide/model_replay.hpp"
#include "wide/pinned.hpp"

namespace wide::test {
namespace {

cudaStream_t native(const OwnedStream& stream) {
  return static_cast<cudaStream_t>(stream.get().native());
}

/// Why cuBLASLt plans nothing, if so: the simulated GPU alone has none.
std::string cublaslt_refusal(const Context& context) {
  try {
    const LinearProblem problem{.num_members = 2, .batch = 4, .in_features = 8, .out_features = 8};
    make_linear_plan(context, problem, {.strategy = "cublaslt"});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// Everything there is, so that it can be changed and given back.
struct Things {
  explicit Things(const Context& own)
      : context(own),
        run(std::make_unique<ModelRun>(own, small_model("mlp"),
                                       ModelProblem{.num_members = 2, .batch = 2})),
        parameters(run->parameters_of(9)),
        replay(
            std::make_unique<ModelReplay>(own, run->model(), run->arguments(), run->execution())),
        tensor(own, Dtype::fp32, {64}),
        stream(std::in_place, own) {
    context.synchronize(stream->get());
  }
  Context context;
  std::unique_ptr<ModelRun> run;
  MemberParameters parameters;
  std::unique_ptr<ModelReplay> replay;
  Tensor tensor;
  std::optional<OwnedStream> stream;
  std::string refusal = cublaslt_refusal(context);
};

const std::map<std::string, std::function<void(Things&)>>& changes() {
  static const std::map<std::string, std::function<void(Things&)>> all{
      {"a tensor is made", [](Things& t) { Tensor(t.context, Dtype::fp32, {4096}); }},
      {"a tensor goes", [](Things& t) { t.tensor = Tensor(); }},
      {"page-locked memory is made and goes",
       [](Things& t) {
         Tensor(Context::cpu({.num_threads = 1, .allocator = pinned_allocator(t.context)}),
                Dtype::fp32, {4096});
       }},
      {"a stream is made", [](Things& t) { OwnedStream(t.context).get(); }},
      {"a stream goes", [](Things& t) { t.stream.reset(); }},
      {"a stream is waited for", [](Things& t) { t.context.synchronize(t.stream->get()); }},
      {"a member is replaced",
       [](Things& t) { t.run->model().replace(1, t.parameters, t.stream->get()); }},
      {"a member is read", [](Things& t) { t.run->model().get(1, t.stream->get()); }},
      {"a model for another batch is made and goes",
       [](Things& t) { t.run->model().with_batch(3).plan(); }},
      {"a model is made and goes",
       [](Things& t) {
         const MemberParameters members[] = {t.parameters, t.parameters};
         Model(t.context, t.run->plan(), members).plan();
       }},
      {"a replay is made and goes",
       [](Things& t) {
         ModelReplay(t.context, t.run->model(), t.run->arguments(), t.run->execution())
             .run(t.stream->get());
         t.context.synchronize(t.stream->get());
       }},
      {"another plan of a vendor's library is made and goes",
       [](Things& t) {
         const std::string refusal = cublaslt_refusal(t.context);
         if (refusal != t.refusal) throw Error(ErrorCode::cuda, refusal);
       }},
      {"a replay goes", [](Things& t) { t.replay.reset(); }}};
  return all;
}

}  // namespace

TEST_CASE("captures: what the library makes, waits for and gives back does not break an engine's") {
  const Context context = require_cuda();
  const OwnedStream engine(context);
  Tensor captured(context, Dtype::uint8, {256});
  for (const auto& [what, change] : changes()) {
    for (const bool is_own_thread : {true, false}) {
      INFO(what << (is_own_thread ? "" : " in another thread"));
      Things things(context);
      REQUIRE(cudaStreamBeginCapture(native(engine), cudaStreamCaptureModeGlobal) == cudaSuccess);
      fill_bytes(captured.view(), 1, engine.get());
      std::string failure;
      cudaError_t left = cudaSuccess;
      const auto work = [&] {
        try {
          change(things);
        } catch (const Error& error) {
          failure = error.what();
        }
        left = cudaGetLastError();
      };
      if (is_own_thread) {
        work();
      } else {
        std::thread(work).join();
      }
      CHECK(failure == "");
      CHECK(left == cudaSuccess);
      cudaGraph_t graph{};
      CHECK(cudaStreamEndCapture(native(engine), &graph) == cudaSuccess);
      if (graph != nullptr) CHECK(cudaGraphDestroy(graph) == cudaSuccess);
      (void)cudaGetLastError();
    }
  }
}

TEST_CASE(
    "captures: a pass of Monte Carlo dropout is captured once, and replayed for each sample") {
  const Context context = require_cuda();
  const Graph net = built([](GraphBuilder& g) {
    const Value x = layers::dropout(g, "drop_a", g.input("x", {kBatch, 24}), 0.5f);
    g.output("y", layers::dropout(g, "drop_b", layers::relu(g, "act", x), 0.25f));
  });
  ModelRun run(context, net, {.num_members = 3, .batch = 2}, {.drops_out = true});
  const auto stream = static_cast<cudaStream_t>(run.stream().native());
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  run.model().advance_dropout(run.stream());
  run.model().run(run.arguments(), run.execution());
  cudaGraph_t graph{};
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  size_t num_nodes = 0;
  REQUIRE(cudaGraphGetNodes(graph, nullptr, &num_nodes) == cudaSuccess);
  CHECK(num_nodes == 1 + run.plan().steps().size());  // launches alone: nothing is uploaded
  cudaGraphExec_t executable{};
  REQUIRE(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
  const auto values_of_members = [](const ModelRun::Outputs& outputs) {
    std::vector<std::vector<double>> values;
    for (const auto& member : outputs.at("y")) values.push_back(member.values);
    return values;
  };
  run.model().seed_dropout(11, 0, run.stream());
  std::vector<std::vector<std::vector<double>>> replayed;
  for (int sample = 1; sample <= 3; ++sample) {
    run.poison();
    REQUIRE(cudaGraphLaunch(executable, stream) == cudaSuccess);
    replayed.push_back(values_of_members(run.read()));
  }
  ModelRun cpu(Context::cpu(), net, {.num_members = 3, .batch = 2}, {.drops_out = true});
  for (uint64_t sample = 1; sample <= 3; ++sample) {
    run.model().seed_dropout(11, sample, run.stream());
    cpu.model().seed_dropout(11, sample, cpu.stream());
    const auto expected = values_of_members(run.run());
    CHECK(replayed[sample - 1] == expected);
    CHECK(values_of_members(cpu.run()) == expected);
  }
  CHECK(cudaGraphExecDestroy(executable) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
}

TEST_CASE("captures: seeding waits for nothing, and may be captured, too") {
  const Context context = require_cuda();
  const Graph net = built([](GraphBuilder& g) {
    g.output("y", layers::dropout(g, "drop", g.input("x", {kBatch, 24}), 0.5f));
  });
  ModelRun run(context, net, {.num_members = 300, .batch = 1}, {.drops_out = true});
  const auto stream = static_cast<cudaStream_t>(run.stream().native());
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  run.model().seed_dropout(3, 5, run.stream());
  cudaGraph_t graph{};
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);  // a wait would have ended it
  size_t num_nodes = 0;
  REQUIRE(cudaGraphGetNodes(graph, nullptr, &num_nodes) == cudaSuccess);
  CHECK(num_nodes == 2);  // of 256 members at most
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
}

TEST_CASE("captures: members are replaced from the device without a wait, also in a graph") {
  const Context context = require_cuda();
  const Graph net = built([](GraphBuilder& g) {
    const Value x = layers::linear(g, "fc1", g.input("x", {kBatch, 24}), 8);
    g.output("y", layers::linear(g, "fc2", x, 5));
  });
  ModelRun run(context, net, {.num_members = 3, .batch = 2}, {.strategies = {{"linear", "simt"}}});
  const MemberParameters given = run.parameters_of(9), other = run.parameters_of(5);
  std::map<std::string, Tensor> tensors;
  MemberParameters on_device;
  for (const auto& [name, view] : given) {
    const Tensor& own =
        tensors.emplace(name, Tensor(context, view.dtype, view.shape)).first->second;
    on_device.emplace(name, own);
    copy(view, tensors.at(name), run.stream());
  }
  Tensor single(context, Dtype::fp32, {5});
  copy(other.at("fc2.bias"), single, run.stream());
  context.synchronize(run.stream());
  const auto stream = static_cast<cudaStream_t>(run.stream().native());
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  run.model().replace(1, on_device, run.stream());
  run.model().set(2, "fc2.bias", single.view(), run.stream());
  cudaGraph_t graph{};
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);  // a wait would have ended it
  size_t num_nodes = 0;
  REQUIRE(cudaGraphGetNodes(graph, nullptr, &num_nodes) == cudaSuccess);
  CHECK(num_nodes == given.size() + 1);
  cudaGraphExec_t executable{};
  REQUIRE(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
  const auto is_member = [&](int64_t member, const MemberParameters& expected) {
    const OwnedParameters got = run.model().get(member, run.stream());
    return std::all_of(got.begin(), got.end(), [&](const auto& own) {
      const auto& [name, tensor] = own;
      return std::memcmp(tensor.data(), expected.at(name).data,
                         static_cast<size_t>(tensor.bytes())) == 0;
    });
  };
  CHECK(is_member(1, run.parameters_of(1)));
  REQUIRE(cudaGraphLaunch(executable, stream) == cudaSuccess);
  CHECK(is_member(0, run.parameters_of(0)));
  CHECK(is_member(1, given));
  MemberParameters mixed = run.parameters_of(2);
  mixed["fc2.bias"] = other.at("fc2.bias");
  CHECK(is_member(2, mixed));
  // Read where it lies, to where it is replaced from.
  run.model().get(2, "fc2.bias", tensors.at("fc2.bias").view(), run.stream());
  run.model().replace(0, on_device, run.stream());
  mixed = given;
  mixed["fc2.bias"] = other.at("fc2.bias");
  CHECK(is_member(0, mixed));
  CHECK(cudaGraphExecDestroy(executable) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
}

TEST_CASE("captures: what would wait for a captured stream is refused, and the capture goes on") {
  const Context context = require_cuda();
  ModelRun run(context, small_model("mlp"), {.num_members = 2, .batch = 2});
  const MemberParameters on_host = run.parameters_of(9);
  const ConstTensorView bias = on_host.at("fc1.bias");
  std::vector<float> room(static_cast<size_t>(bias.num_elements()));
  const TensorView destination(room.data(), bias.dtype, bias.shape, Device{});
  Model& model = run.model();
  const auto stream = static_cast<cudaStream_t>(run.stream().native());
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  CHECK(refusal_of([&] { model.set(1, "fc1.bias", bias, run.stream()); }) ==
        "model: fc1.bias passes through the host, so that set waits: expected a stream that is not "
        "being captured");
  const std::string replaced = refusal_of([&] { model.replace(1, on_host, run.stream()); });
  CHECK(
      replaced.ends_with(" passes through the host, so that replace waits: expected a stream "
                         "that is not being captured"));
  for (const auto& call :
       {std::function<void()>([&] { (void)model.get(1, run.stream()); }),
        std::function<void()>([&] { model.get(1, "fc1.bias", destination, run.stream()); })}) {
    CHECK(refusal_of(call) == "model: get waits: expected a stream that is not being captured");
  }
  run.model().run(run.arguments(), run.execution());
  cudaGraph_t graph{};
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  size_t num_nodes = 0;
  REQUIRE(cudaGraphGetNodes(graph, nullptr, &num_nodes) == cudaSuccess);
  CHECK(num_nodes > 0);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  CHECK_NOTHROW(model.replace(1, on_host, run.stream()));
}

TEST_CASE("captures: copies to page-locked memory of the host are captured") {
  const Context context = require_cuda();
  const OwnedStream stream(context);
  const Context host = Context::cpu({.num_threads = 1, .allocator = pinned_allocator(context)});
  Tensor from(context, Dtype::uint8, {256}), to(host, Dtype::uint8, {256});
  CHECK(to.view().device == Device{});
  cudaPointerAttributes attributes{};
  REQUIRE(cudaPointerGetAttributes(&attributes, to.data()) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeHost);
  fill_bytes(to.view(), 0, Stream::cpu());
  REQUIRE(cudaStreamBeginCapture(native(stream), cudaStreamCaptureModeGlobal) == cudaSuccess);
  copy(from, to, stream.get());
  cudaGraph_t graph{};
  REQUIRE(cudaStreamEndCapture(native(stream), &graph) == cudaSuccess);
  cudaGraphExec_t executable{};
  REQUIRE(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
  for (const uint8_t byte : {uint8_t{7}, uint8_t{9}}) {
    fill_bytes(from.view(), byte, stream.get());
    REQUIRE(cudaGraphLaunch(executable, native(stream)) == cudaSuccess);
    context.synchronize(stream.get());
    CHECK(static_cast<const uint8_t*>(to.data())[255] == byte);
  }
  CHECK(cudaGraphExecDestroy(executable) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  CHECK(pinned_allocator(Context::cpu()) == nullptr);
  const std::string full = message_of(ErrorCode::out_of_memory, [&] {
    (void)pinned_allocator(context)->allocate(int64_t{1} << 60);  // no system locks as much
  });
  CHECK(full.ends_with("no room for 1152921504606846976 bytes of page-locked memory of the host"));
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("captures: a thread minds them as before once a call of the library is over") {
  const Context context = require_cuda();
  const OwnedStream stream(context);
  for (const cudaStreamCaptureMode own :
       {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal}) {
    cudaStreamCaptureMode mode = own;
    REQUIRE(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
    Tensor(context, Dtype::fp32, {64}) = Tensor();
    context.synchronize(stream.get());
    REQUIRE(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
    CHECK(mode == own);
  }
}

TEST_CASE("captures: what cannot be given back leaves no error, and the caller's own stays") {
  require_simulation();
  {
    const Context context = Context::cuda(0);
    Things things(context);
    Simulation::reset_device();  // takes it all away
    things.tensor = Tensor();
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    things.stream.reset();
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    things.replay.reset();
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    things.run.reset();
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    const Tensor another(context, Dtype::fp32, {64});
    REQUIRE(cudaSetDevice(1 << 20) != cudaSuccess);
  }
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  Simulation::clear_findings();
}

}  // namespace wide::test
