// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// routed_linear on quantised weights on CUDA: every format and both tiles on whole numbers whose
// results are exact, every layout and epilogue, linear's bits, and that a wrong routing touches
// nothing else. Skipped without a device. Sizes are small enough for a simulated one.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <cstring>

#include "verify/linear/routed_linear_case.hpp"
#include "verify/support/devices.hpp"

namespace wide::test {
namespace {

WeightFormat any_format() {
  return GENERATE(WeightFormat::fp8_e4m3, WeightFormat::int8, WeightFormat::fp6_e3m2,
                  WeightFormat::int4, WeightFormat::fp4_e2m1);
}

RoutedLinearProblem problem_of(const Routing& routing, WeightFormat format, Dtype dtype, int64_t in,
                               int64_t out) {
  RoutedLinearProblem problem = routed_problem(routing, in, out, dtype);
  problem.weight_format = format;
  return problem;
}

TEST_CASE("quantised routed_linear on CUDA: every format and tile around its edges, exactly") {
  TestDevice bench(require_cuda());
  const WeightFormat format = any_format();
  const Dtype dtype = GENERATE(Dtype::fp16, Dtype::bf16);
  const Routing routing = routing_of_counts({1, 16, 0, 17, 64, 65}, 3);
  struct Size {
    int64_t in, out;
  };
  // Stages of 128 inputs, of which there are four.
  for (const Size& size : {Size{1, 1}, {64, 16}, {129, 65}, {584, 72}}) {
    RoutedLinearProblem problem = problem_of(routing, format, dtype, size.in, size.out);
    problem.group_size = size.in == 129 ? 64 : 128;
    problem.gathers = size.in != 64, problem.scatters = size.in != 1;
    INFO(weight_format_name(format)
         << ", " << dtype_name(dtype) << ", " << size.in << " x " << size.out);
    check_routed(bench, problem, routing, "weight_only");
  }
}

TEST_CASE("quantised routed_linear on CUDA: every layout and epilogue, exactly") {
  TestDevice bench(require_cuda());
  const std::string strategy = GENERATE("weight_only", "sequential");
  const WeightFormat format = GENERATE(WeightFormat::int4, WeightFormat::fp6_e3m2);
  const Routing routing = routing_of_counts({5, 0, 20, 2}, 3);
  RoutedLinearProblem problem = problem_of(routing, format, Dtype::bf16, 200, 35);
  problem.epilogue = {.has_bias = GENERATE(true, false),
                      .activation = Activation::relu,
                      .scale = GENERATE(OutputScale::per_member, OutputScale::per_output),
                      .residual = GENERATE(Residual::before_activation, Residual::after_activation),
                      .alpha = 2};
  problem.has_gates = true;
  INFO(strategy << ", " << output_scale_name(problem.epilogue.scale) << ", "
                << residual_name(problem.epilogue.residual));
  problem.scatters = true;
  check_routed(bench, problem, routing, strategy, 1, true);
  problem.gathers = true, problem.choices = 3;
  problem.x_row_stride = 208, problem.y_row_stride = 40, problem.residual_row_stride = 44;
  problem.weight.member = linear_member_bytes(problem) + 3 * kQuantizedAlignment;
  for (const int64_t misalign : {0, 1}) {
    check_routed(bench, problem, routing, strategy, misalign);
  }
}

TEST_CASE("quantised routed_linear on CUDA: nothing to compute") {
  TestDevice bench(require_cuda());
  const std::string strategy = GENERATE("weight_only", "sequential");
  const Routing routing = routing_of_counts({3, 20}, 1), none = routing_of_counts({0, 0});
  constexpr WeightFormat kFormat = WeightFormat::int8;
  check_routed(bench, problem_of(none, kFormat, Dtype::bf16, 8, 8), none, strategy);
  check_routed(bench, problem_of(routing, kFormat, Dtype::bf16, 8, 0), routing, strategy);
  check_routed(bench, problem_of(routing, kFormat, Dtype::bf16, 0, 8), routing, strategy);
}

TEST_CASE("quantised routed_linear on CUDA: its bits are those of linear's weight_only") {
  TestDevice bench(require_cuda());
  const WeightFormat format = any_format();
  constexpr int64_t kIn = 330, kOut = 48;
  for (const int64_t rows : {7, 33}) {  // by the short tile and by the tall one
    const Routing routing = routing_of_counts({0, rows, 0});
    RoutedLinearProblem problem = problem_of(routing, format, Dtype::fp16, kIn, kOut);
    problem.gathers = problem.scatters = true;
    problem.epilogue.activation = Activation::gelu;
    problem.epilogue.alpha = 0.013f;
    PlacedRouted placed(bench, problem, routing);
    const RoutedLinearArguments routed = placed.arguments();
    const auto plan =
        make_routed_linear_plan(bench.context(), problem, {.strategy = "weight_only"});
    plan.run(routed, bench.execution(plan.workspace_bytes()));

    LinearProblem like;
    like.weight_format = format, like.in_features = kIn, like.out_features = kOut;
    like.epilogue = problem.epilogue;
    Tensor y(bench.context(), Dtype::fp16, {rows, kOut});
    LinearArguments one{.x = routed.x, .weight = routed.weight, .bias = routed.bias, .y = y};
    for (ConstTensorView* operand : {&one.weight, &one.bias}) {  // of member 1
      operand->data = static_cast<const std::byte*>(operand->data) +
                      operand->strides[0] * dtype_bytes(operand->dtype);
      operand->shape[0] = 1;
    }
    const auto linear =
        make_linear_plan(bench.context(), describe_linear(one, like), {.strategy = "weight_only"});
    linear.run(one, bench.execution(linear.workspace_bytes()));
    std::vector<std::byte> expected(static_cast<size_t>(y.bytes()));
    copy(y, TensorView(expected.data(), Dtype::fp16, y.shape(), Device{}), bench.stream());
    bench.context().synchronize(bench.stream());
    const std::vector<std::byte> got = placed.outputs();
    INFO(weight_format_name(format) << ", " << rows << " rows");
    CHECK(std::memcmp(got.data(), expected.data(), expected.size()) == 0);
  }
}

TEST_CASE("quantised routed_linear on CUDA: a wrong routing reads and writes operands only") {
  TestDevice bench(require_cuda());
  const Routing routing = routing_of_counts({20, 3, 97}, 8);
  RoutedLinearProblem problem = problem_of(routing, WeightFormat::int4, Dtype::bf16, 16, 8);
  problem.gathers = true, problem.has_gates = true;
  PlacedRouted placed(bench, problem, routing);
  const auto plan = make_routed_linear_plan(bench.context(), problem, {.strategy = "weight_only"});
  for (const Routing& wrong : wrong_routings(routing)) {
    placed.route(wrong);
    plan.run(placed.arguments(), bench.execution(plan.workspace_bytes()));
    placed.check_inputs();
    placed.check_gaps();
  }
}

}  // namespace
}  // namespace wide::test
