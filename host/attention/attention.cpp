// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// attention's verbs. The plan consists of the plans of its parts; a call passes them views of the
// operands and of the workspace, for all members at once or for one after another.
#include "wide/attention.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "host/attention/attention_problem.hpp"
#include "host/attention/attention_strategy.hpp"
#include "host/core/check.hpp"
#include "host/core/member_fields.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/plan_state.hpp"
#include "host/core/pointer.hpp"
#include "host/core/tuned_choice.hpp"
#include "host/core/workspace.hpp"
#include "wide/pack.hpp"

namespace wide {

namespace {

/// `count` members from `first` on of rows with these strides, members explicit.
template <class View>
View rows_of(const View& operand, int64_t rows, const RowStrides& strides, int64_t features,
             int64_t first, int64_t count) {
  return View(advanced(operand.data, first * strides.member, dtype_bytes(operand.dtype)),
              operand.dtype, {rows, count, features}, Strides{strides.row, strides.member, 1},
              operand.device);
}

/// These members' matrices or vectors, restricted to rows, or elements, [row, row + num_rows).
ConstTensorView parameters_of(const ConstTensorView& operand, int64_t first, int64_t count,
                              int64_t row, int64_t num_rows) {
  return operand.is_absent() ? operand : operand.narrow(0, first, count).narrow(1, row, num_rows);
}

/// Between the parts: a packed tensor [rows, members, features] in the workspace.
struct Slot {
  int64_t offset = 0;
  Shape shape;

  TensorView in(const Execution& execution, Dtype dtype, Device device) const {
    return TensorView(static_cast<char*>(execution.workspace.data) + offset, dtype, shape, device);
  }
};

/// Columns [first, first + features) of a slot's members as what flash_attention reads.
TensorView positions(const TensorView& slot, int64_t batch, int64_t first, int64_t features) {
  const int64_t seq = batch == 0 ? 0 : slot.shape[0] / batch, row = slot.strides[0];
  TensorView view = slot.narrow(2, first, features);
  view.shape = {batch, seq, slot.shape[1], features};
  view.strides = {seq * row, row, slot.strides[1], 1};
  return view;
}

}  // namespace

template <>
struct PlanState<AttentionProblem> : PlanFacts<AttentionProblem, AttentionChoice> {
  int64_t members_at_once = 1;
  std::vector<LinearPlan> projections;
  FlashAttentionPlan core;
  LinearPlan output;
  std::vector<Slot> projected;  ///< by each projection
  Slot heads;
  int64_t part_offset = 0;

