// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// linear on CUDA: all strategies in every layout, the tiles and load paths of the hand-rolled
// kernel, and packing. Skipped without a device. Sizes are small enough for a simulated one.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cstdlib>

#include "verify/linear_case.hpp"
#include "verify/support/devices.hpp"

namespace wide::test {
namespace {

/// Skips the strategies that need a cuBLAS that cannot start: simulated devices have none.
void require_strategy(const TestDevice& device, const std::string& strategy) {
  if (strategy == "simt" || device.handles().cublas() != nullptr) return;
  const char* is_required = std::getenv("WIDE_REQUIRE_GPU");
  if (is_required != nullptr && std::string(is_required) == "1" && !wants_small_cases()) {
    FAIL("WIDE_REQUIRE_GPU=1, but " << device.handles().cublas_unavailable_reason());
  }
  SKIP("no cuBLAS: " << device.handles().cublas_unavailable_reason());
}

TEST_CASE("linear on CUDA: every layout and dtype, exactly") {
  TestDevice bench(require_cuda());
  const std::string strategy = GENERATE("simt", "sequential", "cublas_batched");
  require_strategy(bench, strategy);
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::fp16, Dtype::bf16);
  const int64_t misalign = GENERATE(0, 1);
  for (const auto& [name, problem] : layouts(small_problem(dtype))) {
    INFO(name << ", " << dtype_name(dtype) << ", " << strategy << ", misaligned by " << misalign);
    check_placed(bench, problem, strategy, misalign);
  }
}

TEST_CASE("linear on CUDA: every tile, aligned and not, around its edges") {
  TestDevice bench(require_cuda());
  struct Size {
    int64_t batch, in, out;
  };
  // Tiles of 16 x 64, 64 x 64 and 128 x 128 outputs over stages of 32 (fp32) or 64 inputs.
  const Size size = GENERATE(Size{16, 256, 64}, Size{17, 72, 65}, Size{1, 129, 3}, Size{64, 64, 64},
                             Size{33, 31, 70}, Size{128, 64, 128}, Size{130, 40, 129});
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::fp16, Dtype::bf16);
  const int64_t misalign = GENERATE(0, 1);
  LinearProblem problem;
  problem.num_members = 2;
  problem.batch = size.batch;
  problem.in_features = size.in;
  problem.out_features = size.out;
  problem.dtype = dtype;
  problem.epilogue.has_bias = true;
  INFO(size.batch << " x " << size.in << " x " << size.out << ", " << dtype_name(dtype)
                  << ", misaligned by " << misalign);
  check_placed(bench, problem, "simt", misalign);
}

TEST_CASE("linear on CUDA: both load paths of simt give the same bits") {
  TestDevice bench(require_cuda());
  const std::string dtype = GENERATE("fp32", "fp16", "bf16");
  const Values values{{"n", int64_t{2}},    {"batch", int64_t{20}},        {"in", int64_t{144}},
                      {"out", int64_t{72}}, {"dtype", std::string(dtype)}, {"activation", "gelu"}};
  catalog::WorkloadOptions options;
  const auto aligned = check_case(bench, "simt", values, options);
  options.misalign_elements = 1;
  CHECK(check_case(bench, "simt", values, options).members == aligned.members);
  options.row_padding = 3;
  CHECK(check_case(bench, "simt", values, options).members == aligned.members);
}

TEST_CASE("linear on CUDA: activations, bias and shared input against the reference") {
  TestDevice bench(require_cuda());
  const std::string strategy = GENERATE("simt", "sequential", "cublas_batched");
  require_strategy(bench, strategy);
  const std::string activation = GENERATE("none", "relu", "gelu", "silu");
  const std::string dtype = GENERATE("fp32", "bf16", "fp16");
  const std::string bias = GENERATE("yes", "no");
  check_case(bench, strategy,
             {{"n", int64_t{2}},
              {"batch", int64_t{9}},
              {"in", int64_t{40}},
              {"out", int64_t{21}},
              {"activation", activation},
              {"dtype", dtype},
              {"bias", bias},
              {"shared", bias}});
}

TEST_CASE("linear on CUDA: tf32 only where it is allowed") {
  TestDevice bench(require_cuda());
  const std::string strategy = GENERATE("simt", "sequential", "cublas_batched");
  require_strategy(bench, strategy);
  const std::string tf32 = GENERATE("no", "yes");
  check_case(bench, strategy,
             {{"n", int64_t{3}}, {"batch", int64_t{16}}, {"d", int64_t{128}}, {"tf32", tf32}});
}

TEST_CASE("linear on CUDA: empty sizes") {
  TestDevice bench(require_cuda());
  const std::string strategy = GENERATE("simt", "sequential", "cublas_batched");
  LinearProblem problem = small_problem();
  SECTION("no rows") {
    problem.batch = 0;
  }
  SECTION("no outputs") {
    problem.out_features = 0;
  }
  SECTION("no inputs: the bias alone") {
    problem.in_features = 0;
  }
  SECTION("no inputs and no bias: zeros") {
    problem.in_features = 0;
    problem.epilogue.has_bias = false;
  }
  check_placed(bench, problem, strategy);
}

TEST_CASE("linear on CUDA: cuBLAS strategies ask for what they need") {
  TestDevice bench(require_cuda());
  const LinearPlan plan =
      make_linear_plan(bench.context(), small_problem(), {.strategy = "cublas_batched"});
  CHECK(plan.workspace_bytes() % kWorkspaceAlignment == 0);
  PlacedLinear placed(bench, plan.problem());
  Execution execution = bench.execution(plan.workspace_bytes());
  const auto code_of = [&] {
    try {
      plan.run(placed.arguments(), execution);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::io;
  };
  SECTION("no handles") {
    execution.handles = nullptr;
  }
  SECTION("no workspace") {
    execution.workspace = {};
  }
  SECTION("a small workspace") {
    execution.workspace.bytes -= 1;
  }
  CHECK(code_of() == ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace wide::test
