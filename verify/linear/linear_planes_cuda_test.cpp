// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Sums whose k is divided over blocks: exactly the same results, whatever the shares and the
// epilogue behind them.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "host/linear/linear_strategy.hpp"
#include "verify/linear/linear_case.hpp"
#include "verify/support/devices.hpp"

namespace wide::test {
namespace {

using Catch::Matchers::ContainsSubstring;

struct Size {
  int64_t batch, in, out;
  int planes;  // of 16-bit elements, 64 in a step
};

LinearProblem problem_of(const Size& size, Dtype dtype) {
  LinearProblem problem;
  problem.num_members = 2;
  problem.batch = size.batch;
  // As many steps: half the elements of twice the size.
  problem.in_features = dtype == Dtype::fp32 ? (size.in + 1) / 2 : size.in;
  problem.out_features = size.out;
  problem.dtype = dtype;
  problem.epilogue.has_bias = true;
  return problem;
}

void check(TestDevice& bench, const LinearProblem& problem, const std::string& strategy, int planes,
           int64_t misalign = 0, bool is_in_place = false) {
  const LinearPlan plan = make_linear_plan(bench.context(), problem, {.strategy = strategy});
  CHECK_THAT(plan.explain(),
             ContainsSubstring("k divided over " + std::to_string(planes) + " blocks"));
  CHECK(plan.workspace_bytes() > 0);
  check_placed(bench, problem, strategy, misalign, is_in_place);
}

TEST_CASE("linear with k divided: tiles, shares of unequal length, ragged ends") {
  TestDevice bench(require_cuda());
  const Size size = GENERATE(Size{3, 4096, 20, 2}, Size{16, 6209, 33, 3}, Size{7, 4168, 260, 2},
                             Size{40, 4160, 64, 2});
  const auto [strategy, dtype] =
      GENERATE(std::pair{"small_m", Dtype::fp16}, std::pair{"small_m", Dtype::bf16},
               std::pair{"tf32x3", Dtype::fp32});
  const int64_t misalign = GENERATE(0, 1);
  if (misalign != 0 && dtype == Dtype::fp16) return;  // the same way as bf16's
  INFO(strategy << ", " << size.batch << " x " << size.in << " x " << size.out);
  check(bench, problem_of(size, dtype), strategy, size.planes, misalign);
}

TEST_CASE("linear with k divided: every epilogue, in place, one input for all") {
  TestDevice bench(require_cuda());
  const Residual residual = GENERATE(Residual::before_activation, Residual::after_activation);
  LinearProblem problem = problem_of({5, 4200, 35, 2}, Dtype::bf16);
  problem.epilogue = {.has_bias = true,
                      .activation = Activation::relu,
                      .scale = OutputScale::per_output,
                      .residual = residual,
                      .alpha = -0.5f};
  check(bench, problem, "small_m", 2, 0, true);
  problem.y = {2 * 37 + 1, 37};
  problem.shared_input = true;
  check(bench, problem, "small_m", 2);
  problem.y = {};
  problem.residual = {};
  check(bench, problem, "shared_input", 2);
}

}  // namespace
}  // namespace wide::test
