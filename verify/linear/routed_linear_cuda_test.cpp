// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// routed_linear on CUDA: routings and places of all kinds, exactly; what a row's bits depend on;
// that a captured call follows a new routing, and that a wrong one touches nothing else. Skipped
// without a device. Sizes are small enough for a simulated one.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>

#include "verify/linear/routed_linear_mixture.hpp"
#include "verify/support/captured_call_cuda.hpp"
#include "verify/support/devices.hpp"

namespace wide::test {
namespace {

/// Every strategy with every dtype that it multiplies.
struct Way {
  std::string strategy;
  Dtype dtype;
};

Way any_way() {
  return GENERATE(Way{"simt", Dtype::fp32}, Way{"simt", Dtype::fp16}, Way{"simt", Dtype::bf16},
                  Way{"tensor_core", Dtype::fp32}, Way{"tensor_core", Dtype::fp16},
                  Way{"tensor_core", Dtype::bf16}, Way{"sequential", Dtype::fp32},
                  Way{"sequential", Dtype::bf16});
}

RoutedLinearProblem of_way(const Routing& routing, int64_t in, int64_t out, const Way& way) {
  RoutedLinearProblem problem = routed_problem(routing, in, out, way.dtype);
  problem.allow_tf32 = way.dtype == Dtype::fp32 && way.strategy == "tensor_core";
  return problem;
}

TEST_CASE("routed_linear on CUDA: rows gathered and scattered, gates and choices") {
  TestDevice bench(require_cuda());
  const Way way = any_way();
  const bool gathers = GENERATE(false, true), scatters = GENERATE(false, true);
  INFO(way.strategy << ", " << dtype_name(way.dtype) << (gathers ? ", gathers" : "")
                    << (scatters ? ", scatters" : ""));
  const Routing routing = routing_of_counts({5, 0, 20, 2}, 3);
  RoutedLinearProblem problem = of_way(routing, 40, 20, way);
  problem.gathers = gathers, problem.scatters = scatters;
  for (const int64_t misalign : {0, 1}) {
    check_routed(bench, problem, routing, way.strategy, misalign);
  }
  problem.has_gates = true;
  for (const int64_t choices : {1, 2, 3}) {
    problem.choices = gathers ? choices : 1;
    check_routed(bench, problem, routing, way.strategy);
  }
}

TEST_CASE("routed_linear on CUDA: both tiles, around their edges, rings that come round") {
  TestDevice bench(require_cuda());
  const Way way = any_way();
  const Routing routing = routing_of_counts({1, 15, 16, 17, 63, 64, 65, 129}, 70);
  RoutedLinearProblem problem = of_way(routing, way.dtype == Dtype::fp32 ? 232 : 456, 70, way);
  problem.gathers = problem.scatters = true;
  check_routed(bench, problem, routing, way.strategy);
}

TEST_CASE("routed_linear on CUDA: one member has all, or nobody has any") {
  TestDevice bench(require_cuda());
  const Way way = any_way();
  for (const Routing& routing : {routing_of_counts({0, 0, 130, 0}), routing_of_counts({0, 0}, 130),
                                 routing_of_counts({64, 64, 64}), routing_of_counts({130})}) {
    RoutedLinearProblem problem = of_way(routing, 24, 65, way);
    problem.scatters = true;
    check_routed(bench, problem, routing, way.strategy);
  }
}

TEST_CASE("routed_linear on CUDA: a search of one step, of two, and of three") {
  TestDevice bench(require_cuda());
  const std::string strategy = GENERATE("simt", "tensor_core");
  const int64_t members = GENERATE(31, 32, 33, 64, 65, 1023, 1024, 1025);
  const Routing routing = routing_of_counts(counts_of_many(members), 20);
  RoutedLinearProblem problem = routed_problem(routing, 8, 3, Dtype::bf16);
  problem.gathers = true;
  INFO(strategy << ", " << members << " members");
  check_routed(bench, problem, routing, strategy);
}

TEST_CASE("routed_linear on CUDA: nothing to compute") {
  TestDevice bench(require_cuda());
  const std::string strategy = GENERATE("simt", "tensor_core", "sequential");
  const Routing routing = routing_of_counts({3, 20}, 1), none = routing_of_counts({0, 0});
  check_routed(bench, routed_problem(none, 8, 8, Dtype::bf16), none, strategy);
  check_routed(bench, routed_problem(routing, 8, 0, Dtype::bf16), routing, strategy);
  check_routed(bench, routed_problem(routing, 0, 8, Dtype::bf16), routing, strategy);
}

TEST_CASE("routed_linear on CUDA: the whole epilogue, strides, in place") {
  TestDevice bench(require_cuda());
  const Way way = any_way();
  const Routing routing = routing_of_counts({5, 0, 20, 2}, 3);
  RoutedLinearProblem problem = of_way(routing, 19, 13, way);
  problem.epilogue.has_bias = GENERATE(true, false);
  problem.epilogue.scale = GENERATE(OutputScale::per_member, OutputScale::per_output);
  problem.epilogue.residual = GENERATE(Residual::before_activation, Residual::after_activation);
  problem.epilogue.activation = Activation::relu;
  problem.epilogue.alpha = 2;
  problem.has_gates = true;
  INFO(way.strategy << ", " << dtype_name(way.dtype) << ", "
                    << output_scale_name(problem.epilogue.scale) << ", "
                    << residual_name(problem.epilogue.residual));
  problem.scatters = true;
  check_routed(bench, problem, routing, way.strategy, 1, true);
  problem.in_features = 24, problem.out_features = 16;
  problem.x_row_stride = 32, problem.weight = {40, 16 * 40}, problem.y_row_stride = 20;
  problem.residual_row_stride = 28;
  problem.scatters = problem.epilogue.has_bias;
  problem.gathers = !problem.scatters;
  check_routed(bench, problem, routing, way.strategy);
  check_routed(bench, problem, routing, way.strategy, 3);
}

TEST_CASE("routed_linear on CUDA: random routings and places, exactly") {
  TestDevice bench(require_cuda());
  Dice dice(5);
  const int cases = wants_small_cases() ? 40 : 200;
  for (int i = 0; i < cases; ++i) {
    const Way ways[] = {{"simt", Dtype::fp32},
                        {"simt", Dtype::fp16},
                        {"tensor_core", Dtype::fp32},
                        {"tensor_core", Dtype::bf16},
                        {"tensor_core", Dtype::fp16}};
    const Way& way = ways[dice.between(0, 4)];
    std::vector<int64_t> counts;
    for (int64_t m = dice.between(1, 9); m > 0; --m) {
      counts.push_back(dice.between(0, dice.between(1, 90)));
    }
    const int64_t step = dice.between(0, 1) == 0 ? 1 : 8;
    const Routing routing = routing_of_counts(counts, dice.between(0, 5));
    RoutedLinearProblem problem =
        of_way(routing, dice.between(0, dice.between(1, 300) / step) * step,
               dice.between(0, dice.between(1, 150) / step) * step, way);
    problem.gathers = dice.between(0, 1) == 1, problem.scatters = dice.between(0, 1) == 1;
    problem.has_gates = dice.between(0, 1) == 1;
    if (dice.between(0, 2) == 0) {
      problem.x_row_stride = problem.in_features + dice.between(0, 9);
      problem.y_row_stride = problem.out_features + dice.between(0, 9);
    }
    INFO("case " << i << ": " << way.strategy << ", " << dtype_name(way.dtype));
    check_routed(bench, problem, routing, way.strategy, dice.between(0, 3) == 0 ? 1 : 0);
  }
}

TEST_CASE("routed_linear on CUDA: a row's bits do not depend on where the others go") {
  TestDevice bench(require_cuda());
  const Way way = any_way();
  const auto outputs_of = [&](const Routing& one) {
    RoutedLinearProblem problem = of_way(one, 40, 33, way);
    problem.gathers = problem.scatters = true;
    problem.epilogue.activation = Activation::gelu;
    problem.epilogue.alpha = 0.1f;
    const auto plan = make_routed_linear_plan(bench.context(), problem, {.strategy = way.strategy});
    PlacedRouted placed(bench, problem, one);
    plan.run(placed.arguments(), bench.execution(plan.workspace_bytes()));
    return EveryThird::rows(placed.outputs(), 33 * dtype_bytes(way.dtype));
  };
  const auto first = outputs_of(EveryThird::routing([](int64_t) { return 0; }));
  CHECK(outputs_of(EveryThird::routing([](int64_t) { return 3; })) == first);
  CHECK(outputs_of(EveryThird::routing([](int64_t row) { return row % 2 == 0 ? -1 : 2; })) ==
        first);
}

TEST_CASE("routed_linear on CUDA: a captured call follows a new routing") {
  TestDevice bench(require_cuda());
  const std::string strategy = GENERATE("simt", "tensor_core", "sequential");
  const Routing first = routing_of_counts({5, 0, 70, 2}, 3);
  RoutedLinearProblem problem = routed_problem(first, 24, 20, Dtype::bf16);
  problem.gathers = problem.scatters = problem.has_gates = true;
  const auto plan = make_routed_linear_plan(bench.context(), problem, {.strategy = strategy});
  PlacedRouted placed(bench, problem, first);
  CapturedCall call(bench.stream(),
                    [&] { plan.run(placed.arguments(), bench.execution(plan.workspace_bytes())); });
  CHECK(call.num_nodes() == (strategy == "sequential" ? 5 : 1));
  for (const Routing& routing :
       {first, routing_of_counts({0, 80, 0, 0}), routing_of_counts({20, 20, 20, 20}, 0, 8),
        routing_of_counts({0, 0, 0, 0}, 80), routing_of_counts({17, 1, 2, 40}, 20)}) {
    placed.route(routing);
    call.launch();
    placed.check();
  }
}

TEST_CASE("routed_linear on CUDA: a wrong routing reads and writes operands only") {
  TestDevice bench(require_cuda());
  const Way way = any_way();
  const Routing routing = routing_of_counts({20, 3, 97}, 8);
  RoutedLinearProblem problem = of_way(routing, 16, 8, way);
  problem.gathers = true, problem.has_gates = true;
  problem.epilogue.residual = Residual::before_activation;
  const int64_t misalign = GENERATE(0, 1);
  PlacedRouted placed(bench, problem, routing, misalign);
  const auto plan = make_routed_linear_plan(bench.context(), problem, {.strategy = way.strategy});
  check_wrong_routings(bench, plan, placed, routing);
}

TEST_CASE("routed_linear on CUDA: a mixture of experts") {
  TestDevice bench(require_cuda());
  CHECK(mixture_error(bench, "simt", Dtype::fp32) < 1e-4);
  CHECK(mixture_error(bench, "sequential", Dtype::fp32) < 1e-4);
  CHECK(mixture_error(bench, "tensor_core", Dtype::fp32, true) < 3e-2);
  CHECK(mixture_error(bench, "tensor_core", Dtype::bf16) < 0.2);
}

}  // namespace
}  // namespace wide::test
