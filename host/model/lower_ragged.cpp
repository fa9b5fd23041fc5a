// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "host/core/check.hpp"
#include "host/core/text.hpp"
#include "host/model/batch.hpp"
#include "host/model/move.hpp"
#include "host/model/ragged.hpp"
#include "host/model/shape_text.hpp"
#include "wide/ragged_linear.hpp"

namespace wide {

namespace {

/// Not with a shared residual, which does not lie as y does, nor with quantised weights; and named
/// strategies of `linear` are honoured.
bool is_ragged_linear(const Lowering& l, const Node& node) {
  const auto* op = std::get_if<LinearOp>(&node.operation);
  if (op == nullptr || op->weight_format != WeightFormat::packed) return false;
  const auto& named = l.options().strategies;
  if (named.contains("linear") && !named.contains("ragged_linear")) return false;
  const Value residual = node.operand("residual");
  return residual.is_absent() || !l.is_shared(residual);
}

/// Elements from row to row of [R, 1, D]; irrelevant for at most one row.
int64_t row_stride(const PlacedView& rows) {
  return rows.view.shape[0] > 1 ? rows.view.strides[0] : rows.view.shape[2];
}

RaggedLinearProblem ragged_problem(const Lowering& l, const Node& node, const LinearOp& op,
                                   int64_t x_row) {
  const Value x = node.operand("x");
  const Shape &from = l.graph().type(x).shape, &to = l.graph().type(node.outputs[0]).shape;
  const int64_t in = from.back(), out = to.back();
  int64_t positions = 1;  // of a sample
  for (int axis = 1; axis + 1 < to.rank(); ++axis) positions *= to[axis];
  RaggedLinearProblem problem;
  for (int64_t i = 0; i < l.num_members(); ++i) {
    const int64_t first = l.first_row(i) * positions, x_first = l.is_shared(x) ? 0 : first;
    problem.members.push_back({.batch = l.num_rows(i) * positions,
                               .in_features = in,
                               .out_features = out,
                               .x = {x_first * x_row, x_row},
                               .weight = {i * out * in, in},
                               .y = {first * out, out},
                               .bias_offset = i * out});
  }
  problem.dtype = l.graph().type(x).dtype;
  problem.allow_tf32 = l.options().allows_tf32;
  problem.epilogue.has_bias = !node.operand("bias").is_absent();
  problem.epilogue.activation = op.activation;
  problem.epilogue.residual = op.residual;
  return problem;
}

void lower_ragged_linear(Lowering& l, const Node& node, const LinearOp& op) {
  PlacedView x = l.rows(node, "x"), weight = l.parameter(node, "weight"),
             bias = l.parameter(node, "bias"), residual = l.rows(node, "residual"),
             y = l.rows(node, node.outputs[0]);
  if (residual.storage >= 0 && row_stride(residual) != row_stride(y)) {
    throw MoveNeeded(node.name, node.operand("residual"),
                     "model: " + node.name + " (linear): rows of residual are " +
                         counted(row_stride(residual), "element") + " apart, expected " +
                         std::to_string(row_stride(y)) + " as those of y: this would move data");
  }
  const RaggedLinearPlan plan =
      make_ragged_linear_plan(l.context(), ragged_problem(l, node, op, row_stride(x)),
                              l.plan_options(node.name, "ragged_linear"));
  const RaggedLinearExtents extents = ragged_linear_extents(plan.problem());
  // The storages that they are of, from their first elements on.
  x = x.as({extents.x}), weight = weight.as({extents.weight}), y = y.as({extents.y});
  if (bias.storage >= 0) bias = bias.as({extents.bias});
  if (residual.storage >= 0) residual = residual.as({extents.residual});
  l.table_bytes += plan.table_bytes();
  const auto arguments = [=](const Bases& at) {
    return RaggedLinearArguments{.x = at.at(x),
                                 .weight = at.at(weight),
                                 .bias = at.at(bias),
                                 .y = at.at(y),
                                 .residual = at.at(residual)};
  };
  l.add_planned(node.name, "ragged_linear", plan, arguments);
}

}  // namespace

std::vector<int64_t> first_rows(const ModelProblem& problem) {
  if (problem.batches.empty()) return {};
  std::vector<int64_t> first{0};
  for (const int64_t rows : problem.batches) first.push_back(first.back() + rows);
  return first;
}

bool treats_rows_alike(const Lowering& l, const Node& node) {
  const bool drops = std::holds_alternative<DropoutOp>(node.operation) && l.options().drops_out;
  return !drops && std::all_of(node.operands.begin(), node.operands.end(), [&](const Operand& o) {
    // A shared value of a ragged model has rows for one member only.
    return is_batched(l.graph(), o.value) && !(l.is_ragged() && l.is_shared(o.value));
  });
}

void lower_selected(Lowering& l, const Node& node, int64_t member, int64_t num_members) {
  const size_t first = l.steps.size();
  l.select(member);
  std::visit([&](const auto& op) { lower(l, node, op); }, node.operation);
  l.select(-1);
  for (size_t i = first; i < l.steps.size(); ++i) {
    l.steps[i].info.member = member;
    l.steps[i].info.num_members = num_members;
  }
}

void lower_ragged(Lowering& l, const Node& node) {
  const Value y = node.outputs[0];
  if (!is_batched(l.graph(), y)) return;  // computed when members are loaded
  if (std::holds_alternative<EnsembleOp>(node.operation)) {
    throw_unsupported(node_text(l.graph(), node) +
                      "members have rows of their own, expected one batch for all: their rows "
                      "are not those of the same samples");
  }
  if (l.is_shared(y)) return lower_selected(l, node, -1, 1);
  if (treats_rows_alike(l, node)) return lower_selected(l, node, -1, l.num_members());
  if (is_ragged_linear(l, node)) {
    return lower_ragged_linear(l, node, std::get<LinearOp>(node.operation));
  }
  for (int64_t i = 0; i < l.num_members(); ++i) {
    if (l.num_rows(i) > 0) lower_selected(l, node, i, 1);
  }
}

}  // namespace wide
