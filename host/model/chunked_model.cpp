// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A batch in pieces: rows of packed operands are contiguous, so a piece is a view.
#include <algorithm>
#include <array>

#include "host/core/check.hpp"
#include "host/core/text.hpp"
#include "host/model/members.hpp"
#include "host/model/model_state.hpp"
#include "host/model/run_checks.hpp"
#include "wide/chunked_model.hpp"

namespace wide {

namespace {

constexpr size_t kMaxOperands = 64;  // of a chunked model; a run allocates nothing

void require_in_front(const char* what, std::span<const ModelOperand> operands) {
  WIDE_REQUIRE(operands.size() <= kMaxOperands,
               "model: " + std::to_string(operands.size()) + " " + what +
                   "s, expected at most 64 of a model that runs in chunks");
  for (const ModelOperand& operand : operands) {
    if (operand.is_stacked) {
      throw_unsupported("model: " + std::string(what) + " " + operand.name +
                        " has its members in front of the batch, so that rows of it are not "
                        "contiguous: it cannot run in chunks");
    }
  }
}

template <class View>
void check_rows(const char* what, const ModelOperand& operand, const View& view, int64_t batch) {
  Shape expected = operand.shape;
  expected[0] = batch;
  WIDE_REQUIRE(view.shape == expected, "model: " + std::string(what) + " " + operand.name + " is " +
                                           to_string(view.shape) + ", expected " +
                                           to_string(expected));
}

}  // namespace

ChunkedModel::ChunkedModel(const Model& model, int64_t batch) : model_(model), batch_(batch) {
  const ModelPlan& plan = model.plan();
  WIDE_REQUIRE(batch >= 1, "model: batch is " + std::to_string(batch) + ", expected at least 1");
  if (!plan.problem().batches.empty()) {
    throw_unsupported(
        "model: members have rows of their own, expected one batch for all: it cannot run in "
        "chunks");
  }
  if (!plan.state().dropouts.empty()) {
    throw_unsupported(
        "model: drops_out is set, expected none of a model that runs in chunks: masks go by the "
        "row of a run, so that every chunk would have the same");
  }
  require_in_front("input", plan.inputs());
  require_in_front("output", plan.outputs());
  const int64_t rest = batch % plan.problem().batch;
  if (rest > 0) rest_.push_back(model.with_fewer_rows(rest));
}

int64_t ChunkedModel::workspace_bytes() const {
  int64_t bytes = batch_ >= model_.plan().problem().batch ? model_.plan().workspace_bytes() : 0;
  for (const Model& rest : rest_) bytes = std::max(bytes, rest.plan().workspace_bytes());
  return bytes;
}

void ChunkedModel::run(const ModelArguments& arguments, const Execution& execution) const {
  const ModelPlan& plan = model_.plan();
  const size_t num_inputs = plan.inputs().size(), num_outputs = plan.outputs().size();
  WIDE_REQUIRE(arguments.inputs.size() == num_inputs && arguments.outputs.size() == num_outputs,
               "model: " + counted(arguments.inputs.size(), "input") + " and " +
                   counted(arguments.outputs.size(), "output") + ", expected " +
                   std::to_string(num_inputs) + " and " + std::to_string(num_outputs));
  for (size_t i = 0; i < num_inputs; ++i) {
    check_rows("input", plan.inputs()[i], arguments.inputs[i], batch_);
  }
  for (size_t i = 0; i < num_outputs; ++i) {
    check_rows("output", plan.outputs()[i], arguments.outputs[i], batch_);
  }
  require_apart(plan.inputs(), plan.outputs(), arguments, execution, workspace_bytes());
  const auto lock = model_.state_->lock.for_run();  // of all pieces: rest_ has the same members
  std::array<ConstTensorView, kMaxOperands> inputs;
  std::array<TensorView, kMaxOperands> outputs;
  const auto piece = [&](int64_t first, int64_t rows) -> ModelArguments {
    for (size_t i = 0; i < num_inputs; ++i) {
      inputs[i] = arguments.inputs[i].narrow(0, first, rows);
    }
    for (size_t i = 0; i < num_outputs; ++i) {
      outputs[i] = arguments.outputs[i].narrow(0, first, rows);
    }
    return {std::span(inputs.data(), num_inputs), std::span(outputs.data(), num_outputs)};
  };
  const int64_t usual = plan.problem().batch, whole = batch_ / usual * usual;
  // Checked before the first piece is enqueued: it may need more workspace, or other handles.
  for (const Model& rest : rest_) rest.check(piece(whole, batch_ - whole), execution);
  for (int64_t first = 0; first < whole; first += usual)
    model_.enqueue(piece(first, usual), execution);
  for (const Model& rest : rest_) rest.enqueue(piece(whole, batch_ - whole), execution);
}

}  // namespace wide
