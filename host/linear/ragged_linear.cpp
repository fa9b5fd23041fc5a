// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The plan of ragged_linear: lays the problem out, fixes the strategy and uploads the table when it
// is made; a call checks its arguments and starts the strategy, nothing else.
#include "wide/ragged_linear.hpp"

#include <cstring>
#include <string>
#include <vector>

#include "host/core/check.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/plan_state.hpp"
#include "host/core/text.hpp"
#include "host/core/tuned_choice.hpp"
#include "host/linear/linear_run.hpp"
#include "host/linear/ragged_linear_problem.hpp"
#include "host/linear/ragged_linear_run.hpp"
#include "host/linear/ragged_linear_strategy.hpp"
#include "wide/pack.hpp"

namespace wide {

template <>
struct PlanState<RaggedLinearProblem> : PlanFacts<RaggedLinearProblem, RaggedLinearChoice> {
  PlanState(const Context& context_, const RaggedLinearProblem& laid_out,
            RaggedLinearChoice choice_)
      : PlanFacts("ragged_linear", context_, laid_out, std::move(choice_)),
        extents(extents_of_laid_out(problem)) {
    workspace_bytes = ragged_linear_workspace_bytes(choice.strategy, problem, context.info());
    vendor_calls.cublas = workspace_bytes > 0;
    for (size_t i = 0; i < problem.members.size(); ++i) {
      members.push_back(ragged_member_problem(problem, i));
      workspaces.push_back(
          linear_workspace(LinearStrategy::sequential, members.back(), context.info()));
    }
    using enum RaggedLinearStrategy;
    if (choice.strategy == wide) cpu_blocks = ragged_cpu_blocks(problem);
    if (is_of_kernels(choice.strategy)) upload_table();
    if (choice.strategy == cublas_grouped) {
      grouped = make_ragged_grouped_cublas(context.info(), problem);
      if (grouped->needs_alignment())
        choice.explain += "; sequential where storages are not aligned to 16 bytes";
    }
  }

  /// Whether a kernel of ours reads the table.
  static bool is_of_kernels(RaggedLinearStrategy strategy) {
    using enum RaggedLinearStrategy;
    return strategy == simt || strategy == tensor_core || strategy == cublas_grouped;
  }
  void upload_table();
  void run_member_after_member(const RaggedLinearArguments& arguments,
                               const Execution& execution) const;

