// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// linear on quantised weights on CUDA: every format, group and tile on whole numbers whose results
// are exact, every layout, and what damage a weight that is no number does. Skipped without a
// device. Sizes are small enough for a simulated one.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <cmath>
#include <limits>

#include "host/linear/linear_strategy.hpp"
#include "verify/linear/quantized_linear_case.hpp"

namespace wide::test {
namespace {

TEST_CASE("quantised linear on CUDA: every format and tile around its edges, exactly") {
  TestDevice bench(require_cuda());
  const WeightFormat format = any_format();
  const Dtype dtype = GENERATE(Dtype::fp16, Dtype::bf16);
  struct Size {
    int64_t batch, in, out;
    kernels::LinearWeightOnlyTile tile;
  };
  using enum kernels::LinearWeightOnlyTile;
  // Stages of 128 or, in the narrow tile, 256 inputs, of which there are four.
  const Size size =
      GENERATE(Size{1, 64, 16, m16n16}, Size{16, 140, 257, m16n64}, Size{9, 700, 40, m16n16},
               Size{17, 257, 140, m32n64}, Size{33, 129, 65, m64n64}, Size{64, 1, 1, m64n64},
               Size{5, 600, 270, m16n64}, Size{3, 1100, 18, m16n16}, Size{150, 70, 72, m64n64});
  LinearProblem problem = quantized_problem(format, dtype, size.batch, size.in, size.out);
  problem.group_size = GENERATE(64, 128);
  INFO(text_of(problem));
  CHECK(choose_linear_weight_only_tile(problem) == size.tile);
  check_placed(bench, problem, "weight_only");
}

TEST_CASE("quantised linear on CUDA: every layout and epilogue, exactly") {
  TestDevice bench(require_cuda());
  const WeightFormat format = any_format();
  const std::string strategy = GENERATE("weight_only", "sequential");
  const int64_t misalign = GENERATE(0, 1);
  const LinearProblem base = quantized_problem(format, Dtype::bf16, 5, 200, 35);
  for (auto [name, problem] : layouts(base)) {
    INFO(name << ", " << text_of(problem) << ", " << strategy << ", misaligned by " << misalign);
    if (problem.weight.member != 0) {
      problem.weight = {0, linear_member_bytes(problem) + 3 * kQuantizedAlignment};
    }
    check_placed(bench, problem, strategy, misalign);
  }
}

TEST_CASE("quantised linear on CUDA: long rows of 1000, and none at all") {
  TestDevice bench(require_cuda());
  const WeightFormat format = any_format();
  const int64_t in = GENERATE(1000, 0);
  const int64_t out = GENERATE(72, 0);
  const int64_t batch = GENERATE(20, 0);
  const LinearProblem problem = quantized_problem(format, Dtype::fp16, batch, in, out);
  INFO(text_of(problem));
  check_placed(bench, problem, "weight_only");
}

TEST_CASE("quantised linear on CUDA: against the reference, and one by one the same bits") {
  TestDevice bench(require_cuda());
  const WeightFormat format = any_format();
  const std::string dtype = GENERATE("fp16", "bf16");
  const int64_t batch = GENERATE(2, 40, 65);
  const Values values{{"n", int64_t{3}},
                      {"batch", batch},
                      {"in", int64_t{330}},
                      {"out", int64_t{50}},
                      {"dtype", dtype},
                      {"weights", std::string(weight_format_name(format))},
                      {"group", std::string(batch == 2 ? "64" : "128")},
                      {"activation", "gelu"}};
  const auto together = check_case(bench, "weight_only", values);
  CHECK(check_case(bench, "sequential", values).members == together.members);
  catalog::WorkloadOptions options;
  options.misalign_elements = 1;
  options.row_padding = 5;
  CHECK(check_case(bench, "weight_only", values, options).members == together.members);
}

TEST_CASE("quantised linear on CUDA: a weight that is no number spoils its output alone") {
  TestDevice bench(require_cuda());
  const Context& context = bench.context();
  const WeightFormat format = any_format();
  const float wrong =
      GENERATE(std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity());
  LinearProblem problem = quantized_problem(format, Dtype::bf16, 4, 192, 40);
  problem.epilogue.has_bias = false;
  const LinearPlan plan = make_linear_plan(context, problem, {.strategy = "weight_only"});
  CHECK(plan.weight_format() == weight_format_name(format));
  // Zeros in the other groups of that output, and in whole other ones: scales of 0.
  std::vector<float> weights(40 * 192), ones(4 * 2 * 192, 1.0f), y(4 * 2 * 40);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = i / 192 % 3 == 0 ? 0.0f : 0.25f;
  std::vector<float> damaged = weights;
  damaged[21 * 192 + 130] = wrong;
  Tensor first(context, Dtype::fp32, {40, 192}), second(context, Dtype::fp32, {40, 192});
  upload(bench, weights, first);
  upload(bench, damaged, second);
  Tensor blobs(context, Dtype::uint8, {2, linear_member_bytes(plan.problem())});
  const LinearMember members[] = {{first.view(), {}}, {second.view(), {}}};
  plan.prepare_weights(members, blobs, {}, bench.stream());
  Tensor x(context, Dtype::bf16, {4, 2 * 192});
  upload(bench, ones, x);
  Tensor outputs(context, Dtype::bf16, {4, 2 * 40}), host(Context::cpu(), Dtype::bf16, {4, 80});
  plan.run({.x = x, .weight = blobs, .bias = {}, .y = outputs}, bench.execution(0));
  copy(outputs, host, bench.stream());
  context.synchronize(bench.stream());
  for (int64_t at = 0; at < 4 * 80; ++at) {
    const int64_t member = at / 40 % 2, output = at % 40;
    const double got = load_element(host.data(), Dtype::bf16, at);
    INFO("member " << member << ", output " << output << ": " << got);
    if (member == 1 && output == 21) {
      REQUIRE(std::isnan(got));
    } else {
      REQUIRE(got == (output % 3 == 0 ? 0 : 48));
    }
  }
}

}  // namespace
}  // namespace wide::test
