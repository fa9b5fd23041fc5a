// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Index arithmetic straight from the documented layouts; slow, and meant to be read.
#include "verify/support/open_linear.hpp"

#include "verify/support/cases.hpp"
#include "wide/convert.hpp"

namespace wide::test {

namespace {

using catalog::Distribution;

std::unique_ptr<catalog::Workload> make_real(const Context& context, const LinearProblem& p,
                                             const catalog::WorkloadOptions& options) {
  const Values values{{"n", p.num_members},
                      {"batch", p.batch},
                      {"in", p.in_features},
                      {"out", p.out_features},
                      {"dtype", std::string(dtype_name(p.dtype))},
                      {"activation", std::string(activation_name(p.epilogue.activation))}};
  const auto& spec = catalog::find_primitive("linear");
  return spec.make_workload(context, catalog::make_case(spec, values), options);
}

}  // namespace

OpenLinear::OpenLinear(const Context& context, const LinearProblem& problem,
                       const catalog::WorkloadOptions& options)
    : PackedWorkload(context, problem.num_members, options),
      problem_(problem),
      x_(add_operand(operands::linear_x, problem.dtype, {problem.batch, problem.in_features},
                     Distribution::uniform())),
      weight_(add_operand(operands::linear_weight, problem.dtype,
                          {problem.out_features, problem.in_features}, Distribution::uniform())),
      bias_(add_operand(operands::linear_bias, problem.dtype, {problem.out_features},
                        Distribution::uniform())),
      y_(add_operand(operands::linear_y, problem.dtype, {problem.batch, problem.out_features},
                     Distribution::none())),
      real_(make_real(context, problem, options)),
      x_view_(x_.packed()),
      weight_view_(weight_.packed()),
      bias_view_(bias_.packed()),
      y_view_(y_.packed()) {}

double OpenLinear::x(int64_t member, int64_t row, int64_t in) const {
  return load_element(x_data(), problem_.dtype,
                      row * x_row_stride() + member * problem_.in_features + in);
}

double OpenLinear::weight(int64_t member, int64_t out, int64_t in) const {
  const Strides& strides = weight_view_.strides;
  return load_element(weight_data(), problem_.dtype, member * strides[0] + out * strides[1] + in);
}

double OpenLinear::bias(int64_t member, int64_t out) const {
  return load_element(bias_view_.data, problem_.dtype, member * bias_view_.strides[0] + out);
}

double OpenLinear::y(int64_t member, int64_t row, int64_t out) const {
  return load_element(y_data(), problem_.dtype,
                      row * y_row_stride() + member * problem_.out_features + out);
}

void OpenLinear::set_y(int64_t member, int64_t row, int64_t out, double value) {
  store_element(y_data(), problem_.dtype,
                row * y_row_stride() + member * problem_.out_features + out, value);
}

void OpenLinear::run_library(std::string_view strategy) {
  const catalog::Prepared prepared = prepare({.strategy = std::string(strategy)});
  Tensor workspace(context(), Dtype::fp8_e4m3, {prepared.workspace_bytes});
  prepared.run({Stream::cpu(), {workspace.data(), workspace.bytes()}, nullptr});
}

std::string OpenLinear::unsupported_reason(std::string_view strategy) const {
  return real_->unsupported_reason(strategy);
}

catalog::Prepared OpenLinear::prepare(const PlanOptions& options) {
  const LinearArguments arguments{x_view_, weight_view_, bias_view_, y_view_};
  const LinearPlan plan =
      make_linear_plan(context(), describe_linear(arguments, problem_), options);
  return {[plan, arguments](const Execution& execution) { plan.run(arguments, execution); },
          plan.workspace_bytes(), std::string(plan.strategy()), std::string(plan.policy()),
          plan.explain()};
}

void OpenLinear::reference_row(int64_t member, int64_t row, std::span<double> values,
                               std::span<double> tolerances) const {
  real_->reference_row(member, row, values, tolerances);
}

void compute(OpenLinear& linear, const LinearRecipe& recipe) {
  const LinearProblem& p = linear.problem();
  const auto of = [](const auto& map, int64_t member) { return map ? map(member) : member; };
  const auto operand = [&](double v) { return recipe.round_operand ? recipe.round_operand(v) : v; };
  const auto rounded = [&](double v) {
    return recipe.round_sum ? recipe.round_sum(v) : static_cast<double>(static_cast<float>(v));
  };
  const int64_t num_terms = p.in_features + recipe.num_terms_more;
  for (int64_t m = 0; m < p.num_members; ++m) {
    const int64_t x_member = of(recipe.x_of, m), weight_member = of(recipe.weight_of, m);
    const int64_t bias_member = of(recipe.bias_of, m);
    for (int64_t b = 0; b < p.batch - recipe.num_rows_less; ++b) {
      for (int64_t o = 0; o < p.out_features - recipe.num_columns_less; ++o) {
        double sum = bias_member < 0 ? 0 : linear.bias(bias_member, o);
        for (int64_t term = 0; term < num_terms; ++term) {
          const int64_t k = recipe.is_backwards ? num_terms - 1 - term : term;
          if (k == recipe.dropped_term) continue;
          const double w = recipe.is_weight_transposed ? linear.weight(weight_member, k, o)
                                                       : linear.weight(weight_member, o, k);
          const double product = operand(linear.x(x_member, b, k)) * operand(w);
          sum = rounded(sum + product * (k == recipe.doubled_term ? 2 : 1));
        }
        const bool clips = p.epilogue.activation == Activation::relu && !recipe.skips_activation;
        if (clips && sum < 0) sum = 0;
        linear.set_y(m, b, o, sum);
      }
    }
  }
}

}  // namespace wide::test
