// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// pointwise's verbs: validate, choose, launch.
#include "wide/pointwise.hpp"

#include <cmath>
#include <limits>

#include "host/core/check.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/text.hpp"
#include "host/core/wide_plan.hpp"
#include "host/pointwise/packed_rows.hpp"
#include "host/pointwise/pointwise_problem.hpp"
#include "host/pointwise/pointwise_run.hpp"
#include "wide/pack.hpp"

namespace wide {

static std::string text(PointwiseFunction function) {
  return text(pointwise_function_name(function));
}

namespace {

constexpr std::string_view kPointwiseName = "pointwise";

bool has_slopes(const PointwiseProblem& p) {
  return p.function == PointwiseFunction::prelu;
}

void require_legal(const PointwiseProblem& p) {
  require_legal_rows(kPointwiseName, rows_of(p));
  require_enumerator(kPointwiseName, "function", p.function, kAllPointwiseFunctions.back());
  require_pointwise_parameters(p);
  if (has_slopes(p)) {
    WIDE_REQUIRE(p.num_slopes == 1 || p.num_slopes == p.features,
                 "pointwise: num_slopes is " + std::to_string(p.num_slopes) +
                     ", expected 1 or features = " + std::to_string(p.features));
  } else {
    WIDE_REQUIRE(p.num_slopes == 0,
                 "pointwise: num_slopes is " + std::to_string(p.num_slopes) + ", expected 0: " +
                     std::string(pointwise_function_name(p.function)) + " has none");
  }
}

PointwiseProblem resolved(PointwiseProblem p) {
  require_legal(p);
  complete_rows(kPointwiseName, p);
  p.slope_member_stride = complete_stride(name_of(kPointwiseName, "slope_member_stride"),
                                          p.slope_member_stride, p.num_members, p.num_slopes);
  return p;
}

/// Slopes of members [num_members, 1 or features].
void describe_slope(const ConstTensorView& slope, PointwiseProblem& p) {
  WIDE_REQUIRE(!slope.is_absent(), "pointwise: slope is absent, expected one for prelu");
  WIDE_REQUIRE(slope.rank() == 2 && slope.shape[0] == p.num_members &&
                   (slope.shape[1] == 1 || slope.shape[1] == p.features),
               "pointwise: slope is " + to_string(slope.shape) + ", expected [num_members, 1] or " +
                   "[num_members, features] = " + to_string(Shape{p.num_members, p.features}));
  require_dtype(kPointwiseName, "slope", slope, p.dtype);
  p.num_slopes = slope.shape[1];
  p.slope_member_stride = member_stride(kPointwiseName, "slope", slope);
}

constexpr auto kPointwiseFields = [](const auto& same, const PointwiseProblem& got,
                                     const PointwiseProblem& plan) {
  same_rows(same, got, plan);
  same("num_slopes", got.num_slopes, plan.num_slopes);
  same("member stride of slope", got.slope_member_stride, plan.slope_member_stride);
  same("function", got.function, plan.function);
  same("slope", got.slope, plan.slope);
  same("alpha", got.alpha, plan.alpha);
  same("beta", got.beta, plan.beta);
  same("low", got.low, plan.low);
  same("high", got.high, plan.high);
};

}  // namespace

void require_pointwise_parameters(const PointwiseProblem& p) {
  const auto require = [](const char* name, float value, bool is_good, const char* expected) {
    WIDE_REQUIRE(is_good, "pointwise: " + std::string(name) + " is " + text(value) + ", expected " +
                              expected);
  };
  require("slope", p.slope, std::isfinite(p.slope), "a finite number");
  require("alpha", p.alpha, std::isfinite(p.alpha), "a finite number");
  // Subnormal numbers may have no finite reciprocal.
  require("beta", p.beta, std::isfinite(p.beta) && p.beta >= std::numeric_limits<float>::min(),
          "a finite number, 2^-126 or more");
  WIDE_REQUIRE(p.low <= p.high, "pointwise: low is " + std::to_string(p.low) + " and high is " +
                                    std::to_string(p.high) + ", expected low <= high");
}

std::string problem_key(const PointwiseProblem& complete) {
  return key_of_fields(complete, kPointwiseFields);
}
TuningKey tuning_key(const PointwiseProblem& problem) {
  return {std::string(kPointwiseName), problem_key(resolved(problem))};
}

PointwiseProblem describe_pointwise(const PointwiseArguments& a, const PointwiseProblem& like) {
  const PackedRows rows =
      describe_packed_rows(kPointwiseName, a.x, a.y, like.num_members, like.features);
  PointwiseProblem p = like;
  p.rows = rows.rows;
  p.features = rows.features;
  p.dtype = rows.dtype;
  p.x = rows.x;
  p.y = rows.y;
  p.num_slopes = p.slope_member_stride = 0;
  if (has_slopes(p)) {
    describe_slope(a.slope, p);
    require_device(kPointwiseName, "slope", a.slope, a.y.device);
    require_own_memory(kPointwiseName, "y", a.y, "slope", a.slope);
  } else {
    WIDE_REQUIRE(a.slope.is_absent(), "pointwise: slope is present, expected none for " +
                                          std::string(pointwise_function_name(p.function)));
  }
  require_legal(p);
  return p;
}

template <>
struct PlanState<PointwiseProblem> : WideState<PointwiseProblem> {};
template class PrimitivePlan<PointwiseProblem>;

PointwisePlan make_pointwise_plan(const Context& context, const PointwiseProblem& problem,
                                  const PlanOptions& options) {
  return PointwisePlan(std::make_shared<const PointwisePlan::State>(
      make_wide_state(kPointwiseName, context, resolved(problem), options)));
}

void PointwisePlan::prepare_weights(std::span<const ConstTensorView> members,
                                    const TensorView& slope, Stream stream) const {
  const PointwiseProblem& p = state_->problem;
  if (!has_slopes(p)) return;
  require_shape(kPointwiseName, "slope", slope, "[num_members, num_slopes]",
                {p.num_members, p.num_slopes});
  pack(operands::pointwise_slope, members, slope, stream);
}

void PointwisePlan::restore_weights(const ConstTensorView& slope,
                                    std::span<const TensorView> members, Stream stream) const {
  if (has_slopes(state_->problem)) unpack(operands::pointwise_slope, slope, members, stream);
}

void PointwisePlan::run(const PointwiseArguments& arguments, const Execution& execution) const {
  const State& s = *state_;
  require_device(kPointwiseName, "y", arguments.y, s.context.device());
  require_same_problem(kPointwiseName, describe_pointwise(arguments, s.problem), s.problem,
                       kPointwiseFields);
  const NvtxRange range(s.range.c_str());
  if (s.context.device().type == DeviceType::cpu) {
    run_pointwise_cpu(s.context, s.problem, s.choice.strategy, arguments);
  } else {
    run_pointwise_cuda(s.context, s.problem, s.choice.strategy, arguments, execution.stream);
  }
}

}  // namespace wide