  RaggedLinearExtents extents;
  std::vector<LinearProblem> members;
  std::vector<LinearWorkspace> workspaces;  ///< of each by `sequential`
  RaggedCpuBlocks cpu_blocks;               ///< of strategy wide
  Tensor table;                             ///< of the kernels, on their device
  kernels::RaggedLinearParams params{};
  std::unique_ptr<const RaggedGroupedCublas> grouped;  ///< of strategy cublas_grouped
};
template class PrimitivePlan<RaggedLinearProblem>;

void RaggedLinearPlan::State::upload_table() {
  const RaggedLinearTable content = make_ragged_linear_table(choice.strategy, problem);
  if (content.tiles.empty()) return;
  // Tiles first: they are read 16 bytes at a time.
  const size_t tiles = content.tiles.size() * sizeof(content.tiles[0]);
  const size_t entries = content.members.size() * sizeof(content.members[0]);
  std::vector<std::byte> bytes(tiles + entries);
  std::memcpy(bytes.data(), content.tiles.data(), tiles);
  std::memcpy(bytes.data() + tiles, content.members.data(), entries);
  const Shape shape{static_cast<int64_t>(bytes.size())};
  table = Tensor(context, Dtype::uint8, shape);
  const OwnedStream stream(context);
  copy(ConstTensorView(bytes.data(), Dtype::uint8, shape, Device{}), table, stream.get());
  context.synchronize(stream.get());
  const auto* first = static_cast<const std::byte*>(table.data());
  params.tiles = reinterpret_cast<const kernels::RaggedTile*>(first);
  params.members = reinterpret_cast<const kernels::RaggedMember*>(first + tiles);
  params.num_tiles = static_cast<int64_t>(content.tiles.size());
}

void RaggedLinearPlan::State::run_member_after_member(const RaggedLinearArguments& arguments,
                                                      const Execution& execution) const {
  const bool on_cpu = context.device().type == DeviceType::cpu;
  for (size_t i = 0; i < members.size(); ++i) {
    if (is_empty(problem.members[i])) continue;
    const LinearArguments one = ragged_member_arguments(problem, arguments, i);
    if (on_cpu) {
      run_linear_cpu(context, members[i], one, CpuOrder::member_after_member);
    } else {
      run_linear_cublas(context.info(), LinearStrategy::sequential, workspaces[i], members[i], one,
                        execution);
    }
  }
}

namespace {

void require_count(const char* what, size_t got, size_t expected) {
  WIDE_REQUIRE(got == expected, "ragged_linear: " + std::string(what) + " has " +
                                    counted(got, "entry", "entries") +
                                    ", expected one per member = " + std::to_string(expected));
}

/// The storages' side of prepare_weights and restore_weights.
void check_packed(const RaggedLinearProblem& problem, const RaggedLinearExtents& extents,
                  const ConstTensorView& weight, const ConstTensorView& bias) {
  check_ragged_storage("weight", weight, problem.dtype, extents.weight);
  WIDE_REQUIRE(bias.is_absent() != problem.epilogue.has_bias,
               std::string("ragged_linear: bias is ") +
                   (problem.epilogue.has_bias ? "absent, expected a storage"
                                              : "present, expected none: the problem has none"));
  if (problem.epilogue.has_bias) check_ragged_storage("bias", bias, problem.dtype, extents.bias);
}

/// A member's parameters as packed tensors of one member: [1, out, in] and [1, out].
template <class View>
View weight_of(const View& storage, const RaggedLinearMember& member) {
  View view = ragged_rows(storage, member.weight, member.out_features, member.in_features);
  view.shape = Shape{1, member.out_features, member.in_features};
  view.strides = Strides{0, member.weight.row, 1};
  return view;
}
template <class View>
View bias_of(const View& storage, const RaggedLinearMember& member) {
  return ragged_rows(storage, {member.bias_offset, 0}, 1, member.out_features);
}

}  // namespace

RaggedLinearPlan make_ragged_linear_plan(const Context& context, const RaggedLinearProblem& problem,
                                         const PlanOptions& options) {
  const RaggedLinearProblem laid_out = lay_out_ragged_linear(problem);
  require_no_policy("ragged_linear", options.policy);
  RaggedLinearChoice choice = choose_ragged_linear_strategy(
      laid_out, context.info(), verified_strategies(), options.strategy,
      tuning_of(options, "ragged_linear", laid_out));
  return RaggedLinearPlan(
      std::make_shared<const RaggedLinearPlan::State>(context, laid_out, std::move(choice)));
}

int64_t RaggedLinearPlan::table_bytes() const {
  return state_->table.bytes();
}

void RaggedLinearPlan::prepare_weights(std::span<const LinearMember> members,
                                       const TensorView& weight, const TensorView& bias,
                                       Stream stream) const {
  const RaggedLinearProblem& problem = state_->problem;
  require_count("members", members.size(), problem.members.size());
  check_packed(problem, state_->extents, weight, bias);
  for (size_t i = 0; i < members.size(); ++i) {
    WIDE_REQUIRE(
        members[i].bias.is_absent() != problem.epilogue.has_bias,
        "ragged_linear: bias of member " + std::to_string(i) + " is " +
            (problem.epilogue.has_bias ? "absent, expected [out]" : "present, expected none"));
  }
  const NvtxRange range("wide::ragged_linear::prepare_weights");
  for (size_t i = 0; i < members.size(); ++i) {
    const RaggedLinearMember& member = problem.members[i];
    pack(operands::linear_weight, {&members[i].weight, 1}, weight_of(weight, member), stream);
    if (!problem.epilogue.has_bias) continue;
    pack(operands::linear_bias, {&members[i].bias, 1}, bias_of(bias, member), stream);
  }
}

void RaggedLinearPlan::restore_weights(const ConstTensorView& weight, const ConstTensorView& bias,
                                       std::span<const TensorView> member_weights,
                                       std::span<const TensorView> member_biases,
                                       Stream stream) const {
  const RaggedLinearProblem& problem = state_->problem;
  check_packed(problem, state_->extents, weight, bias);
  require_count("member_weights", member_weights.size(), problem.members.size());
  if (problem.epilogue.has_bias) {
    require_count("member_biases", member_biases.size(), problem.members.size());
  }
  const NvtxRange range("wide::ragged_linear::restore_weights");
  for (size_t i = 0; i < member_weights.size(); ++i) {
    const RaggedLinearMember& member = problem.members[i];
    unpack(operands::linear_weight, weight_of(weight, member), member_weights.subspan(i, 1),
           stream);
    if (!problem.epilogue.has_bias) continue;
    unpack(operands::linear_bias, bias_of(bias, member), member_biases.subspan(i, 1), stream);
  }
}

void RaggedLinearPlan::run(const RaggedLinearArguments& arguments,
                           const Execution& execution) const {
  const State& state = *state_;
  check_ragged_linear_arguments(state.problem, state.extents, arguments, state.context.device());
  if (state.extents.y == 0) return;
  require_workspace("ragged_linear", execution, state.workspace_bytes);

  const NvtxRange range(state.range.c_str());
  switch (state.choice.strategy) {
    case RaggedLinearStrategy::sequential:
      return state.run_member_after_member(arguments, execution);
    case RaggedLinearStrategy::cublas_grouped:
      if (!state.grouped->takes(arguments)) {
        return state.run_member_after_member(arguments, execution);
      }
      return state.grouped->run(state.params, arguments, execution);
    case RaggedLinearStrategy::wide:
      return run_ragged_linear_cpu(state.context, state.problem, state.members, state.cpu_blocks,
                                   arguments);
    case RaggedLinearStrategy::simt:
    case RaggedLinearStrategy::tensor_core:
      return run_ragged_linear_kernel(state.context.info(), state.choice.strategy, state.problem,
                                      state.params, arguments, execution.stream);
  }
}

}  // namespace wide
