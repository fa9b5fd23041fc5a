// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Quantised weights decoded once on CUDA: every format, by every kernel that then multiplies, on
// whole numbers whose results are exact; the bits of the weights themselves, which are those that
// the host decodes and rounds. Skipped without a device. Sizes are small enough for a simulated
// one.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "host/linear/linear_problem.hpp"
#include "host/linear/linear_strategy.hpp"
#include "verify/linear/quantized_linear_case.hpp"
#include "verify/support/dice.hpp"

namespace wide::test {
namespace {

LinearProblem problem_of(WeightFormat format, Dtype dtype, int64_t batch, int64_t in, int64_t out) {
  LinearProblem problem = quantized_problem(format, dtype, batch, in, out);
  problem.allow_rounded_weights = true;
  return problem;
}

std::vector<std::byte> download(TestDevice& bench, const Tensor& from) {
  Tensor host(Context::cpu(), from.dtype(), from.shape());
  copy(from, host, bench.stream());
  bench.context().synchronize(bench.stream());
  const auto* const first = static_cast<const std::byte*>(host.data());
  return {first, first + host.bytes()};
}

TEST_CASE("decoded linear on CUDA: every format by every kernel, exactly") {
  TestDevice bench(require_cuda());
  const WeightFormat format = any_format();
  const Dtype dtype = GENERATE(Dtype::fp16, Dtype::bf16);
  struct Size {
    int64_t batch, in, out;
    LinearStrategy kernel, elsewhere;  // than on Hopper
  };
  using enum LinearStrategy;
  const Size size =
      GENERATE(Size{3, 64, 16, gemv, gemv}, Size{20, 200, 35, small_m, small_m},
               Size{5, 4400, 40, small_m, small_m},  // k is divided
               Size{70, 129, 65, tensor_core, tensor_core}, Size{130, 456, 72, wgmma, tensor_core});
  LinearProblem problem = problem_of(format, dtype, size.batch, size.in, size.out);
  problem.group_size = GENERATE(64, 128);
  INFO(text_of(problem));
  const bool is_hopper = bench.context().info().compute_capability == 90;
  CHECK(linear_kernel_of(decoded, complete_linear_problem(problem), bench.context().info()) ==
        (is_hopper ? size.kernel : size.elsewhere));
  check_placed(bench, problem, "decoded");
}

TEST_CASE("decoded linear on CUDA: every layout and epilogue, exactly") {
  TestDevice bench(require_cuda());
  const WeightFormat format = GENERATE(WeightFormat::int8, WeightFormat::fp6_e3m2);
  const int64_t misalign = GENERATE(0, 1);
  const LinearProblem base = problem_of(format, Dtype::bf16, 66, 200, 35);
  for (auto [name, problem] : layouts(base)) {
    INFO(name << ", " << text_of(problem) << ", misaligned by " << misalign);
    if (problem.weight.member != 0) {
      problem.weight = {0, linear_member_bytes(problem) + 3 * kQuantizedAlignment};
    }
    check_placed(bench, problem, "decoded", misalign);
  }
}

TEST_CASE("decoded linear on CUDA: nothing to multiply") {
  TestDevice bench(require_cuda());
  const int64_t in = GENERATE(100, 0);
  const int64_t out = GENERATE(72, 0);
  const int64_t batch = GENERATE(80, 0);
  const LinearProblem problem = problem_of(WeightFormat::int4, Dtype::fp16, batch, in, out);
  INFO(text_of(problem));
  check_placed(bench, problem, "decoded");
}

TEST_CASE("decoded linear on CUDA: against the reference, alone and among others the same bits") {
  TestDevice bench(require_cuda());
  const WeightFormat format = any_format();
  const std::string dtype = GENERATE("fp16", "bf16");
  const int64_t batch = GENERATE(40, 150);
  Values values{{"n", int64_t{3}},    {"batch", batch},
                {"in", int64_t{328}}, {"out", int64_t{50}},
                {"dtype", dtype},     {"weights", std::string(weight_format_name(format))},
                {"rounded", "yes"},   {"activation", "gelu"}};
  const auto together = check_case(bench, "decoded", values);
  catalog::WorkloadOptions options;
  options.row_padding = 8;
  CHECK(check_case(bench, "decoded", values, options).members == together.members);
  values[0].second = int64_t{1};
  options = {};
  options.member_ids = {2};
  CHECK(check_case(bench, "decoded", values, options).members[0] == together.members[2]);
}

/// Weights of all magnitudes that an fp16 has, subnormal ones and larger ones included, as blobs;
/// by the same kernel they give the bits of the weights that the host restores from these.
TEST_CASE("decoded linear on CUDA: its weights are those that the host restores, bit for bit") {
  TestDevice bench(require_cuda());
  const Context& context = bench.context();
  const WeightFormat format = any_format();
  const Dtype dtype = GENERATE(Dtype::fp16, Dtype::bf16);
  constexpr int64_t kIn = 328, kOut = 40, kBatch = 66;
  LinearProblem problem = problem_of(format, dtype, kBatch, kIn, kOut);
  problem.group_size = 64;
  problem.epilogue.has_bias = false;
  const LinearPlan plan = make_linear_plan(context, problem, {.strategy = "decoded"});
  Dice dice(5);
  const auto fraction = [&] { return static_cast<float>(dice.between(-1000, 1000)) / 1000; };
  Tensor blobs(context, Dtype::uint8, {2, linear_member_bytes(plan.problem())});
  Tensor packed(context, dtype, {2, kOut, kIn});
  std::vector<Tensor> members;
  std::vector<LinearMember> given;
  std::vector<TensorView> restored;
  for (int64_t n = 0; n < 2; ++n) {
    std::vector<float> weights(kOut * kIn);
    for (int64_t at = 0; at < kOut * kIn; ++at) {
      const int64_t group = at / kIn * 6 + at % kIn / 64;
      weights[static_cast<size_t>(at)] =
          std::ldexp(fraction(), static_cast<int>(group * 7 % 44) - 26);
    }
    members.emplace_back(context, Dtype::fp32, Shape{kOut, kIn});
    upload(bench, weights, members.back());
    const TensorView whole = packed.view();
    restored.emplace_back(static_cast<std::byte*>(whole.data) + n * kOut * kIn * 2, dtype,
                          Shape{kOut, kIn}, whole.device);
  }
  for (const Tensor& member : members) given.push_back({member.view(), {}});
  plan.prepare_weights(given, blobs, {}, bench.stream());
  plan.restore_weights(blobs, {}, restored, {}, bench.stream());
  Tensor x(context, dtype, {kBatch, 2 * kIn});
  std::vector<float> values(kBatch * 2 * kIn);
  // One input a row: what is infinite stays so, and every weight shows by itself.
  for (int64_t b = 0; b < kBatch; ++b) {
    for (const int64_t n : {0, 1}) {
      values[static_cast<size_t>((b * 2 + n) * kIn + (b * 5 + n) % kIn)] = 1;
    }
  }
  upload(bench, values, x);
  LinearProblem dense = problem;
  dense.weight_format = WeightFormat::packed;
  const std::string kernel(strategy_name(
      linear_kernel_of(LinearStrategy::decoded, plan.problem(), bench.context().info())));
  INFO(text_of(problem) << " by " << kernel);
  const LinearPlan other = make_linear_plan(context, dense, {.strategy = kernel});
  Tensor y(context, dtype, {kBatch, 2 * kOut}), expected(context, dtype, {kBatch, 2 * kOut});
  plan.run({.x = x, .weight = blobs, .bias = {}, .y = y}, bench.execution(plan.workspace_bytes()));
  const std::vector<std::byte> got = download(bench, y);
  other.run({.x = x, .weight = packed, .bias = {}, .y = expected},
            bench.execution(other.workspace_bytes()));
  CHECK(got == download(bench, expected));
}

TEST_CASE("decoded linear on CUDA: a weight that is no number spoils its output alone") {
  TestDevice bench(require_cuda());
  const Context& context = bench.context();
  LinearProblem problem = problem_of(any_format(), Dtype::bf16, 66, 192, 40);
  problem.num_members = 1;
  problem.epilogue.has_bias = false;
  const LinearPlan plan = make_linear_plan(context, problem, {.strategy = "decoded"});
  std::vector<float> weights(40 * 192, 0.25f);
  weights[21 * 192 + 130] = std::numeric_limits<float>::quiet_NaN();
  Tensor member(context, Dtype::fp32, {40, 192}), x(context, Dtype::bf16, {66, 192});
  upload(bench, weights, member);
  upload(bench, std::vector<float>(66 * 192, 1.0f), x);
  Tensor blobs(context, Dtype::uint8, {1, linear_member_bytes(plan.problem())});
  const LinearMember members[] = {{member.view(), {}}};
  plan.prepare_weights(members, blobs, {}, bench.stream());
  Tensor y(context, Dtype::bf16, {66, 40});
  plan.run({.x = x, .weight = blobs, .bias = {}, .y = y}, bench.execution(plan.workspace_bytes()));
  const std::vector<std::byte> got = download(bench, y);
  for (int64_t at = 0; at < 66 * 40; ++at) {
    const double value = load_element(got.data(), Dtype::bf16, at);
    INFO("output " << at % 40 << ": " << value);
    REQUIRE((at % 40 == 21 ? std::isnan(value) : value == 48));
  }
}

}  // namespace
}  // namespace wide::test
