// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// ModelReplay: a captured run, or on the CPU the run itself.
#include <mutex>
#include <vector>

#include "host/core/check.hpp"
#include "host/model/model_state.hpp"
#include "host/model/replay.hpp"
#include "host/model/run_checks.hpp"
#include "wide/model_replay.hpp"

namespace wide {

struct ModelReplay::State {
  Model model;  ///< shares it: the caller's may move or be destroyed
  std::vector<ConstTensorView> inputs;
  std::vector<TensorView> outputs;
  Execution execution;
  ReplayOptions options;
  std::unique_ptr<Replay> captured{};  ///< null on the CPU
  /// Held by a run: a second one would use the same workspace on the CPU, and a CUDA graph is
  /// launched by one thread at a time.
  std::mutex turn{};

  void enqueue(Stream stream) {
    if (options.advances_dropout) model.advance_dropout(stream);
    Execution on_stream = execution;
    on_stream.stream = stream;
    model.run({inputs, outputs}, on_stream);
  }
};

ModelReplay::ModelReplay(const Context& context, const Model& model,
                         const ModelArguments& arguments, const Execution& execution,
                         const ReplayOptions& options)
    : state_(new State{model,
                       {arguments.inputs.begin(), arguments.inputs.end()},
                       {arguments.outputs.begin(), arguments.outputs.end()},
                       execution,
                       options}) {
  model.check(arguments, execution);
  WIDE_REQUIRE(
      !options.advances_dropout || !model.plan().state().dropouts.empty(),
      "model replay: advances_dropout: nothing is dropped, expected a plan with drops_out");
  const Device device = arguments.outputs.front().device;
  WIDE_REQUIRE(context.device() == device,
               "model replay: the context is of " + to_string(context.device()) +
                   ", expected the model's device = " + to_string(device));
  if (context.device().type == DeviceType::cpu) return;
  state_->captured = capture_replay(context, [this](Stream stream) { state_->enqueue(stream); });
}

ModelReplay::~ModelReplay() = default;
ModelReplay::ModelReplay(ModelReplay&&) noexcept = default;

void ModelReplay::run(Stream stream) const {
  const std::lock_guard turn(state_->turn);
  if (state_->captured == nullptr) return state_->enqueue(stream);
  require_stream(state_->outputs.front().device, stream);
  state_->captured->launch(stream);
}

}  // namespace wide
