// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// recurrent's verbs. x's products of all steps are one linear; the rest is one launch, or for every
// step a linear of the previous step's state, and the cells.
#include "wide/recurrent.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "host/core/check.hpp"
#include "host/core/member_fields.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/plan_state.hpp"
#include "host/core/pointer.hpp"
#include "host/core/rows.hpp"
#include "host/core/tuned_choice.hpp"
#include "host/core/workspace.hpp"
#include "host/pack/member_copy.hpp"
#include "host/recurrent/recurrent_problem.hpp"
#include "host/recurrent/recurrent_run.hpp"
#include "host/recurrent/recurrent_strategy.hpp"
#include "wide/pack.hpp"

namespace wide {

namespace {

/// Offsets in the workspace, in bytes; unneeded parts have none.
struct Places {
  int64_t input_gates = 0;   ///< u of all steps
  int64_t hidden_gates = 0;  ///< v of one
  int64_t zeros = 0;         ///< h_0 where sequences begin with zeros
  int64_t cells = 0;         ///< c, fp32
  int64_t product = 0;       ///< linear's own
};

/// `count` members from `first` on of parameters [N, ..]; absent where they are.
ConstTensorView members_of(const ConstTensorView& parameters, int64_t first, int64_t count) {
  return parameters.is_absent() ? parameters : parameters.narrow(0, first, count);
}

template <class View>
void require_parameters(const RecurrentProblem& p, const View& input_weight,
                        const View& hidden_weight, const View& input_bias,
                        const View& hidden_bias) {
  const int64_t outputs = recurrent_gates(p.cell) * p.hidden;
  require_shape(kRecurrentName, "input_weight", input_weight,
                "[num_members, gates * hidden, in_features]",
                {p.num_members, outputs, p.in_features});
  require_shape(kRecurrentName, "hidden_weight", hidden_weight,
                "[num_members, gates * hidden, hidden]", {p.num_members, outputs, p.hidden});
  const auto require_bias = [&](const char* name, const View& bias) {
    if (p.has_bias) {
      return require_shape(kRecurrentName, name, bias, "[num_members, gates * hidden]",
                           {p.num_members, outputs});
    }
    WIDE_REQUIRE(bias.is_absent(), "recurrent: " + std::string(name) + " is " +
                                       to_string(bias.shape) +
                                       ", expected none: the plan's problem has none");
  };
  require_bias("input_bias", input_bias);
  require_bias("hidden_bias", hidden_bias);
}

/// f(operand, a member's field, packed) for the parameters that the problem has.
template <class View, class Packed, class F>
void for_each_parameter(const RecurrentProblem& p,
                        std::span<const BasicRecurrentMember<View>> members,
                        const Packed& input_weight, const Packed& hidden_weight,
                        const Packed& input_bias, const Packed& hidden_bias, const F& f) {
  require_entries(kRecurrentName, "members", members.size(), p.num_members);
  using Member = BasicRecurrentMember<View>;
  const auto each = [&](const PackedOperand& operand, View Member::*field, const Packed& packed) {
    f(operand, fields_of(members, field), packed);
  };
  each(operands::recurrent_weight, &Member::input_weight, input_weight);
  each(operands::recurrent_weight, &Member::hidden_weight, hidden_weight);
  if (!p.has_bias) return;
  each(operands::recurrent_bias, &Member::input_bias, input_bias);
  each(operands::recurrent_bias, &Member::hidden_bias, hidden_bias);
}

}  // namespace

template <>
struct PlanState<RecurrentProblem> : PlanFacts<RecurrentProblem, RecurrentChoice> {
  int64_t members_at_once = 1;
  std::optional<LinearPlan> input{};
  /// For the first step's hidden states, and for y's; none where fused.
  std::optional<LinearPlan> first{}, step{};
  Places places{};

