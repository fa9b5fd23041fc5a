// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// linear on the CPU: by hand, in every layout, over odd and empty sizes, and the packing of its
// weights. What all primitives promise (isolation, permutation, poison) is tested over the
// catalogue elsewhere.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "host/linear/linear_cpu_block.hpp"
#include "host/linear/linear_reference.hpp"
#include "verify/linear/linear_case.hpp"

namespace wide::test {
namespace {

TestDevice& cpu() {
  static TestDevice bench(Context::cpu({.num_threads = 3, .allocator = nullptr}));
  return bench;
}

TEST_CASE("linear: two members of two rows by hand") {
  const std::string strategy = GENERATE("wide", "sequential", "auto");
  // Rows are [member 0: 2 values | member 1: 2 values].
  const std::array<float, 8> x{1, 2, 10, 20, 3, 4, 30, 40};
  const std::array<float, 12> weight{1, 0, 0, 1, 1, 1,    // member 0: x0, x1, x0 + x1
                                     2, 0, 0, 2, 1, -1};  // member 1: 2 x0, 2 x1, x0 - x1
  const std::array<float, 6> bias{0.5f, 0.5f, 0.5f, 0, 0, 5};
  std::array<float, 12> y{};
  const Device device{};
  const LinearArguments arguments{ConstTensorView(x.data(), Dtype::fp32, {2, 4}, device),
                                  ConstTensorView(weight.data(), Dtype::fp32, {2, 3, 2}, device),
                                  ConstTensorView(bias.data(), Dtype::fp32, {2, 3}, device),
                                  TensorView(y.data(), Dtype::fp32, {2, 6}, device)};
  LinearProblem like;
  like.epilogue.activation = Activation::relu;
  const LinearPlan plan =
      make_linear_plan(cpu().context(), describe_linear(arguments, like), {.strategy = strategy});
  plan.run(arguments, cpu().execution(plan.workspace_bytes()));
  const std::array<float, 12> expected{1.5f, 2.5f, 3.5f, 20, 40, 0,  //
                                       3.5f, 4.5f, 7.5f, 60, 80, 0};
  CHECK(y == expected);
}

TEST_CASE("linear: every layout and dtype, exactly") {
  const std::string strategy = GENERATE("wide", "sequential");
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::fp16, Dtype::bf16);
  const int64_t misalign = GENERATE(0, 1, 3);
  for (const auto& [name, problem] : layouts(small_problem(dtype))) {
    INFO(name << ", " << dtype_name(dtype) << ", " << strategy << ", misaligned by " << misalign);
    check_placed(cpu(), problem, strategy, misalign);
  }
}

TEST_CASE("linear: [B, T, N*in] is B*T rows") {
  const LinearPlan plan = make_linear_plan(cpu().context(), [] {
    LinearProblem problem = small_problem();
    problem.batch = 6;
    return problem;
  }());
  const LinearProblem& p = plan.problem();
  PlacedLinear placed(cpu(), p);
  LinearArguments arguments = placed.arguments();
  arguments.x =
      ConstTensorView(arguments.x.data, p.dtype, {2, 3, p.num_members * p.in_features}, Device{});
  arguments.y =
      TensorView(arguments.y.data, p.dtype, {2, 3, p.num_members * p.out_features}, Device{});
  CHECK(describe_linear(arguments, p) == p);
  plan.run(arguments, cpu().execution(0));
  placed.check();
}

TEST_CASE("linear: sizes around every block and lane against the reference") {
  struct Size {
    int64_t n, batch, in, out;
  };
  const Size size = GENERATE(Size{1, 1, 1, 1}, Size{3, 5, 7, 11}, Size{2, 17, 33, 65},
                             Size{5, 16, 256, 33}, Size{1, 33, 515, 3}, Size{7, 1, 64, 100},
                             Size{2, 40, 1, 40}, Size{1, 2, 1025, 4}, Size{4, 15, 48, 31});
  const std::string dtype = GENERATE("fp32", "fp16", "bf16");
  const Values values{
      {"n", size.n}, {"batch", size.batch}, {"in", size.in}, {"out", size.out}, {"dtype", dtype}};
  catalog::WorkloadOptions options;
  const auto wide = check_case(cpu(), "wide", values, options);
  // Same blocks, same order: not only close.
  CHECK(wide.members == check_case(cpu(), "sequential", values, options).members);
  options.fill = catalog::Fill::integers;
  check_case(cpu(), "wide", values, options);
  options.misalign_elements = 1;
  options.row_padding = 3;
  check_case(cpu(), "wide", values, options);
}

TEST_CASE("linear: activations, bias and shared input against the reference") {
  const std::string activation = GENERATE("none", "relu", "gelu", "gelu_tanh", "silu");
  const std::string dtype = GENERATE("fp32", "fp16", "bf16");
  const std::string bias = GENERATE("yes", "no");
  const std::string shared = GENERATE("yes", "no");
  const std::string strategy = GENERATE("wide", "sequential");
  check_case(cpu(), strategy,
             {{"n", int64_t{3}},
              {"batch", int64_t{9}},
              {"in", int64_t{40}},
              {"out", int64_t{21}},
              {"activation", activation},
              {"dtype", dtype},
              {"bias", bias},
              {"shared", shared}});
}

TEST_CASE("linear: empty sizes") {
  const std::string strategy = GENERATE("wide", "sequential");
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
  check_placed(cpu(), problem, strategy);
}

TEST_CASE("linear: relu keeps NaN and makes -0 positive") {
  const std::array<float, 3> x{std::numeric_limits<float>::quiet_NaN(), -0.0f, -1.0f};
  const std::array<float, 1> weight{1};
  std::array<float, 3> y{};
  const LinearArguments arguments{ConstTensorView(x.data(), Dtype::fp32, {3, 1}, Device{}),
                                  ConstTensorView(weight.data(), Dtype::fp32, {1, 1, 1}, Device{}),
                                  {},
                                  TensorView(y.data(), Dtype::fp32, {3, 1}, Device{})};
  LinearProblem like;
  like.epilogue.activation = Activation::relu;
  make_linear_plan(cpu().context(), describe_linear(arguments, like))
      .run(arguments, cpu().execution(0));
  CHECK(std::isnan(y[0]));
  CHECK((y[1] == 0.0f && !std::signbit(y[1])));
  CHECK((y[2] == 0.0f && !std::signbit(y[2])));
}

TEST_CASE("linear: the block kernels of all instruction sets agree") {
  constexpr int64_t depth = 1000;
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::fp16, Dtype::bf16);
  std::vector<std::byte> x(static_cast<size_t>(5 * depth * 4)), weight(x.size());
  for (int64_t i = 0; i < 5 * depth; ++i) {
    store_element(x.data(), dtype, i, std::sin(static_cast<double>(i)));
    store_element(weight.data(), dtype, i, std::cos(static_cast<double>(3 * i)));
  }
  float portable[cpu::kBlockRows][cpu::kBlockColumns] = {};
  float avx2[cpu::kBlockRows][cpu::kBlockColumns] = {};
  float avx512[cpu::kBlockRows][cpu::kBlockColumns] = {};
  cpu::LinearBlock block;
  for (int r = 0; r < 5; ++r) block.x[r] = x.data() + r * depth * dtype_bytes(dtype);
  block.weight = weight.data(), block.weight_stride = depth;
  block.dtype = dtype, block.rows = block.columns = 5, block.depth = depth;
  block.sums = portable;
  cpu::linear_block_portable(block);
  for (int r = 0; r < 5; ++r) {
    for (int c = 0; c < 5; ++c) {
      double expected = 0;
      for (int64_t k = 0; k < depth; ++k) {
        expected += load_element(x.data(), dtype, r * depth + k) *
                    load_element(weight.data(), dtype, c * depth + k);
      }
      CHECK(std::abs(static_cast<double>(portable[r][c]) - expected) < 1e-4);
    }
  }
#if defined(__x86_64__)
  if (cpu::linear_block_avx2 == nullptr || !__builtin_cpu_supports("avx2") ||
      !__builtin_cpu_supports("fma")) {
    SKIP("this processor or compiler has no AVX2");
  }
  block.sums = avx2;
  cpu::linear_block_avx2(block);
  for (int r = 0; r < 5; ++r) {
    for (int c = 0; c < 5; ++c) CHECK(std::abs(avx2[r][c] - portable[r][c]) < 1e-4f);
  }
  if (cpu::linear_block_avx512 == nullptr || !__builtin_cpu_supports("avx512f")) {
    SKIP("this processor or compiler has no AVX-512");
  }
  block.sums = avx512;
  cpu::linear_block_avx512(block);
  CHECK(std::memcmp(avx2, avx512, sizeof(avx2)) == 0);
#else
  SKIP("not an x86-64 processor: there is one version");
#endif
}

