// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Two grouped calls of cuBLAS's in one captured graph, in one workspace, as the steps of a captured
// model and the calls of regime graph are: descriptors that one leaves there must not be taken for
// the other's in a later replay. Grouped products are known to have hung at the second one
// (NVIDIA/TransformerEngine, pull request 3171). A line begins each replay: a process that hangs
// has named it (scripts/gpu_check.d/scouts).
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <iostream>
#include <string>

#include "verify/linear/ragged_linear_case.hpp"
#include "verify/support/captured_call_cuda.hpp"
#include "verify/support/devices.hpp"

namespace wide::test {
namespace {

void require_cublas(const TestDevice& bench) {
  if (bench.handles().cublas() != nullptr) return;
  SKIP("no cuBLAS: " << bench.handles().cublas_unavailable_reason());
}

/// The calls by themselves, which may load kernels, and then as one graph, again and again.
template <class Plan, class Placed>
void replay_two(TestDevice& bench, const std::string& what, const Plan& first, Placed& of_first,
                const Plan& second, Placed& of_second) {
  const Execution execution =
      bench.execution(std::max(first.workspace_bytes(), second.workspace_bytes()));
  const auto run = [&] {
    first.run(of_first.arguments(), execution);
    second.run(of_second.arguments(), execution);
  };
  run();
  CapturedCall both(bench.stream(), run);
  for (int replay = 1; replay <= 3; ++replay) {
    std::cout << "begins  replay " << replay << " of " << what << std::endl;
    of_first.poison();
    of_second.poison();
    both.launch();
    of_first.check();
    of_second.check();
  }
}

LinearProblem linear_problem(Dtype dtype, int64_t num_members, int64_t batch, int64_t in) {
  LinearProblem problem{
      .num_members = num_members, .batch = batch, .in_features = in, .out_features = 64};
  problem.dtype = dtype;
  return problem;
}

TEST_CASE("grouped replay: two of linear in one workspace", "[linear]") {
  TestDevice bench(require_cuda());
  require_cublas(bench);
  const Dtype dtype = GENERATE(Dtype::bf16, Dtype::fp32);
  const auto plan_of = [&](const LinearProblem& problem) {
    return make_linear_plan(bench.context(), problem, {.strategy = "cublas_grouped"});
  };
  const LinearPlan first = plan_of(linear_problem(dtype, 2, 64, 128)),
                   second = plan_of(linear_problem(dtype, 3, 72, 96));
  PlacedLinear of_first(bench, first.problem()), of_second(bench, second.problem());
  replay_two(bench, "linear in " + std::string(dtype_name(dtype)), first, of_first, second,
             of_second);
}

TEST_CASE("grouped replay: two of ragged_linear in one workspace", "[ragged_linear]") {
  TestDevice bench(require_cuda());
  require_cublas(bench);
  const Dtype dtype = GENERATE(Dtype::bf16, Dtype::fp32);
  RaggedLinearProblem problem;
  problem.members = {ragged_member(64, 128, 64), ragged_member(64, 128, 64),
                     ragged_member(8, 64, 128), ragged_member(72, 96, 64)};
  problem.dtype = dtype;
  const auto plan =
      make_ragged_linear_plan(bench.context(), problem, {.strategy = "cublas_grouped"});
  PlacedRagged of_first(bench, problem), of_second(bench, problem, 0, {7, 2, 9, 4});
  replay_two(bench, "ragged_linear in " + std::string(dtype_name(dtype)), plan, of_first, plan,
             of_second);
}

}  // namespace
}  // namespace wide::test
