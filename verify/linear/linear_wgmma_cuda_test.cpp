// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// wgmma's tiles, rings, turns and stores. The kernel is told of two multiprocessors, whatever there
// are: a few tiles then give each block several to go on with.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "host/linear/linear_policy.hpp"
#include "host/linear/linear_problem.hpp"
#include "host/linear/linear_run.hpp"
#include "host/linear/linear_strategy.hpp"
#include "verify/linear/linear_case.hpp"
#include "verify/support/captured_call_cuda.hpp"
#include "verify/support/devices.hpp"

namespace wide::test {
namespace {

using Catch::Matchers::ContainsSubstring;
using enum kernels::LinearWgmmaTile;

struct Size {
  int64_t num_members, batch, in, out;
  kernels::LinearWgmmaTile tile;
};

LinearProblem problem_of(const Size& size, Dtype dtype) {
  LinearProblem problem;
  problem.num_members = size.num_members;
  problem.batch = size.batch;
  problem.in_features = size.in;
  problem.out_features = size.out;
  problem.dtype = dtype;
  problem.allow_tf32 = dtype == Dtype::fp32;
  if (is_fp8(dtype)) problem.y_dtype = Dtype::bf16;
  problem.epilogue.has_bias = true;
  return problem;
}

/// On a device of so many multiprocessors, as far as the kernel knows.
void check_on(TestDevice& bench, int multiprocessors, const LinearProblem& like,
              kernels::LinearWgmmaTile tile, bool is_in_place = false) {
  const LinearProblem problem = complete_linear_problem(like);
  DeviceInfo device = bench.context().info();
  device.num_multiprocessors = multiprocessors;
  REQUIRE(linear_unsupported_reason(LinearStrategy::wgmma, problem, device) == "");
  INFO(problem.num_members << " of " << problem.batch << " x " << problem.in_features << " x "
                           << problem.out_features << ", " << dtype_name(problem.dtype) << ", "
                           << tile_name(tile));
  PlacedLinear placed(bench, problem, 0, is_in_place);
  const LinearTiles tiles = linear_tiles(LinearStrategy::wgmma, problem, device, tile_name(tile));
  run_linear_kernel(device, LinearStrategy::wgmma, tiles, problem, placed.arguments(),
                    bench.execution(0));
  placed.check();
}

/// On two multiprocessors, by the tile that is chosen there.
void check(TestDevice& bench, const LinearProblem& like, kernels::LinearWgmmaTile tile,
           bool is_in_place = false) {
  DeviceInfo device = bench.context().info();
  device.num_multiprocessors = 2;
  CHECK(choose_linear_wgmma_tile(complete_linear_problem(like), device) == tile);
  check_on(bench, 2, like, tile, is_in_place);
}

void require_wgmma(const TestDevice& bench) {
  if (bench.context().info().compute_capability != 90) SKIP("wgmma needs compute capability 9.0");
}

TEST_CASE("linear by wgmma: rings that come round, blocks of one to four tiles, ragged edges") {
  TestDevice bench(require_cuda());
  require_wgmma(bench);
  // Rings of 8, 6 and 4 stages of 64 inputs.
  const Size size = GENERATE(Size{1, 1, 8, 1, m64n128}, Size{2, 64, 600, 128, m64n128},
                             Size{3, 65, 72, 130, m128n128}, Size{7, 60, 584, 120, m64n128},
                             Size{4, 120, 72, 136, m128n128}, Size{6, 125, 456, 100, m128n128},
                             Size{6, 128, 520, 256, m128n256}, Size{6, 121, 584, 252, m128n256},
                             Size{2, 250, 584, 252, m128n256x2});
  const Dtype dtype = GENERATE(Dtype::fp16, Dtype::bf16);
  if (size.num_members > 2 && dtype == Dtype::fp16) return;  // the same ring
  check(bench, problem_of(size, dtype), size.tile);
}

TEST_CASE("linear by wgmma: fp32 as tf32, and fp8, whose warpgroups work together") {
  TestDevice bench(require_cuda());
  require_wgmma(bench);
  // Stages of 32 and of 128 inputs.
  const auto [dtype, size] = GENERATE(std::pair{Dtype::fp32, Size{7, 60, 300, 120, m64n128}},
                                      std::pair{Dtype::fp32, Size{6, 125, 228, 100, m128n128}},
                                      std::pair{Dtype::fp32, Size{6, 121, 516, 252, m128n256}},
                                      std::pair{Dtype::fp8_e4m3, Size{7, 60, 1168, 120, m64n128}},
                                      std::pair{Dtype::fp8_e5m2, Size{6, 125, 912, 100, m128n128}},
                                      std::pair{Dtype::fp8_e4m3, Size{6, 125, 912, 110, m128n128}});
  check(bench, problem_of(size, dtype), size.tile);
}

TEST_CASE("linear by wgmma: both ways to store, every epilogue") {
  TestDevice bench(require_cuda());
  require_wgmma(bench);
  const Dtype dtype = GENERATE(Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp32);
  const bool is_boxed = GENERATE(true, false);
  const OutputScale scale = GENERATE(OutputScale::per_member, OutputScale::per_output);
  const Residual residual = GENERATE(Residual::before_activation, Residual::after_activation);
  const int64_t out = GENERATE(104, 99);
  LinearProblem problem = problem_of({5, 70, 144, out, m64n128}, dtype);
  problem.epilogue = {.has_bias = true,
                      .activation = Activation::relu,
                      .scale = scale,
                      .residual = residual,
                      .alpha = -0.5f};
  const int64_t member = is_boxed ? 104 : 105;
  problem.y = problem.residual = {5 * member, member};
  CHECK(linear_stores_boxes(complete_linear_problem(problem)) ==
        (is_boxed && out % 8 == 0 && dtype != Dtype::fp32));
  check(bench, problem, m64n128, true);
  problem.residual = {5 * (out + 1), out + 1};
  problem.shared_input = true;
  problem.weight = {160, 160 * out + 16};
  check(bench, problem, m64n128);
  problem.weight = {160, 0};  // one for all members
  check(bench, problem, m64n128);
}

TEST_CASE("linear by wgmma: what lies behind the outputs of a row is left alone") {
  TestDevice bench(require_cuda());
  require_wgmma(bench);
  // Without a bias or residual, parts of boxes are stored as boxes, too.
  const Dtype dtype = GENERATE(Dtype::fp16, Dtype::fp8_e4m3);
  const int64_t out = GENERATE(100, 104);
  LinearProblem problem = problem_of({3, 70, 144, out, m64n128}, dtype);
  problem.epilogue.has_bias = false;
  problem.y = {70 * 112, 112};
  CHECK(linear_stores_boxes(complete_linear_problem(problem)) == (out == 104));
  check(bench, problem, m64n128);
  problem = problem_of({1, 1, 144, out, m64n128}, dtype);
  problem.epilogue.has_bias = false;
  check(bench, problem, m64n128);
}

TEST_CASE("linear by wgmma: pairs of blocks, which share the weights") {
  TestDevice bench(require_cuda());
  require_wgmma(bench);
  // A pair of three tiles, more steps than stages; the last of a member's blocks has a few rows,
  // one, or none, its half of the weight some outputs, or none.
  const auto [dtype, size] =
      GENERATE(std::pair{Dtype::bf16, Size{3, 250, 584, 252, m128n256x2}},
               std::pair{Dtype::fp16, Size{3, 129, 328, 256, m128n256x2}},
               std::pair{Dtype::bf16, Size{3, 100, 584, 100, m128n256x2}},
               std::pair{Dtype::fp16, Size{1, 513, 72, 260, m128n256x2}},
               std::pair{Dtype::fp32, Size{3, 250, 292, 252, m128n256x2}},
               std::pair{Dtype::fp8_e4m3, Size{3, 250, 1168, 120, m128n128x2}},
               std::pair{Dtype::fp8_e5m2, Size{2, 260, 912, 60, m128n128x2}});
  check_on(bench, 2, problem_of(size, dtype), size.tile);
}

TEST_CASE("linear by wgmma: several pairs, or one where there is room for no more") {
  TestDevice bench(require_cuda());
  require_wgmma(bench);
  const int multiprocessors = GENERATE(3, 4, 132);
  check_on(bench, multiprocessors, problem_of({5, 250, 584, 120, m128n256x2}, Dtype::bf16),
           m128n256x2);
  check_on(bench, multiprocessors, problem_of({5, 250, 1168, 120, m128n128x2}, Dtype::fp8_e4m3),
           m128n128x2);
}

TEST_CASE("linear by wgmma: pairs of blocks with strides and epilogues") {
  TestDevice bench(require_cuda());
  require_wgmma(bench);
  const auto [dtype, tile] =
      GENERATE(std::pair{Dtype::bf16, m128n256x2}, std::pair{Dtype::fp32, m128n256x2},
               std::pair{Dtype::fp8_e4m3, m128n128x2});
  const int64_t out = GENERATE(256, 99);  // whole boxes where they are of 16 bits, and rows
  LinearProblem problem = problem_of({3, 300, 144, out, tile}, dtype);
  problem.epilogue = {.has_bias = true,
                      .activation = Activation::relu,
                      .residual = Residual::after_activation,
                      .alpha = -0.5f};
  const int64_t member = out % 8 == 0 ? out + 8 : out + 1;
  problem.y = problem.residual = {3 * member, member};
  check_on(bench, 2, problem, tile, true);
  problem.epilogue.scale = OutputScale::per_output;
  problem.epilogue.residual = Residual::before_activation;
  problem.shared_input = true;
  problem.weight = {160, 160 * out + 16};
  check_on(bench, 2, problem, tile);
  problem.weight = {160, 0};  // one for all members
  check_on(bench, 2, problem, tile);
}

TEST_CASE("linear by wgmma: a captured call of pairs is one launch of clusters") {
  TestDevice bench(require_cuda());
  require_wgmma(bench);
  const auto [dtype, tile] =
      GENERATE(std::pair{Dtype::bf16, m128n256x2}, std::pair{Dtype::fp8_e4m3, m128n128x2});
  const LinearProblem problem =
      complete_linear_problem(problem_of({2, 250, 144, 120, tile}, dtype));
  const DeviceInfo& device = bench.context().info();
  const LinearTiles tiles = linear_tiles(LinearStrategy::wgmma, problem, device, tile_name(tile));
  PlacedLinear placed(bench, problem);
  CapturedCall call(bench.stream(), [&] {
    run_linear_kernel(device, LinearStrategy::wgmma, tiles, problem, placed.arguments(),
                      bench.execution(0));
  });
  CHECK(call.num_nodes() == 1);
  call.launch();
  placed.check();
}

TEST_CASE("linear by wgmma: what stands in is said in advance") {
  TestDevice bench(require_cuda());
  require_wgmma(bench);
  const auto explain = [&](Dtype dtype, const char* strategy, int64_t batch = 128) {
    LinearProblem problem = problem_of({2, batch, 64, 64, m64n128}, dtype);
    problem.shared_input = strategy == std::string("shared_input");
    return make_linear_plan(bench.context(), problem, {.strategy = strategy}).explain();
  };
  const std::string where = " where x or weight is not aligned to 16 bytes";
  for (const char* strategy : {"wgmma", "shared_input"}) {
    CHECK_THAT(explain(Dtype::fp16, strategy), ContainsSubstring("; by tensor_core" + where));
  }
  CHECK_THAT(explain(Dtype::fp16, "wgmma", 64), ContainsSubstring("; by small_m" + where));
  CHECK_THAT(explain(Dtype::fp8_e4m3, "sequential"), ContainsSubstring("; by simt" + where));
  CHECK_THAT(explain(Dtype::fp16, "tensor_core"), !ContainsSubstring("not aligned"));
}

}  // namespace
}  // namespace wide::test