TEST_CASE("linear: scale and residual, in place and apart") {
  TestDevice bench(Context::cpu());
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::fp16, Dtype::bf16);
  const OutputScale scale = GENERATE(OutputScale::per_member, OutputScale::per_output);
  const Residual residual = GENERATE(Residual::before_activation, Residual::after_activation);
  const bool is_in_place = GENERATE(false, true);
  LinearProblem problem = small_problem(dtype);
  problem.batch = 37;
  problem.out_features = 41;
  problem.epilogue = {.has_bias = true,
                      .activation = Activation::relu,
                      .scale = scale,
                      .residual = residual,
                      .alpha = -0.5f};
  check_placed(bench, problem, "wide", 0, is_in_place);
  check_placed(bench, problem, "sequential", 0, is_in_place);
}

TEST_CASE("linear: the reference by hand") {
  LinearProblem problem;
  problem.in_features = 2;
  problem.out_features = 2;
  problem.epilogue.has_bias = true;
  const std::array<double, 2> x{1, -2}, bias{10, -20};
  const std::array<double, 4> weight{3, 4, -5, 6};
  std::array<double, 2> sums{}, magnitudes{};
  catalog::LinearReferenceRow row{x, weight, bias, {}, {}};
  catalog::linear_reference_row(problem, row, sums, magnitudes);
  CHECK(sums == std::array<double, 2>{5, -37});
  CHECK(magnitudes == std::array<double, 2>{21, 37});
  const std::array<double, 2> scale{2, -1}, residual{100, -200};
  problem.epilogue.alpha = 0.5f;
  problem.epilogue.residual = Residual::before_activation;
  row.scale = scale;
  row.residual = residual;
  catalog::linear_reference_row(problem, row, sums, magnitudes);
  CHECK(sums == std::array<double, 2>{105, -211.5});
  CHECK(magnitudes == std::array<double, 2>{121, 228.5});
  problem.epilogue.residual = Residual::after_activation;
  row.scale = std::span(scale).first(1);
  catalog::linear_reference_row(problem, row, sums, magnitudes);
  CHECK(sums == std::array<double, 2>{5, -37});
  CHECK(catalog::reference_activation(Activation::relu, -1) == 0);
  CHECK(std::abs(catalog::reference_activation(Activation::gelu, 1) - 0.8413447460685429) < 1e-15);
  CHECK(std::abs(catalog::reference_activation(Activation::gelu_tanh, 1) - 0.8411919906082768) <
        1e-15);
  CHECK(std::abs(catalog::reference_activation(Activation::silu, 1) - 0.7310585786300049) < 1e-15);
}

TEST_CASE("linear: rounded weights may be wrong by their last bit, others may not") {
  LinearProblem problem;
  problem.in_features = 2;
  problem.out_features = 1;
  problem.dtype = Dtype::fp16;
  problem.y_dtype = Dtype::fp16;
  problem.weight_format = WeightFormat::int8;
  problem.epilogue.alpha = -0.5f;
  const std::array<double, 2> x{4, -4}, weight{3, 3};
  const auto tolerance = [&] {
    double value = 1, allowed = 0;
    catalog::judge_linear_row(problem, {x, weight, {}, {}, {}}, catalog::Fill::uniform,
                              std::span(&value, 1), std::span(&allowed, 1));
    CHECK(value == 0);
    return allowed;
  };
  const double exact = tolerance();
  problem.allow_rounded_weights = true;
  CHECK(std::abs(tolerance() - exact - (0x1p-11 * 12 + 0x1p-25 * 4)) < 1e-12);
}

}  // namespace
}  // namespace wide::test
