// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// routed_mlp on CUDA: routings, places and networks of all kinds, exactly; what a row's bits depend
// on; that a captured call follows a new routing, and that a wrong one touches nothing else.
// Skipped without a device. Sizes are small enough for a simulated one.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "host/fused/routed_mlp_problem.hpp"
#include "host/fused/routed_mlp_strategy.hpp"
#include "verify/fused/routed_mlp_case.hpp"
#include "verify/support/captured_call_cuda.hpp"
#include "verify/support/devices.hpp"

namespace wide::test {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Every strategy with every kind of products that it has.
struct Way {
  std::string strategy;
  Dtype dtype;
  bool allows_tf32 = false;
};

std::string text(const Way& way) {
  return way.strategy + ", " + std::string(dtype_name(way.dtype)) +
         (way.allows_tf32 ? " as tf32" : "");
}

Way fused_way() {
  return GENERATE(Way{"fused", Dtype::fp32}, Way{"fused", Dtype::fp32, true},
                  Way{"fused", Dtype::fp16}, Way{"fused", Dtype::bf16});
}
Way any_way() {
  return GENERATE(Way{"fused", Dtype::fp32}, Way{"fused", Dtype::fp32, true},
                  Way{"fused", Dtype::fp16}, Way{"fused", Dtype::bf16},
                  Way{"layerwise", Dtype::fp32}, Way{"layerwise", Dtype::bf16},
                  Way{"sequential", Dtype::fp16});
}

RoutedMlpProblem of_way(const Routing& routing, std::vector<int64_t> widths, const Way& way) {
  RoutedMlpProblem problem = routed_mlp_problem(routing, std::move(widths), way.dtype);
  problem.allow_tf32 = way.allows_tf32;
  return problem;
}

TEST_CASE("routed_mlp on CUDA: rows gathered and scattered, gates and choices") {
  TestDevice bench(require_cuda());
  const Way way = any_way();
  const bool gathers = GENERATE(false, true), scatters = GENERATE(false, true);
  INFO(text(way) << (gathers ? ", gathers" : "") << (scatters ? ", scatters" : ""));
  const Routing routing = routing_of_counts({5, 0, 20, 2}, 3);
  RoutedMlpProblem problem = of_way(routing, {24, 40, 16}, way);
  problem.gathers = gathers, problem.scatters = scatters;
  for (const int64_t misalign : {0, 1}) {
    check_routed_mlp(bench, problem, routing, way.strategy, misalign);
  }
  problem.has_gates = true;
  for (const int64_t choices : {1, 2, 3}) {
    problem.choices = gathers ? choices : 1;
    check_routed_mlp(bench, problem, routing, way.strategy);
  }
}

TEST_CASE("routed_mlp on CUDA: counts around a warp's rows, a block's, and several blocks'") {
  TestDevice bench(require_cuda());
  const Way way = fused_way();
  INFO(text(way));
  RoutedMlpProblem problem = of_way(routing_of_counts({9, 9, 9, 9, 9, 9, 9}), {8, 16, 4}, way);
  const int64_t tile =
      choose_routed_mlp_shape(complete_routed_mlp_problem(problem), bench.context().info()).tile;
  for (const int64_t count : {int64_t{7}, int64_t{8}, int64_t{9}, int64_t{15}, int64_t{16},
                              int64_t{17}, tile - 1, tile, tile + 1, 2 * tile}) {
    // The tile depends on the rows of all; here it is no smaller.
    const Routing routing = routing_of_counts({count, 1, 0, count, 2, 0, 0}, count);
    problem.num_rows = routing.num_rows();
    problem.gathers = problem.scatters = true;
    check_routed_mlp(bench, problem, routing, way.strategy);
  }
}

TEST_CASE("routed_mlp on CUDA: rounds of a block, where weights stay and where they pass by") {
  TestDevice bench(require_cuda());
  const Way way = fused_way();
  INFO(text(way));
  // The mean is small for eight members, of which one has nearly all; of one member it is not.
  std::vector<int64_t> counts(8, 1);
  counts[3] = 300;
  // Two strips of fp32 rows that wide do not fit in every device's shared memory.
  const int64_t wide = way.allows_tf32 ? 200 : 256;
  for (const Routing& routing : {routing_of_counts(counts, 40), routing_of_counts({600}, 70)}) {
    for (const std::vector<int64_t>& widths :
         {std::vector<int64_t>{24, 70, 33}, std::vector<int64_t>{24, wide, wide, 40}}) {
      RoutedMlpProblem problem = of_way(routing, widths, way);
      problem.gathers = true, problem.has_gates = true;
      check_routed_mlp(bench, problem, routing, way.strategy);
    }
  }
}

TEST_CASE("routed_mlp on CUDA: layers of many outputs and rows, some by wgmma") {
  TestDevice bench(require_cuda());
  if (bench.context().info().compute_capability != 90) SKIP("wgmma needs compute capability 9.0");
  const Routing routing = routing_of_counts({150, 106}, 4);
  // Enough tiles of outputs for half of the device's multiprocessors, of which three are rows'.
  const int64_t hidden = 256 * (bench.context().info().num_multiprocessors / 6 + 1);
  RoutedMlpProblem problem = routed_mlp_problem(routing, {20, hidden, 12}, Dtype::bf16);
  problem.gathers = problem.scatters = problem.has_gates = true;
  problem.x_row_stride = 24;
  const auto plan = make_routed_mlp_plan(bench.context(), problem, {.strategy = "layerwise"});
  CHECK_THAT(plan.explain(), ContainsSubstring("wgmma, tensor_core"));
  for (const int64_t misalign : {0, 1}) {
    check_routed_mlp(bench, problem, routing, "layerwise", misalign);
  }
}

TEST_CASE("routed_mlp on CUDA: networks of every width of registers, deep ones, single layers") {
  TestDevice bench(require_cuda());
  const Way way = any_way();
  INFO(text(way));
  const Routing routing = routing_of_counts({3, 0, 18}, 2);
  for (const std::vector<int64_t>& widths :
       {std::vector<int64_t>{1, 1}, std::vector<int64_t>{64, 64, 64},
        std::vector<int64_t>{7, 65, 9}, std::vector<int64_t>{130, 20, 190},
        std::vector<int64_t>(17, 12)}) {
    RoutedMlpProblem problem = of_way(routing, widths, way);
    problem.scatters = true, problem.has_gates = true;
    problem.last_activation = Activation::relu;
    check_routed_mlp(bench, problem, routing, way.strategy);
    problem.has_bias = false;
    problem.activation = Activation::none;
    check_routed_mlp(bench, problem, routing, way.strategy);
  }
}

TEST_CASE("routed_mlp on CUDA: one member has all, or nobody has any, or there is none") {
  TestDevice bench(require_cuda());
  const Way way = any_way();
  INFO(text(way));
  for (const Routing& routing :
       {routing_of_counts({0, 0, 130, 0}), routing_of_counts({0, 0}, 130),
        routing_of_counts({64, 64, 64}), routing_of_counts({130}), routing_of_counts({0, 0})}) {
    RoutedMlpProblem problem = of_way(routing, {24, 30, 9}, way);
    problem.scatters = true;
    check_routed_mlp(bench, problem, routing, way.strategy);
  }
}

TEST_CASE("routed_mlp on CUDA: a search of one step, of two, and of three") {
  TestDevice bench(require_cuda());
  const int64_t members = GENERATE(31, 32, 33, 64, 65, 1023, 1024, 1025);
  const Routing routing = routing_of_counts(counts_of_many(members), 20);
  RoutedMlpProblem problem = routed_mlp_problem(routing, {8, 8, 3}, Dtype::bf16);
  problem.gathers = true;
  INFO(members << " members");
  check_routed_mlp(bench, problem, routing, "fused");
}

TEST_CASE("routed_mlp on CUDA: strides of rows and of members' weights") {
  TestDevice bench(require_cuda());
  const Way way = any_way();
  INFO(text(way));
  const Routing routing = routing_of_counts({5, 0, 20, 2}, 3);
  RoutedMlpProblem problem = of_way(routing, {24, 17, 16}, way);
  problem.x_row_stride = 32, problem.y_row_stride = 24;
  problem.weights_member_stride = mlp_member_elements(networks_of(problem)) + 16;
  problem.gathers = GENERATE(true, false);
  problem.scatters = !problem.gathers;
  check_routed_mlp(bench, problem, routing, way.strategy);
  check_routed_mlp(bench, problem, routing, way.strategy, 3);
  problem.x_row_stride = 29, problem.y_row_stride = 19;
  check_routed_mlp(bench, problem, routing, way.strategy);
}

TEST_CASE("routed_mlp on CUDA: random routings, places and networks, exactly") {
  TestDevice bench(require_cuda());
  Dice dice(5);
  const int cases = wants_small_cases() ? 40 : 200;
  for (int i = 0; i < cases; ++i) {
    const Way ways[] = {{"fused", Dtype::fp32},
                        {"fused", Dtype::fp32, true},
                        {"fused", Dtype::fp16},
                        {"fused", Dtype::bf16},
                        {"layerwise", Dtype::bf16}};
    const Way& way = dice.one_of(ways);
    std::vector<int64_t> counts, widths;
    for (int64_t m = dice.between(1, 9); m > 0; --m) {
      counts.push_back(dice.between(0, dice.between(1, 90)));
    }
    for (int64_t l = dice.between(2, 5); l > 0; --l) widths.push_back(dice.size(100));
    const Routing routing = routing_of_counts(counts, dice.between(0, 5));
    RoutedMlpProblem problem = of_way(routing, widths, way);
    problem.gathers = dice.toss(), problem.scatters = dice.toss();
    problem.has_gates = dice.toss(), problem.has_bias = dice.toss();
    if (dice.toss()) {
      problem.x_row_stride = problem.widths.front() + dice.between(0, 9);
      problem.y_row_stride = problem.widths.back() + dice.between(0, 9);
    }
    INFO("case " << i << ": " << text(way));
    check_routed_mlp(bench, problem, routing, way.strategy, dice.between(0, 3) == 0 ? 1 : 0);
  }
}

TEST_CASE("routed_mlp on CUDA: a row's bits do not depend on where the others go") {
  TestDevice bench(require_cuda());
  const Way way = any_way();
  INFO(text(way));
  const auto outputs_of = [&](const Routing& one) {
    RoutedMlpProblem problem = of_way(one, {40, 24, 33}, way);
    problem.gathers = problem.scatters = true;
    problem.activation = problem.last_activation = Activation::gelu;
    const auto plan = make_routed_mlp_plan(bench.context(), problem, {.strategy = way.strategy});
    PlacedRoutedMlp placed(bench, problem, one);
    plan.run(placed.arguments(), bench.execution(plan.workspace_bytes()));
    return EveryThird::rows(placed.outputs(), 33 * dtype_bytes(way.dtype));
  };
  const auto first = outputs_of(EveryThird::routing([](int64_t) { return 0; }));
  CHECK(outputs_of(EveryThird::routing([](int64_t) { return 3; })) == first);
  CHECK(outputs_of(EveryThird::routing([](int64_t row) { return row % 2 == 0 ? -1 : 2; })) ==
        first);
  if (way.strategy != "fused") return;
  // Fused, not even on how many rows its member has.
  const auto more = outputs_of(EveryThird::routing([](int64_t row) { return row % 4; }));
  CHECK(more == first);
}

TEST_CASE("routed_mlp on CUDA: a captured call follows a new routing") {
  TestDevice bench(require_cuda());
  const std::string strategy = GENERATE("fused", "layerwise", "sequential");
  const Routing first = routing_of_counts({5, 0, 70, 2}, 3);
  RoutedMlpProblem problem = routed_mlp_problem(first, {24, 20, 12}, Dtype::bf16);
  problem.gathers = problem.scatters = problem.has_gates = true;
  const auto plan = make_routed_mlp_plan(bench.context(), problem, {.strategy = strategy});
  PlacedRoutedMlp placed(bench, problem, first);
  CapturedCall call(bench.stream(),
                    [&] { plan.run(placed.arguments(), bench.execution(plan.workspace_bytes())); });
  CHECK(call.num_nodes() == (strategy == "fused" ? 1 : strategy == "layerwise" ? 2 : 10));
  for (const Routing& routing :
       {first, routing_of_counts({0, 80, 0, 0}), routing_of_counts({20, 20, 20, 20}, 0, 8),
        routing_of_counts({0, 0, 0, 0}, 80), routing_of_counts({17, 1, 2, 40}, 20)}) {
    placed.route(routing);
    call.launch();
    placed.check();
  }
}

TEST_CASE("routed_mlp on CUDA: a wrong routing reads and writes operands only") {
  TestDevice bench(require_cuda());
  const Way way = any_way();
  INFO(text(way));
  const Routing routing = routing_of_counts({20, 3, 97}, 8);
  RoutedMlpProblem problem = of_way(routing, {16, 24, 8}, way);
  problem.gathers = true, problem.has_gates = true;
  const int64_t misalign = GENERATE(0, 1);
  PlacedRoutedMlp placed(bench, problem, routing, misalign);
  const auto plan = make_routed_mlp_plan(bench.context(), problem, {.strategy = way.strategy});
  check_wrong_routings(bench, plan, placed, routing);
}

}  // namespace
}  // namespace wide::test
