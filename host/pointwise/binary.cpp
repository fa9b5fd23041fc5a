// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// binary's verbs: validate, choose, launch.
#include "wide/binary.hpp"

#include "host/core/check.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/wide_plan.hpp"
#include "host/pointwise/binary_run.hpp"
#include "host/pointwise/packed_rows.hpp"

namespace wide {

static std::string text(BinaryFunction function) {
  return text(binary_function_name(function));
}
static std::string text(Broadcast broadcast) {
  return text(broadcast_name(broadcast));
}

namespace {

constexpr std::string_view kBinaryName = "binary";

BinaryProblem resolved(BinaryProblem p) {
  require_legal_rows(kBinaryName, rows_of(p));
  require_enumerator(kBinaryName, "function", p.function, kAllBinaryFunctions.back());
  require_enumerator(kBinaryName, "broadcast", p.broadcast, kAllBroadcasts.back());
  require_enumerator(kBinaryName, "activation", p.activation, kAllActivations.back());
  complete_rows(kBinaryName, p);
  if (p.broadcast == Broadcast::none) {
    p.other =
        complete_strides(name_of(kBinaryName, "other"), p.other,
                         packed_rows(p.num_members, p.features), p.rows, p.num_members, p.features);
  }
  const bool has_member_axis = p.broadcast == Broadcast::rows || p.broadcast == Broadcast::features;
  if (has_member_axis) {
    p.other.member =
        complete_stride(name_of(kBinaryName, "other.member"), p.other.member, p.num_members,
                        p.broadcast == Broadcast::rows ? p.features : 1);
  }
  WIDE_REQUIRE(p.broadcast == Broadcast::none || p.other.row == 0,
               "binary: other's row stride is " + std::to_string(p.other.row) +
                   ", expected 0: it is broadcast along rows");
  WIDE_REQUIRE(p.broadcast != Broadcast::members || p.other.member == 0,
               "binary: other's member stride is " + std::to_string(p.other.member) +
                   ", expected 0: it is broadcast along members");
  return p;
}

/// The strides of a second operand with an element for each feature of each member, or each member.
RowStrides member_strides(const ConstTensorView& other, const Shape& expected,
                          std::string_view axes) {
  require_shape(kBinaryName, "other", other, axes, expected);
  return {0, member_stride(kBinaryName, "other", other)};
}

/// Reads other's strides; throws where its shape is not what the broadcast says.
RowStrides describe_other(const ConstTensorView& other, const BinaryProblem& p) {
  switch (p.broadcast) {
    case Broadcast::none: {
      const MemberRows rows = member_rows(kBinaryName, "other", other, p.num_members, p.features);
      WIDE_REQUIRE(rows.rows == p.rows, "binary: other is " + to_string(other.shape) +
                                            ", expected the rows of x: " + std::to_string(p.rows));
      return rows.strides;
    }
    case Broadcast::rows:
      return member_strides(other, {p.num_members, p.features}, "[num_members, features]");
    case Broadcast::features:
      return member_strides(other, {p.num_members}, "[num_members]");
    case Broadcast::members:
      require_shape(kBinaryName, "other", other, "[1], of all members", {1});
      return {};
  }
  return {};
}

constexpr auto kBinaryFields = [](const auto& same, const BinaryProblem& got,
                                  const BinaryProblem& plan) {
  same_rows(same, got, plan);
  same("stride of other", got.other, plan.other);
  same("function", got.function, plan.function);
  same("broadcast", got.broadcast, plan.broadcast);
  same("activation", got.activation, plan.activation);
};

}  // namespace

std::string problem_key(const BinaryProblem& complete) {
  return key_of_fields(complete, kBinaryFields);
}
TuningKey tuning_key(const BinaryProblem& problem) {
  return {std::string(kBinaryName), problem_key(resolved(problem))};
}

BinaryProblem describe_binary(const BinaryArguments& a, const BinaryProblem& like) {
  const PackedRows rows =
      describe_packed_rows(kBinaryName, a.x, a.y, like.num_members, like.features);
  BinaryProblem p = like;
  p.rows = rows.rows;
  p.features = rows.features;
  p.dtype = rows.dtype;
  p.x = rows.x;
  p.y = rows.y;
  p.other = describe_other(a.other, p);
  require_dtype(kBinaryName, "other", a.other, p.dtype);
  require_device(kBinaryName, "other", a.other, a.y.device);
  const bool is_in_place =
      p.broadcast == Broadcast::none && a.other.data == a.y.data && p.other == p.y;
  WIDE_REQUIRE(is_in_place || !may_overlap(a.other, a.y),
               "binary: y overlaps other, expected other itself or memory of its own");
  return p;
}

template <>
struct PlanState<BinaryProblem> : WideState<BinaryProblem> {};
template class PrimitivePlan<BinaryProblem>;

BinaryPlan make_binary_plan(const Context& context, const BinaryProblem& problem,
                            const PlanOptions& options) {
  return BinaryPlan(std::make_shared<const BinaryPlan::State>(
      make_wide_state(kBinaryName, context, resolved(problem), options)));
}

void BinaryPlan::run(const BinaryArguments& arguments, const Execution& execution) const {
  const State& s = *state_;
  require_device(kBinaryName, "y", arguments.y, s.context.device());
  require_same_problem(kBinaryName, describe_binary(arguments, s.problem), s.problem,
                       kBinaryFields);
  const NvtxRange range(s.range.c_str());
  if (s.context.device().type == DeviceType::cpu) {
    run_binary_cpu(s.context, s.problem, s.choice.strategy, arguments);
  } else {
    run_binary_cuda(s.context, s.problem, s.choice.strategy, arguments, execution.stream);
  }
}

}  // namespace wide