  bool is_fused() const { return choice.strategy == RecurrentStrategy::fused; }
  void place_workspace();
  void run(const RecurrentArguments& a, const Execution& execution, int64_t first_member) const;
  void multiply(const LinearPlan& plan, const ConstTensorView& x, const ConstTensorView& weight,
                const ConstTensorView& bias, int64_t place, int64_t first_member,
                const Execution& execution) const;
  void run_steps(const RecurrentArguments& a, const Execution& execution,
                 int64_t first_member) const;
  void run_no_steps(const RecurrentArguments& a, Stream stream) const;
  TensorView y_at(const RecurrentArguments& a, int64_t step, int64_t first_member) const;
  ConstTensorView first_hidden(const RecurrentArguments& a, const Execution& execution,
                               int64_t first_member) const;
};
template class PrimitivePlan<RecurrentProblem>;

void RecurrentPlan::State::place_workspace() {
  const RecurrentProblem& p = problem;
  const int64_t element = dtype_bytes(p.dtype), gates = recurrent_gates(p.cell) * p.hidden;
  const auto take = [&](int64_t bytes) {
    const int64_t at = workspace_bytes;
    workspace_bytes = behind_part(at, bytes);
    return at;
  };
  places.input_gates = take(checked_bytes({p.batch, p.steps, members_at_once, gates}, element));
  int64_t of_product = input->workspace_bytes();
  if (!is_fused()) {
    const bool has_cell = p.cell == RecurrentCell::lstm;
    places.hidden_gates = take(checked_bytes({p.batch, members_at_once, gates}, element));
    places.zeros =
        take(p.has_first_state ? 0 : checked_bytes({p.batch, members_at_once, p.hidden}, element));
    places.cells = take(has_cell ? checked_bytes({p.batch, members_at_once, p.hidden}, 4) : 0);
    of_product = std::max({of_product, first->workspace_bytes(), step->workspace_bytes()});
  }
  places.product = take(of_product);
}

RecurrentPlan make_recurrent_plan(const Context& context, const RecurrentProblem& problem,
                                  const PlanOptions& options) {
  const RecurrentProblem full = complete_recurrent_problem(problem);
  require_no_policy(kRecurrentName, options.policy);
  const DeviceInfo& device = context.info();
  RecurrentPlan::State s{
      {kRecurrentName, context, full,
       choose_recurrent_strategy(full, device, options.strategy, verified_strategies(),
                                 tuning_of(options, kRecurrentName, full))}};
  const RecurrentStrategy strategy = s.choice.strategy;
  s.members_at_once = strategy == RecurrentStrategy::sequential ? 1 : full.num_members;
  std::vector<std::string> names;
  const auto plan_of = [&](const LinearProblem& product) {
    const std::string name = recurrent_product_strategy(strategy, product, device);
    names.push_back(name);
    LinearPlan plan = make_linear_plan(context, product, {.strategy = name});
    if (!is_empty(full)) s.vendor_calls |= plan.vendor_calls();
    return plan;
  };
  s.input = plan_of(recurrent_input_product(full, s.members_at_once));
  if (!s.is_fused()) {
    const auto hidden_product = [&](const RowStrides& hidden) {
      return recurrent_hidden_product(full, s.members_at_once, hidden);
    };
    s.first = plan_of(hidden_product(recurrent_first_strides(full, s.members_at_once)));
    s.step = plan_of(hidden_product(recurrent_step_strides(full)));
  }
  s.choice.explain += "; linear by " + part_strategies_text(names);
  if (!is_empty(full)) s.place_workspace();
  return RecurrentPlan(std::make_shared<const RecurrentPlan::State>(std::move(s)));
}

void RecurrentPlan::prepare_weights(std::span<const RecurrentMember> members,
                                    const TensorView& input_weight, const TensorView& hidden_weight,
                                    const TensorView& input_bias, const TensorView& hidden_bias,
                                    Stream stream) const {
  require_parameters<ConstTensorView>(state_->problem, input_weight, hidden_weight, input_bias,
                                      hidden_bias);
  const NvtxRange range("wide::recurrent::prepare_weights");
  for_each_parameter<ConstTensorView>(
      state_->problem, members, input_weight, hidden_weight, input_bias, hidden_bias,
      [&](const PackedOperand& operand, const std::vector<ConstTensorView>& own,
          const TensorView& packed) { pack(operand, own, packed, stream); });
}

void RecurrentPlan::restore_weights(const ConstTensorView& input_weight,
                                    const ConstTensorView& hidden_weight,
                                    const ConstTensorView& input_bias,
                                    const ConstTensorView& hidden_bias,
                                    std::span<const BasicRecurrentMember<TensorView>> members,
                                    Stream stream) const {
  require_parameters(state_->problem, input_weight, hidden_weight, input_bias, hidden_bias);
  const NvtxRange range("wide::recurrent::restore_weights");
  for_each_parameter<TensorView>(
      state_->problem, members, input_weight, hidden_weight, input_bias, hidden_bias,
      [&](const PackedOperand& operand, const std::vector<TensorView>& own,
          const ConstTensorView& packed) { unpack(operand, packed, own, stream); });
}

/// Computes the sums of a product, packed at `place` of the workspace.
void RecurrentPlan::State::multiply(const LinearPlan& plan, const ConstTensorView& x,
                                    const ConstTensorView& weight, const ConstTensorView& bias,
                                    int64_t place, int64_t first_member,
                                    const Execution& execution) const {
  auto* const base = static_cast<char*>(execution.workspace.data);
  Execution of_product = execution;
  of_product.workspace = {base + places.product, execution.workspace.bytes - places.product};
  const LinearProblem& product = plan.problem();
  plan.run(
      {.x = x,
       .weight = members_of(weight, first_member, members_at_once),
       .bias = members_of(bias, first_member, members_at_once),
       .y = TensorView(base + place, problem.dtype,
                       {product.batch, members_at_once, product.out_features}, context.device())},
      of_product);
}

TensorView RecurrentPlan::State::y_at(const RecurrentArguments& a, int64_t step_index,
                                      int64_t first_member) const {
  const RecurrentProblem& p = problem;
  const int64_t elements = step_index * p.y.step + first_member * p.y.member;
  return TensorView(advanced(a.y.data, elements, dtype_bytes(p.dtype)), p.dtype,
                    {p.batch, members_at_once, p.hidden}, Strides{p.y.batch, p.y.member, 1},
                    a.y.device);
}

ConstTensorView RecurrentPlan::State::first_hidden(const RecurrentArguments& a,
                                                   const Execution& execution,
                                                   int64_t first_member) const {
  const RecurrentProblem& p = problem;
  const Shape shape{p.batch, members_at_once, p.hidden};
  if (p.has_first_state) {
    const RowStrides& s = p.first_hidden;
    return ConstTensorView(
        advanced(a.first_hidden.data, first_member * s.member, dtype_bytes(p.dtype)), p.dtype,
        shape, Strides{s.row, s.member, 1}, a.y.device);
  }
  const TensorView zeros(static_cast<char*>(execution.workspace.data) + places.zeros, p.dtype,
                         shape, context.device());
  fill_bytes(zeros, 0, execution.stream);
  return zeros;
}

/// The steps after x's products, one by one.
void RecurrentPlan::State::run_steps(const RecurrentArguments& a, const Execution& execution,
                                     int64_t first_member) const {
  const RecurrentProblem& p = problem;
  auto* const base = static_cast<char*>(execution.workspace.data);
  const int64_t element = dtype_bytes(p.dtype);
  const RecurrentStrides gate_strides = recurrent_gate_strides(p, members_at_once);
  const int64_t gates = recurrent_gates(p.cell) * p.hidden;
  const RowStrides own_cells = packed_rows(members_at_once, p.hidden);

  kernels::RecurrentCellParams cell{};
  cell.cell = p.cell;
  cell.dtype = p.dtype;
  cell.hidden_gates = base + places.hidden_gates;
  cell.input_strides = {gate_strides.batch, gate_strides.member};
  cell.hidden_strides = {members_at_once * gates, gates};
  cell.y_strides = recurrent_step_strides(p);
  cell.batch = p.batch;
  cell.num_members = members_at_once;
  cell.hidden = p.hidden;
  cell.before_strides = recurrent_first_strides(p, members_at_once);
  cell.cell_before = static_cast<const float*>(a.first_cell.data);
  if (cell.cell_before != nullptr) cell.cell_before += first_member * p.first_cell.member;
  cell.cell_before_strides = p.first_cell;
  auto* const cells = reinterpret_cast<float*>(base + places.cells);

  ConstTensorView hidden = first_hidden(a, execution, first_member);
  for (int64_t i = 0; i < p.steps; ++i) {
    const int64_t t = p.is_reversed ? p.steps - 1 - i : i;
    const bool is_last = i + 1 == p.steps;
    multiply(i == 0 ? *first : *step, hidden, a.hidden_weight, a.hidden_bias, places.hidden_gates,
             first_member, execution);
    const TensorView y = y_at(a, t, first_member);
    cell.input_gates = base + places.input_gates + t * gate_strides.step * element;
    cell.before = hidden.data;
    cell.y = y.data;
    cell.cell_after = cells;
    cell.cell_after_strides = own_cells;
    if (is_last && p.has_last_cell) {
      cell.cell_after = static_cast<float*>(a.last_cell.data) + first_member * p.last_cell.member;
      cell.cell_after_strides = p.last_cell;
    }
    if (context.device().type == DeviceType::cpu) {
      run_recurrent_cell_cpu(context, cell);
    } else {
      run_recurrent_cell_cuda(context.info(), cell, execution.stream);
    }
    hidden = y;
    cell.before_strides = cell.y_strides;
    cell.cell_before = cells;
    cell.cell_before_strides = own_cells;
  }
}

/// Members [first_member, first_member + members_at_once).
void RecurrentPlan::State::run(const RecurrentArguments& a, const Execution& execution,
                               int64_t first_member) const {
  const RecurrentProblem& p = problem;
  const LinearProblem& product = input->problem();
  const void* x = advanced(a.x.data, first_member * p.x.member, dtype_bytes(p.dtype));
  const ConstTensorView rows =
      product.shared_input
          ? ConstTensorView(x, p.dtype, {product.batch, p.in_features}, Strides{product.x.row, 1},
                            a.x.device)
          : ConstTensorView(x, p.dtype, {product.batch, members_at_once, p.in_features},
                            Strides{product.x.row, product.x.member, 1}, a.x.device);
  multiply(*input, rows, a.input_weight, a.input_bias, places.input_gates, first_member, execution);
  if (is_fused()) {
    const auto* base = static_cast<const char*>(execution.workspace.data);
    return run_recurrent_fused(context.info(), p, a, base + places.input_gates, execution.stream);
  }
  run_steps(a, execution, first_member);
}

/// Sequences without steps end as they begin.
void RecurrentPlan::State::run_no_steps(const RecurrentArguments& a, Stream stream) const {
  const RecurrentProblem& p = problem;
  if (!p.has_last_cell || p.batch == 0) return;
  const auto lie = [&](const RowStrides& s) { return Strides{s.row, s.member, 1}; };
  const Shape shape{p.batch, p.num_members, p.hidden};
  const TensorView last(a.last_cell.data, Dtype::fp32, shape, lie(p.last_cell), a.y.device);
  if (!p.has_first_state) {
    fill_bytes(last, 0, stream);  // gaps between rows and members are not ours
  } else if (a.first_cell.data != a.last_cell.data) {
    const MemberCopy copy{
        ConstTensorView(a.first_cell.data, Dtype::fp32, shape, lie(p.first_cell), a.y.device),
        last};
    const bool is_on_cpu = context.device().type == DeviceType::cpu;
    is_on_cpu ? copy_members_cpu(std::span(&copy, 1))
              : copy_members_cuda(std::span(&copy, 1), stream);
  }
}

void RecurrentPlan::run(const RecurrentArguments& arguments, const Execution& execution) const {
  const State& s = *state_;
  require_device(kRecurrentName, "y", arguments.y, s.context.device());
  require_same_recurrent_problem(describe_recurrent(arguments, s.problem), s.problem);
  if (is_empty(s.problem)) return s.run_no_steps(arguments, execution.stream);
  require_workspace(kRecurrentName, execution, s.workspace_bytes);
  require_handles(kRecurrentName, execution, s.vendor_calls, s.context.device());
  const NvtxRange range(s.range.c_str());
  for (int64_t n = 0; n < s.problem.num_members; n += s.members_at_once) {
    s.run(arguments, execution, n);
  }
}

}  // namespace wide