  void run(const AttentionArguments& a, const Execution& execution, int64_t first) const;
};
template class PrimitivePlan<AttentionProblem>;

AttentionPlan make_attention_plan(const Context& context, const AttentionProblem& problem,
                                  const PlanOptions& options) {
  const AttentionProblem full = complete_attention_problem(problem);
  require_no_policy(kAttentionName, options.policy);
  AttentionChoice choice =
      choose_attention_strategy(full, context.info(), options.strategy, verified_strategies(),
                                tuning_of(options, kAttentionName, full));
  const int64_t members = choice.strategy == AttentionStrategy::sequential ? 1 : full.num_members;
  const AttentionParts parts = attention_parts(full, members);
  const AttentionPartStrategies names =
      attention_part_strategies(choice.strategy, parts, context.info());

  std::string& explain = choice.explain;
  std::vector<std::string> linears = names.projections;
  linears.push_back(names.output);
  explain += "; linear by " + part_strategies_text(linears);
  std::vector<LinearPlan> projections;
  std::vector<Slot> slots;
  int64_t bytes = 0, part_bytes = 0;
  const auto add_slot = [&](int64_t rows, int64_t features) {
    const Slot slot{bytes, {rows, members, features}};
    bytes = behind_part(bytes, checked_bytes(slot.shape, dtype_bytes(full.dtype)));
    return slot;
  };
  const auto make_linear = [&](const LinearProblem& linear, const std::string& name) {
    LinearPlan plan = make_linear_plan(context, linear, {.strategy = name});
    part_bytes = std::max(part_bytes, plan.workspace_bytes());
    return plan;
  };
  for (size_t i = 0; i < parts.projections.size(); ++i) {
    const LinearProblem& projection = parts.projections[i];
    slots.push_back(add_slot(projection.batch, projection.out_features));
    projections.push_back(make_linear(projection, names.projections[i]));
  }
  const Slot heads = add_slot(parts.output.batch, full.features);
  LinearPlan output = make_linear(parts.output, names.output);
  FlashAttentionPlan core = make_flash_attention_plan(
      context, parts.core, {.strategy = names.core, .tuning = options.tuning});
  part_bytes = std::max(part_bytes, core.workspace_bytes());
  explain += ", flash_attention by " +
             (names.core == "auto" ? core.explain() : std::string(core.strategy()));
  AttentionPlan::State state{{kAttentionName, context, full, std::move(choice)},
                             members,
                             std::move(projections),
                             std::move(core),
                             std::move(output),
                             std::move(slots),
                             heads,
                             bytes};
  if (!is_empty(full)) {
    state.workspace_bytes = behind_part(bytes, part_bytes);
    for (const LinearPlan& plan : state.projections) state.vendor_calls |= plan.vendor_calls();
    state.vendor_calls |= state.core.vendor_calls();
    state.vendor_calls |= state.output.vendor_calls();
  }
  return AttentionPlan(std::make_shared<const AttentionPlan::State>(std::move(state)));
}

namespace {

/// Calls f(operand, name, member of BasicAttentionParameters) for each that the problem has.
template <class F>
void for_each_parameter(const AttentionProblem& p, const F& f) {
  using Views = AttentionParameters;
  using Outputs = BasicAttentionParameters<TensorView>;
  const auto each = [&](const PackedOperand& operand, const char* name, bool is_present,
                        auto Views::*input,
                        auto Outputs::*output) { f(operand, name, is_present, input, output); };
  each(operands::attention_weight, "qkv_weight", !p.is_cross, &Views::qkv_weight,
       &Outputs::qkv_weight);
  each(operands::attention_weight, "q_weight", p.is_cross, &Views::q_weight, &Outputs::q_weight);
  each(operands::attention_weight, "k_weight", p.is_cross, &Views::k_weight, &Outputs::k_weight);
  each(operands::attention_weight, "v_weight", p.is_cross, &Views::v_weight, &Outputs::v_weight);
  each(operands::attention_bias, "qkv_bias", p.has_bias, &Views::qkv_bias, &Outputs::qkv_bias);
  each(operands::attention_weight, "out_weight", true, &Views::out_weight, &Outputs::out_weight);
  each(operands::attention_bias, "out_bias", p.has_bias, &Views::out_bias, &Outputs::out_bias);
}

void require_presence(const std::string& whose, const ConstTensorView& view, bool is_expected) {
  WIDE_REQUIRE(view.is_absent() != is_expected,
               "attention: " + whose +
                   (is_expected ? " is absent, expected one: the plan's problem has it"
                                : " is present, expected none: the plan's problem has none"));
}

/// Checked before anything is written: the parameters that the problem has are there, packed and of
/// every member, and no others.
template <class Packed, class Member>
void require_parameters(const AttentionProblem& problem, const Packed& packed,
                        std::span<const Member> members) {
  require_entries(kAttentionName, "members", members.size(), problem.num_members);
  for_each_parameter(problem, [&](const PackedOperand&, const char* name, bool is_present,
                                  auto input, auto output) {
    const auto of = [&](const auto& parameters) -> ConstTensorView {
      if constexpr (requires { parameters.*input; })
        return parameters.*input;
      else
        return parameters.*output;
    };
    require_presence(name, of(packed), is_present);
    for (size_t n = 0; n < members.size(); ++n) {
      require_presence(std::string(name) + " of member " + std::to_string(n), of(members[n]),
                       is_present);
    }
  });
}

}  // namespace

void AttentionPlan::prepare_weights(std::span<const AttentionParameters> members,
                                    const BasicAttentionParameters<TensorView>& packed,
                                    Stream stream) const {
  require_parameters(problem(), packed, members);
  const NvtxRange range("wide::attention::prepare_weights");
  for_each_parameter(problem(), [&](const PackedOperand& operand, const char*, bool is_present,
                                    auto input, auto output) {
    if (is_present) pack(operand, fields_of(members, input), packed.*output, stream);
  });
}

void AttentionPlan::restore_weights(const AttentionParameters& packed,
                                    std::span<const BasicAttentionParameters<TensorView>> members,
                                    Stream stream) const {
  require_parameters(problem(), packed, members);
  const NvtxRange range("wide::attention::restore_weights");
  for_each_parameter(problem(), [&](const PackedOperand& operand, const char*, bool is_present,
                                    auto input, auto output) {
    if (is_present) unpack(operand, packed.*input, fields_of(members, output), stream);
  });
}

/// The parts of members [first, first + members_at_once).
void AttentionPlan::State::run(const AttentionArguments& a, const Execution& execution,
                               int64_t first) const {
  const AttentionProblem& p = problem;
  const AttentionParameters& w = a.parameters;
  const int64_t d = p.features, members = members_at_once;
  const Device device = context.device();
  Execution of_part = execution;
  of_part.workspace = {static_cast<char*>(execution.workspace.data) + part_offset,
                       execution.workspace.bytes - part_offset};

  struct Input {
    const ConstTensorView& x;
    const RowStrides& strides;
    const ConstTensorView& weight;
  };
  const Input inputs[] = {{a.x, p.x, p.is_cross ? w.q_weight : w.qkv_weight},
                          {a.key, p.key, w.k_weight},
                          {a.value, p.value, w.v_weight}};
  std::array<TensorView, 3> results;
  for (size_t i = 0; i < projections.size(); ++i) {
    const LinearProblem& linear = projections[i].problem();
    const int64_t out = linear.out_features;
    results[i] = projected[i].in(execution, p.dtype, device);
    projections[i].run(
        {.x = rows_of(inputs[i].x, linear.batch, inputs[i].strides, linear.in_features, first,
                      members),
         .weight = parameters_of(inputs[i].weight, first, members, 0, out),
         .bias = parameters_of(w.qkv_bias, first, members, static_cast<int64_t>(i) * d, out),
         .y = results[i]},
        of_part);
  }

  const TensorView of_heads = heads.in(execution, p.dtype, device);
  const auto third = [&](size_t i) {
    return p.is_cross ? positions(results[i], p.batch, 0, d)
                      : positions(results[0], p.batch, static_cast<int64_t>(i) * d, d);
  };
  const bool has_own_lengths = p.key_lengths == KeyLengths::per_member;
  core.run(
      {.q = third(0),
       .k = third(1),
       .v = third(2),
       .key_lengths = has_own_lengths ? a.key_lengths.narrow(0, first, members) : a.key_lengths,
       .slopes = {},
       .y = positions(of_heads, p.batch, 0, d)},
      of_part);
  output.run({.x = of_heads,
              .weight = parameters_of(w.out_weight, first, members, 0, d),
              .bias = parameters_of(w.out_bias, first, members, 0, d),
              .y = rows_of(a.y, of_heads.shape[0], p.y, d, first, members)},
             of_part);
}

void AttentionPlan::run(const AttentionArguments& arguments, const Execution& execution) const {
  const State& s = *state_;
  require_device(kAttentionName, "y", arguments.y, s.context.device());
  require_same_attention_problem(describe_attention(arguments, s.problem), s.problem);
  if (is_empty(s.problem)) return;
  require_workspace(kAttentionName, execution, s.workspace_bytes);
  require_handles(kAttentionName, execution, s.vendor_calls, s.context.device());
  const NvtxRange range(s.range.c_str());
  for (int64_t first = 0; first < s.problem.num_members; first += s.members_at_once) {
    s.run(arguments, execution, first);
  }
}

}  // namespace wide
