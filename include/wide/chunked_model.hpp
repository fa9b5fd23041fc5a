// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// chunked_model: a model on more rows than its plan has.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "wide/model.hpp"

namespace wide {

/// Runs a model on more rows than its plan's batch, some at a time: memory is bounded by the
/// plan's. Inputs and outputs must have the batch in front: no operand of the plan is_stacked.
class ChunkedModel {
 public:
  /// `batch` rows in all. Throws unsupported where an operand is stacked, for a ragged model, and
  /// where dropout drops: its numbers depend on the row within a run, so that every piece would
  /// have the same mask. For Monte Carlo on more rows take with_batch(), or runs with a `sequence`
  /// each.
  ChunkedModel(const Model& model, int64_t batch);
  /// For all rows.
  int64_t workspace_bytes() const;
  /// Operands with the extent `batch` in front, else as the plan's. As Model::run.
  void run(const ModelArguments& arguments, const Execution& execution) const;
  /// The same, of operands spelled out: run({x}, {y}, {stream, workspace}).
  void run(std::initializer_list<ConstTensorView> inputs, std::initializer_list<TensorView> outputs,
           const Execution& execution) const {
    run({{inputs.begin(), inputs.size()}, {outputs.begin(), outputs.size()}}, execution);
  }

 private:
  Model model_;
  std::vector<Model> rest_;  ///< none, or one: for the rows that do not fill a batch
  int64_t batch_;
};

}  // namespace wide
