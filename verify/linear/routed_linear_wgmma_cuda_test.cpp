// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// routed_linear's wgmma on CUDA: halves of its tiles around their edges, rings of stages and of
// tables that come round, places and epilogues of all kinds, exactly. Skipped without a device of
// compute capability 9.0. Sizes are small enough for a simulated one.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "host/linear/routed_linear_problem.hpp"
#include "host/linear/routed_linear_run.hpp"
#include "verify/linear/routed_linear_mixture.hpp"
#include "verify/support/captured_call_cuda.hpp"
#include "verify/support/devices.hpp"

namespace wide::test {
namespace {

using Catch::Matchers::ContainsSubstring;
using enum kernels::LinearWgmmaTile;

constexpr const char* kWgmma = "wgmma";

TestDevice hopper() {
  TestDevice bench(require_cuda());
  if (bench.context().info().compute_capability != 90) SKIP("wgmma needs compute capability 9.0");
  return bench;
}

/// By a kernel that is told of so many multiprocessors: each block has many tiles then.
void check_on(TestDevice& bench, int multiprocessors, kernels::LinearWgmmaTile tile,
              const RoutedLinearProblem& like, const Routing& routing) {
  const RoutedLinearProblem problem = complete_routed_linear_problem(like);
  DeviceInfo device = bench.context().info();
  device.num_multiprocessors = multiprocessors;
  REQUIRE(routed_linear_unsupported_reason(RoutedLinearStrategy::wgmma, problem, device) == "");
  CHECK(choose_routed_wgmma_tile(problem, device) == tile);
  PlacedRouted placed(bench, problem, routing);
  run_routed_linear_cuda(device, RoutedLinearStrategy::wgmma, problem, placed.arguments(),
                         bench.stream());
  placed.check();
}

TEST_CASE("routed_linear by wgmma: halves of tiles around their edges, each way to places") {
  TestDevice bench = hopper();
  const Dtype dtype = GENERATE(Dtype::fp16, Dtype::bf16);
  const bool gathers = GENERATE(false, true), scatters = GENERATE(false, true);
  INFO(dtype_name(dtype) << (gathers ? ", gathers" : "") << (scatters ? ", scatters" : ""));
  const Routing routing = routing_of_counts({0, 1, 63, 64, 65, 0, 127, 128, 129, 2}, 131);
  RoutedLinearProblem problem = routed_problem(routing, 72, 72, dtype);
  problem.gathers = gathers, problem.scatters = scatters;
  check_routed(bench, problem, routing, kWgmma);
  problem.has_gates = true;
  problem.choices = gathers ? 10 : 1;
  check_routed(bench, problem, routing, kWgmma);
}

TEST_CASE("routed_linear by wgmma: rings that come round, blocks of many tiles, ragged edges") {
  TestDevice bench = hopper();
  struct Size {
    int64_t in, out;
    kernels::LinearWgmmaTile tile;
  };
  // Of stages of 64 inputs, fewer than a warp may have copied ahead, and more than a ring of 6 or 4
  // has; parts of them.
  const Size size =
      GENERATE(Size{8, 200, m128n256}, Size{584, 264, m128n256}, Size{448, 100, m128n128},
               Size{328, 452, m128n256}, Size{64, 256, m128n256});
  const int multiprocessors = GENERATE(1, 2, 5);
  INFO(size.in << " x " << size.out << " on " << multiprocessors);
  const Routing routing = routing_of_counts({70, 0, 1, 200, 128, 0, 0, 64, 30}, 140);
  RoutedLinearProblem problem = routed_problem(routing, size.in, size.out, Dtype::bf16);
  problem.gathers = problem.scatters = problem.has_gates = true;
  check_on(bench, multiprocessors, size.tile, problem, routing);
}

TEST_CASE("routed_linear by wgmma: one member has all, or nobody has any, or there is nothing") {
  TestDevice bench = hopper();
  for (const Routing& routing :
       {routing_of_counts({0, 0, 300, 0}), routing_of_counts({0, 0}, 130), routing_of_counts({300}),
        routing_of_counts({1}), routing_of_counts({0, 0}),
        routing_of_counts(counts_of_many(1025), 20)}) {
    RoutedLinearProblem problem = routed_problem(routing, 24, 65, Dtype::bf16);
    problem.scatters = true;
    check_routed(bench, problem, routing, kWgmma);
  }
  const Routing routing = routing_of_counts({3, 20}, 1);
  check_routed(bench, routed_problem(routing, 8, 0, Dtype::bf16), routing, kWgmma);
  check_routed(bench, routed_problem(routing, 0, 8, Dtype::bf16), routing, kWgmma);
}

TEST_CASE("routed_linear by wgmma: the whole epilogue, strides, in place, another kernel's case") {
  TestDevice bench = hopper();
  const Routing routing = routing_of_counts({5, 0, 90, 2}, 3);
  RoutedLinearProblem problem = routed_problem(routing, 19, 70, Dtype::bf16);
  problem.epilogue = {.has_bias = GENERATE(true, false),
                      .activation = Activation::relu,
                      .scale = GENERATE(OutputScale::per_member, OutputScale::per_output),
                      .residual = GENERATE(Residual::before_activation, Residual::after_activation),
                      .alpha = 2};
  problem.has_gates = problem.scatters = true;
  problem.x_row_stride = 24, problem.weight = {24, 70 * 24};
  check_routed(bench, problem, routing, kWgmma, 0, true);
  check_routed(bench, problem, routing, kWgmma, 1);
  problem.in_features = 72, problem.out_features = 136;
  problem.x_row_stride = 80, problem.weight = {88, 136 * 88}, problem.y_row_stride = 140;
  problem.residual_row_stride = 148;
  problem.scatters = false, problem.gathers = true;
  check_routed(bench, problem, routing, kWgmma);
  const auto plan = make_routed_linear_plan(bench.context(), problem, {.strategy = kWgmma});
  CHECK_THAT(plan.explain(), ContainsSubstring("; tiles of m128n"));
  CHECK_THAT(plan.explain(),
             ContainsSubstring("; by tensor_core where x or weight is not aligned to 16 bytes"));
}

TEST_CASE("routed_linear by wgmma: x alone, or weight, is not aligned to 16 bytes") {
  TestDevice bench = hopper();
  const bool is_x = GENERATE(true, false);
  const Routing routing = routing_of_counts({5, 70}, 3);
  const auto outputs_by = [&](const char* strategy) {
    const RoutedLinearProblem like = routed_problem(routing, 72, 40, Dtype::bf16);
    PlacedRouted placed(bench, like, routing);
    RoutedLinearArguments arguments = placed.arguments();
    arguments.x.shape[1] = arguments.weight.shape[2] = 64;
    const void*& moved = is_x ? arguments.x.data : arguments.weight.data;
    moved = static_cast<const std::byte*>(moved) + dtype_bytes(Dtype::bf16);
    const auto plan = make_routed_linear_plan(
        bench.context(), describe_routed_linear(arguments, like), {.strategy = strategy});
    plan.run(arguments, bench.execution(plan.workspace_bytes()));
    return placed.outputs();
  };
  CHECK(outputs_by(kWgmma) == outputs_by("tensor_core"));
}

TEST_CASE("routed_linear by wgmma: random routings and places, exactly") {
  TestDevice bench = hopper();
  Dice dice(6);
  const int cases = wants_small_cases() ? 30 : 200;
  for (int i = 0; i < cases; ++i) {
    std::vector<int64_t> counts;
    for (int64_t m = dice.between(1, 9); m > 0; --m) {
      counts.push_back(dice.between(0, dice.between(1, 180)));
    }
    const Routing routing = routing_of_counts(counts, dice.between(0, 150));
    RoutedLinearProblem problem = routed_problem(
        routing, dice.between(1, dice.between(1, 60)) * 8, dice.between(1, dice.between(1, 300)),
        dice.between(0, 1) == 0 ? Dtype::fp16 : Dtype::bf16);
    problem.gathers = dice.between(0, 1) == 1, problem.scatters = dice.between(0, 1) == 1;
    problem.has_gates = dice.between(0, 1) == 1;
    INFO("case " << i);
    DeviceInfo device = bench.context().info();
    device.num_multiprocessors = static_cast<int>(dice.between(1, 7));
    check_on(bench, device.num_multiprocessors, choose_routed_wgmma_tile(problem, device), problem,
             routing);
  }
}

TEST_CASE("routed_linear by wgmma: a row's bits do not depend on where the others go") {
  TestDevice bench = hopper();
  const auto outputs_of = [&](const Routing& one) {
    RoutedLinearProblem problem = routed_problem(one, 40, 33, Dtype::bf16);
    problem.gathers = problem.scatters = true;
    problem.epilogue.activation = Activation::gelu;
    problem.epilogue.alpha = 0.1f;
    const auto plan = make_routed_linear_plan(bench.context(), problem, {.strategy = kWgmma});
    PlacedRouted placed(bench, problem, one);
    plan.run(placed.arguments(), bench.execution(plan.workspace_bytes()));
    return EveryThird::rows(placed.outputs(), 33 * dtype_bytes(Dtype::bf16));
  };
  const auto first = outputs_of(EveryThird::routing([](int64_t) { return 0; }));
  CHECK(outputs_of(EveryThird::routing([](int64_t) { return 3; })) == first);
  CHECK(outputs_of(EveryThird::routing([](int64_t row) { return row % 2 == 0 ? -1 : 2; })) ==
        first);
}

TEST_CASE("routed_linear by wgmma: a captured call follows a new routing") {
  TestDevice bench = hopper();
  const Routing first = routing_of_counts({5, 0, 170, 2}, 3);
  RoutedLinearProblem problem = routed_problem(first, 24, 20, Dtype::bf16);
  problem.gathers = problem.scatters = problem.has_gates = true;
  const auto plan = make_routed_linear_plan(bench.context(), problem, {.strategy = kWgmma});
  PlacedRouted placed(bench, problem, first);
  CapturedCall call(bench.stream(),
                    [&] { plan.run(placed.arguments(), bench.execution(plan.workspace_bytes())); });
  CHECK(call.num_nodes() == 1);
  for (const Routing& routing :
       {first, routing_of_counts({0, 180, 0, 0}), routing_of_counts({45, 45, 45, 45}, 0, 8),
        routing_of_counts({0, 0, 0, 0}, 180), routing_of_counts({65, 1, 64, 30}, 20)}) {
    placed.route(routing);
    call.launch();
    placed.check();
  }
}

TEST_CASE("routed_linear by wgmma: a wrong routing reads and writes operands only") {
  TestDevice bench = hopper();
  const Routing routing = routing_of_counts({20, 3, 197}, 8);
  RoutedLinearProblem problem = routed_problem(routing, 16, 8, Dtype::fp16);
  problem.gathers = true, problem.has_gates = true;
  problem.epilogue.residual = Residual::before_activation;
  PlacedRouted placed(bench, problem, routing);
  const auto plan = make_routed_linear_plan(bench.context(), problem, {.strategy = kWgmma});
  check_wrong_routings(bench, plan, placed, routing);
}

TEST_CASE("routed_linear by wgmma: a mixture of experts") {
  TestDevice bench = hopper();
  CHECK(mixture_error(bench, kWgmma, Dtype::bf16) < 0.2);
}

}  // namespace
}  // namespace wide::test
