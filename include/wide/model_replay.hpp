// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// model_replay: a model's run as one launch.
#pragma once

#include <initializer_list>
#include <memory>

#include "wide/model.hpp"

namespace wide {

struct ReplayOptions {
  /// Every run begins with Model::advance_dropout, in the same launch: each is another pass of
  /// Monte Carlo dropout, the first that of the sequence after the seeded one. Only for plans with
  /// drops_out.
  bool advances_dropout = false;
};

/// A model's run on fixed operands, captured once: run() is a single launch of a CUDA graph. On the
/// CPU it is Model::run with these operands.
class ModelReplay {
 public:
  /// Captures on a stream of its own. The operands' memory and `execution`'s workspace and handles
  /// must outlive the replay, which keeps the model. On CUDA the caller makes sure that no run is
  /// still queued when the replay dies. Throws invalid_argument for a context of another device
  /// than the model's, and where nothing is dropped that the options would advance.
  ModelReplay(const Context& context, const Model& model, const ModelArguments& arguments,
              const Execution& execution, const ReplayOptions& options = {});
  /// The same, of operands spelled out: ModelReplay(context, model, {x}, {y}, {stream, workspace}).
  ModelReplay(const Context& context, const Model& model,
              std::initializer_list<ConstTensorView> inputs,
              std::initializer_list<TensorView> outputs, const Execution& execution,
              const ReplayOptions& options = {})
      : ModelReplay(context, model,
                    {{inputs.begin(), inputs.size()}, {outputs.begin(), outputs.size()}}, execution,
                    options) {}
  ~ModelReplay();
  ModelReplay(ModelReplay&&) noexcept;
  ModelReplay& operator=(ModelReplay&&) = delete;

  /// One launch; never allocates or synchronizes. Several threads may call it: runs of one replay
  /// take turns, whatever their streams, and write the same outputs, which hold the last results.
  /// Threads that each need results of their own have a replay each.
  void run(Stream stream) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wide
