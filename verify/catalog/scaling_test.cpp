// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What any sum of products keeps whatever its order, so that no reference and no tolerance is
// needed: operands times a power of two give outputs times it, and weights of zeros the bias.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <functional>

#include "verify/conv/conv_case.hpp"
#include "verify/support/cases.hpp"
#include "wide/linear.hpp"

namespace wide::test {
namespace {

struct Operands {
  Tensor x, weight, bias, y;
  int64_t y_positions = 1;  ///< of a channel, adjacent
};

/// y, as `run` computes it, of x and bias times `factor` and weights times `weight_factor`.
std::vector<double> product(const Context& context, Dtype dtype, const Operands& of, double factor,
                            double weight_factor, const std::function<void(Operands&)>& run) {
  const auto scaled = [&](const Tensor& operand, double by) {
    std::vector<double> values = download(context, operand);
    for (double& value : values) value *= by;
    return upload(context, dtype, operand.shape(), values);
  };
  const std::vector<double> nan(static_cast<size_t>(of.y.num_elements()), NAN);
  Operands operands{scaled(of.x, factor), scaled(of.weight, weight_factor), scaled(of.bias, factor),
                    upload(context, dtype, of.y.shape(), nan)};
  run(operands);
  return download(context, operands.y);
}

void check_product(const Context& context, Dtype dtype, const Operands& of,
                   const std::function<void(Operands&)>& run) {
  const double factor = dtype == Dtype::fp16 ? 8 : 0x1p20;  // within the dtype's range
  const std::vector<double> plain = product(context, dtype, of, 1, 1, run);
  std::vector<double> expected = plain;
  for (double& value : expected) value *= factor;
  CHECK(worst_difference(product(context, dtype, of, factor, 1, run), expected) == 0);

  const std::vector<double> bias = download(context, of.bias);
  for (size_t i = 0; i < expected.size(); ++i)
    expected[i] = bias[i / static_cast<size_t>(of.y_positions) % bias.size()];
  CHECK(worst_difference(product(context, dtype, of, 1, 0, run), expected) == 0);
}

Tensor filled(const Context& context, Dtype dtype, const Shape& shape, uint64_t seed) {
  return upload(context, dtype, shape, uniform(num_elements(shape), -1, 1, seed));
}

constexpr Dtype kDtypes[] = {Dtype::fp32, Dtype::fp16, Dtype::bf16};

}  // namespace

TEST_CASE("linear: powers of two scale exactly, and weights of zeros give the bias") {
  struct Size {
    int64_t n, batch, in, out;
  };
  for (const Context& context : devices_at_hand()) {
    for (const auto& [n, batch, in, out] :
         {Size{3, 5, 19, 7}, Size{2, 1, 64, 72}, Size{2, 40, 96, 64}}) {
      for (const Dtype dtype : kDtypes) {
        const Operands of{
            filled(context, dtype, {batch, n * in}, 1), filled(context, dtype, {n, out, in}, 2),
            filled(context, dtype, {n, out}, 3), filled(context, dtype, {batch, n * out}, 4)};
        int ran = 0;
        for (const std::string& strategy :
             strategies_of(catalog::find_primitive("linear"), context.device().type)) {
          INFO(to_string(context.device())
               << " " << strategy << " " << dtype_name(dtype) << " batch " << batch);
          try {
            check_product(context, dtype, of, [&](Operands& o) {
              const LinearArguments arguments{
                  .x = o.x, .weight = o.weight, .bias = o.bias, .y = o.y.view()};
              run_plan(
                  context,
                  make_linear_plan(context, describe_linear(arguments), {.strategy = strategy}),
                  arguments);
            });
            ++ran;
          } catch (const Error& error) {
            REQUIRE(error.code() == ErrorCode::unsupported);
          }
        }
        CHECK(ran >= 2);
      }
    }
  }
}

TEST_CASE("conv: powers of two scale exactly, and weights of zeros give the bias") {
  const ConvProblem odd{.num_members = 2,
                        .batch = 2,
                        .in_channels = 6,
                        .out_channels = 9,
                        .groups = 3,
                        .input = {6, 7},
                        .kernel = {3, 2},
                        .padding = {1, 1},
                        .epilogue = {.has_bias = true}};
  const ConvProblem pointwise{.num_members = 2,
                              .batch = 2,
                              .in_channels = 16,
                              .out_channels = 24,
                              .input = {4, 8},
                              .epilogue = {.has_bias = true}};
  for (const Context& context : devices_at_hand()) {
    for (ConvProblem problem : {odd, pointwise}) {
      for (const Dtype dtype : kDtypes) {
        problem.dtype = dtype;
        const ConvProblem p = complete_conv_problem(problem);
        ConvOperands operands = conv_operands(context, p, false);
        const std::vector<std::string_view> strategies =
            conv_strategies_for(context, operands.arguments(), p);
        const Operands of{std::move(operands.x), std::move(operands.weight),
                          std::move(operands.bias), std::move(operands.y), y_grid(p).positions()};
        CHECK(strategies.size() >= 2);
        for (const std::string_view strategy : strategies) {
          INFO(to_string(context.device()) << " " << strategy << " " << dtype_name(dtype));
          check_product(context, dtype, of, [&](Operands& o) {
            run_conv(context, {o.x, o.weight, o.bias, o.y.view(), {}}, p, strategy);
          });
        }
      }
    }
  }
}

}  // namespace wide::test
