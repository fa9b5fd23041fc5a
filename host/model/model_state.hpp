// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a ModelPlan holds.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/model/lowering.hpp"
#include "wide/model.hpp"
#include "wide/tuning.hpp"

namespace wide {

struct ModelPlan::State {
  Context context;
  Graph source;  ///< as it was given: members have its parameters
  Graph graph;   ///< after the passes
  ModelProblem problem;
  int64_t stored_members;  ///< that weights_bytes is for: at least the problem's
  ModelOptions options;    ///< its tuning is the one below
  /// A copy, as plans for other batches are made when the caller's may no longer exist.
  std::shared_ptr<const TuningCache> tuning{};
  ModelMemory memory{};
  std::vector<ModelOperand> inputs{}, outputs{};
  std::vector<ModelParameter> parameters{};
  std::vector<ModelStep> steps{};
  std::vector<RunStep> run{};
  std::vector<Storage> storages{};
  std::vector<ParameterSlot> slots{};
  std::vector<DropoutSlots> dropouts{};
  int32_t mask_storage = -1, seed_storage = -1;
  std::vector<std::string> notes{};  ///< of the passes, then of lowering
  size_t num_pass_notes = 0;
  /// "model: fc": the first step that calls the library; empty where none does.
  std::string cublas_caller{}, cudnn_caller{};
  /// For tuning: of each step, how it is planned and the storages of its operands; of each value,
  /// its place.
  std::vector<StepPlanner> planners{};
  std::vector<std::vector<int32_t>> step_storages{};
  std::vector<Place> places{};
};

/// Whether a slot has one content, which members must agree on.
inline bool is_one_for_all(const ModelPlan::State& s, const ParameterSlot& slot) {
  return slot.stored_members == 1 && s.stored_members > 1;
}

/// A plan whose weights have room for `stored_members`, at least as many as the problem has.
std::shared_ptr<const ModelPlan::State> plan_model(const Context& context, const Graph& graph,
                                                   const ModelProblem& problem,
                                                   const ModelOptions& options,
                                                   int64_t stored_members);

/// A plan of another one's first members, or of fewer rows, with the same graph and weights:
/// operands lie as that one's.
std::shared_ptr<const ModelPlan::State> plan_same_graph(const ModelPlan::State& plan,
                                                        const ModelProblem& problem);

}  // namespace wide
