// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// linear on CUDA: all strategies in every layout, the tiles and load paths of the hand-rolled
// kernel, and packing. Skipped without a device. Sizes are small enough for a simulated one.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "host/core/verified.hpp"
#include "host/linear/linear_policy.hpp"
#include "host/linear/linear_problem.hpp"
#include "host/linear/linear_strategy.hpp"
#include "verify/linear/linear_case.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/tensors.hpp"

namespace wide::test {
namespace {

constexpr const char* kOwn[] = {"simt",  "gemv",   "small_m",     "tensor_core",
                                "wgmma", "tf32x3", "shared_input"};

bool is_own(const std::string& strategy) {
  return std::find(std::begin(kOwn), std::end(kOwn), strategy) != std::end(kOwn);
}

bool is_tf32_strategy(const std::string& strategy) {
  return strategy == "small_m" || strategy == "tensor_core" || strategy == "wgmma";
}

/// Whether the strategy can run the problem on this device, which is allowed the arithmetic.
bool allow(const TestDevice& device, const std::string& strategy, LinearProblem& problem) {
  problem.allow_tf32 = problem.dtype == Dtype::fp32 && is_tf32_strategy(strategy);
  const DeviceInfo& info = device.context().info();
  return linear_unsupported_reason(*parse_linear_strategy(strategy, DeviceType::cuda),
                                   complete_linear_problem(problem), info)
      .empty();
}

/// Skips the strategies that need a cuBLAS that cannot start: simulated devices have none.
void require_strategy(const TestDevice& device, const std::string& strategy) {
  if (is_own(strategy) || device.handles().cublas() != nullptr) return;
  const char* is_required = std::getenv("WIDE_REQUIRE_GPU");
  if (is_required != nullptr && std::string(is_required) == "1" && !wants_small_cases()) {
    FAIL("WIDE_REQUIRE_GPU=1, but " << device.handles().cublas_unavailable_reason());
  }
  SKIP("no cuBLAS: " << device.handles().cublas_unavailable_reason());
}

TEST_CASE("linear on CUDA: every layout and dtype, exactly") {
  TestDevice bench(require_cuda());
  const std::string strategy =
      GENERATE("simt", "gemv", "small_m", "tensor_core", "wgmma", "tf32x3", "sequential",
               "cublas_batched", "cublaslt", "cublas_grouped");
  require_strategy(bench, strategy);
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::fp16, Dtype::bf16);
  const int64_t misalign = GENERATE(0, 1);
  LinearProblem base = small_problem(dtype);
  if (strategy == "wgmma") base.in_features = 24;  // a multiple of 16 bytes
  if (strategy == "cublas_grouped") base.in_features = 24, base.out_features = 8;
  if (strategy == "gemv") base.batch = 3;
  for (auto [name, problem] : layouts(base)) {
    if (!allow(bench, strategy, problem)) continue;
    INFO(name << ", " << dtype_name(dtype) << ", " << strategy << ", misaligned by " << misalign);
    check_placed(bench, problem, strategy, misalign);
  }
}

TEST_CASE("linear on CUDA: every tile, aligned and not, around its edges") {
  TestDevice bench(require_cuda());
  struct Size {
    int64_t batch, in, out;
  };
  // Tiles of 8, 16, 32, 64 and 128 rows by 16, 64 and 128 outputs, over stages of 32 (fp32) or 64
  // inputs, of which there are up to six.
  const Size size = GENERATE(Size{16, 256, 64}, Size{17, 72, 65}, Size{1, 129, 3}, Size{64, 64, 64},
                             Size{33, 31, 70}, Size{128, 64, 128}, Size{130, 40, 129},
                             Size{7, 530, 257}, Size{16, 200, 300}, Size{1, 600, 70},
                             Size{2, 40, 65}, Size{4, 264, 33}, Size{3, 77, 5});
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::fp16, Dtype::bf16);
  const std::string strategy =
      GENERATE(from_range(std::vector<std::string>(std::begin(kOwn), std::end(kOwn))));
  const int64_t misalign = GENERATE(0, 1);
  LinearProblem problem;
  problem.num_members = 2;
  problem.batch = size.batch;
  problem.in_features = size.in;
  problem.out_features = size.out;
  problem.dtype = dtype;
  problem.epilogue.has_bias = true;
  problem.shared_input = strategy == "shared_input";
  if (!allow(bench, strategy, problem)) return;
  INFO(size.batch << " x " << size.in << " x " << size.out << ", " << dtype_name(dtype) << ", "
                  << strategy << ", misaligned by " << misalign);
  check_placed(bench, problem, strategy, misalign);
}

TEST_CASE("linear on CUDA: scale, and a residual that is y itself") {
  TestDevice bench(require_cuda());
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::fp16, Dtype::bf16);
  const std::string strategy =
      GENERATE(from_range(std::vector<std::string>(std::begin(kOwn), std::end(kOwn))));
  const OutputScale scale = GENERATE(OutputScale::per_member, OutputScale::per_output);
  const Residual residual = GENERATE(Residual::before_activation, Residual::after_activation);
  const int64_t out = GENERATE(12, 67);
  LinearProblem problem;
  problem.num_members = 3;
  problem.batch = strategy == "gemv" ? 4 : 21;
  problem.in_features = 40;
  problem.out_features = out;
  problem.dtype = dtype;
  problem.epilogue = {.has_bias = true,
                      .activation = Activation::relu,
                      .scale = scale,
                      .residual = residual,
                      .alpha = -0.5f};
  problem.shared_input = strategy == "shared_input";
  if (!allow(bench, strategy, problem)) return;
  INFO(strategy << ", " << dtype_name(dtype) << ", scale " << output_scale_name(scale)
                << ", residual " << residual_name(residual) << ", " << out << " outputs");
  check_placed(bench, problem, strategy, 0, true);
  problem.residual = {3 * (out + 4), out + 4};
  check_placed(bench, problem, strategy);
}

TEST_CASE("linear on CUDA: the tiles that it takes many of to be chosen") {
  TestDevice bench(require_cuda());
  using enum kernels::LinearMmaTile;
  struct Many {
    const char* strategy;
    Dtype dtype;
    int64_t num_members, batch, out;
    kernels::LinearMmaTile tile;  // where there are 132 multiprocessors
  };
  const Many many = GENERATE(Many{"tensor_core", Dtype::bf16, 5, 257, 1800, m128n128},
                             Many{"tensor_core", Dtype::fp32, 4, 256, 4224, m128n64},
                             Many{"tf32x3", Dtype::fp32, 4, 256, 4224, m128n64});
  LinearProblem problem;
  problem.num_members = many.num_members;
  problem.batch = many.batch;
  problem.in_features = 16;
  problem.out_features = many.out;
  problem.dtype = many.dtype;
  REQUIRE(allow(bench, many.strategy, problem));
  const DeviceInfo& device = bench.context().info();
  const auto strategy = parse_linear_strategy(many.strategy, DeviceType::cuda);
  if (device.num_multiprocessors == 132) {
    CHECK(choose_linear_mma_tile(*strategy, problem, device) == many.tile);
  }
  check_placed(bench, problem, many.strategy);
}

TEST_CASE("linear on CUDA: every policy that can be asked for") {
  TestDevice bench(require_cuda());
  const std::string strategy = GENERATE("simt", "small_m", "tensor_core", "wgmma", "tf32x3");
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::bf16);
  const int64_t batch = GENERATE(33, 70);
  LinearProblem problem;
  problem.num_members = 2;
  problem.batch = batch;
  problem.in_features = 136;
  problem.out_features = 130;
  problem.dtype = dtype;
  problem.epilogue.has_bias = true;
  if (!allow(bench, strategy, problem)) return;
  const auto kind = *parse_linear_strategy(strategy, DeviceType::cuda);
  for (const std::string_view name : linear_policies(kind, complete_linear_problem(problem))) {
    INFO(batch << " rows, " << dtype_name(dtype) << ", " << strategy << ":" << name);
    const LinearPlan plan = make_linear_plan(bench.context(), problem,
                                             {.strategy = strategy, .policy = std::string(name)});
    CHECK(plan.policy() == name);
    PlacedLinear placed(bench, plan.problem());
    plan.run(placed.arguments(), bench.execution(plan.workspace_bytes()));
    placed.check();
  }
}

TEST_CASE("linear on CUDA: auto runs what a tuning cache says") {
  TestDevice bench(require_cuda());
  const LinearProblem problem = complete_linear_problem(small_problem());
  TuningCache cache;
  const auto tuned = [&](const TuningEntry& entry) {
    cache.set(bench.context().info(), "linear", tuning_key(problem).problem, entry);
    return make_linear_plan(bench.context(), problem, {.tuning = &cache});
  };
  const std::string hash(kernel_hash("linear"));
  if (hash.empty()) SKIP("this build does not know its kernels' hash");
  const LinearPlan plan = tuned({"tf32x3", "m32n64", 1.5, 9, hash});
  CHECK((plan.strategy() == "tf32x3" && plan.policy() == "m32n64"));
  PlacedLinear placed(bench, plan.problem());
  plan.run(placed.arguments(), bench.execution(plan.workspace_bytes()));
  placed.check();
  if (!is_verified("linear", "simt", bench.context().info().compute_capability)) {
    CHECK(tuned({"simt", "m64n64", 1.5, 9, "of other kernels"}).strategy() != "simt");
  }
}

TEST_CASE("linear on CUDA: cublaslt searches its algorithms where it is told to") {
  TestDevice bench(require_cuda());
  require_strategy(bench, "cublaslt");
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::bf16);
  const LinearProblem problem = small_problem(dtype);
  const LinearPlan plan = make_linear_plan(bench.context(), problem,
                                           {.strategy = "cublaslt", .search_algorithms = true});
  INFO(plan.explain());
  CHECK(plan.explain().find("the fastest of ") != std::string::npos);
  PlacedLinear placed(bench, plan.problem());
  plan.run(placed.arguments(), bench.execution(plan.workspace_bytes()));
  placed.check();
  const PlanOptions same{.strategy = "cublaslt", .policy = std::string(plan.policy())};
  CHECK(make_linear_plan(bench.context(), problem, same).policy() == plan.policy());
}

TEST_CASE(
    "linear on CUDA: no plain GEMM of cuBLAS multiplies fp8, but wgmma does, simt and sequential") {
  TestDevice bench(require_cuda());
  const std::string strategy = GENERATE("wgmma", "simt", "sequential", "shared_input");
  const auto [dtype, y_dtype] =
      GENERATE(std::pair{Dtype::fp8_e4m3, Dtype::bf16}, std::pair{Dtype::fp8_e4m3, Dtype::fp16},
               std::pair{Dtype::fp8_e5m2, Dtype::fp16});
  const int64_t misalign = GENERATE(0, 1);
  LinearProblem base = small_problem(dtype);
  base.y_dtype = y_dtype;
  base.batch = 9;
  base.in_features = 144;
  base.out_features = 35;
  for (auto [name, problem] : layouts(base)) {
    if (strategy == "shared_input" && name != "shared input") continue;
    if (!allow(bench, strategy, problem)) continue;  // padded, or not Hopper
    INFO(name << ", " << dtype_name(dtype) << " to " << dtype_name(y_dtype) << ", " << strategy
              << ", misaligned by " << misalign);
    check_placed(bench, problem, strategy, misalign);
  }
  CHECK(!linear_unsupported_reason(LinearStrategy::cublas_batched, complete_linear_problem(base),
                                   bench.context().info())
             .empty());
}

TEST_CASE("linear on CUDA: both load paths of a kernel give the same bits") {
  TestDevice bench(require_cuda());
  const std::string strategy = GENERATE("simt", "gemv", "small_m", "tensor_core", "tf32x3");
  const std::string dtype = GENERATE("fp32", "fp16", "bf16");
  // Not wgmma: misaligned it is tensor_core, which adds up in another order.
  if (strategy == "tf32x3" && dtype != "fp32") return;
  const int64_t batch = strategy == "gemv" ? 3 : 20;
  const bool is_tf32 = dtype == "fp32" && is_tf32_strategy(strategy);
  const Values values{{"n", int64_t{2}},
                      {"batch", batch},
                      {"in", int64_t{144}},
                      {"out", int64_t{72}},
                      {"dtype", dtype},
                      {"activation", "gelu"},
                      {"tf32", std::string(is_tf32 ? "yes" : "no")}};
  catalog::WorkloadOptions options;
  const auto aligned = check_case(bench, strategy, values, options);
  options.misalign_elements = 1;
  CHECK(check_case(bench, strategy, values, options).members == aligned.members);
  options.row_padding = 3;
  CHECK(check_case(bench, strategy, values, options).members == aligned.members);
}

TEST_CASE("linear on CUDA: a member of a shared input does not feel how many there are") {
  TestDevice bench(require_cuda());
  const int64_t batch = GENERATE(3, 16, 64);
  const std::string tf32 = GENERATE("no", "yes");
  const auto outputs = [&](int64_t num_members) {
    return check_case(bench, "shared_input",
                      {{"n", num_members},
                       {"batch", batch},
                       {"in", int64_t{168}},
                       {"out", int64_t{40}},
                       {"shared", "yes"},
                       {"tf32", tf32}})
        .members;
  };
  const auto few = outputs(2), many = outputs(20);
  CHECK(few[0] == many[0]);
  CHECK(few[1] == many[1]);
}

TEST_CASE("linear on CUDA: activations, bias and shared input against the reference") {
  TestDevice bench(require_cuda());
  const std::string strategy = GENERATE("simt", "gemv", "small_m", "tensor_core", "wgmma", "tf32x3",
                                        "sequential", "cublas_batched", "cublaslt");
  require_strategy(bench, strategy);
  const std::string activation = GENERATE("none", "relu", "gelu", "gelu_tanh", "silu");
  const std::string dtype = GENERATE("fp32", "bf16", "fp16");
  const std::string bias = GENERATE("yes", "no");
  const bool is_fp32 = dtype == "fp32";
  if (!is_fp32 && strategy == "tf32x3") return;
  if (strategy == "shared_input" && bias == "no") return;  // bias says whether x is shared, too
  if (strategy == "wgmma" && bench.context().info().compute_capability != 90) return;
  const bool is_tf32 = is_fp32 && is_tf32_strategy(strategy);
  check_case(bench, strategy,
             {{"tf32", std::string(is_tf32 ? "yes" : "no")},
              {"n", int64_t{2}},
              {"batch", int64_t{strategy == "gemv" ? 4 : 9}},
              {"in", int64_t{40}},
              {"out", int64_t{21}},
              {"activation", activation},
              {"dtype", dtype},
              {"bias", bias},
              {"shared", bias}});
}

TEST_CASE("linear on CUDA: tf32 only where it is allowed") {
  TestDevice bench(require_cuda());
  const std::string strategy =
      GENERATE("simt", "tf32x3", "sequential", "cublas_batched", "cublaslt", "cublas_grouped");
  require_strategy(bench, strategy);
  const std::string tf32 = GENERATE("no", "yes");
  check_case(bench, strategy,
             {{"n", int64_t{3}}, {"batch", int64_t{16}}, {"d", int64_t{128}}, {"tf32", tf32}});
}

/// Errors lean to one side in tensor cores, and sums of one sign show it.
TEST_CASE("linear on CUDA: tf32x3 is as exact as fp32 in long sums of one sign") {
  TestDevice bench(require_cuda());
  const catalog::PrimitiveSpec& spec = catalog::linear_spec();
  const Values sizes{
      {"n", int64_t{2}}, {"batch", int64_t{4}}, {"in", int64_t{2048}}, {"out", int64_t{8}}};
  const catalog::Case point = catalog::make_case(spec, sizes);
  catalog::WorkloadOptions options;
  options.fill = catalog::Fill::positive;
  const auto workload = spec.make_workload(bench.context(), point, options);
  const catalog::ReferenceSample reference(*workload, 1e15);
  const auto error = [&](const char* strategy) {
    const catalog::Prepared prepared = workload->prepare(strategy);
    prepared.run(bench.execution(prepared.workspace_bytes));
    return catalog::compare(reference,
                            workload->read_outputs(catalog::OutputOf::strategy, bench.stream()))
        .worst_error_ratio;
  };
  const double of_fp32 = error("simt"), of_parts = error("tf32x3");
  INFO("errors as shares of the tolerance: simt " << of_fp32 << ", tf32x3 " << of_parts);
  CHECK(of_fp32 < 0.1);
  CHECK(of_parts < 0.03);
}

/// Their low parts would be tf32's subnormal numbers; a bias would hide them.
TEST_CASE("linear on CUDA: tf32x3 keeps the bits of small numbers") {
  TestDevice bench(require_cuda());
  catalog::WorkloadOptions options;
  options.fill = catalog::Fill::tiny;
  for (const auto& [batch, d] : {std::pair<int64_t, int64_t>{16, 64}, {70, 136}, {100, 1}}) {
    check_case(bench, "tf32x3",
               {{"n", int64_t{2}}, {"batch", batch}, {"d", d}, {"bias", std::string("no")}},
               options);
  }
}

/// Their low parts have no room for the factor that keeps those of small numbers.
TEST_CASE("linear on CUDA: tf32x3 of the largest numbers is finite") {
  TestDevice bench(require_cuda());
  const Context& context = bench.context();
  const int64_t batch = GENERATE(16, 70);
  LinearProblem problem;
  problem.num_members = 1;
  problem.batch = batch;
  problem.in_features = problem.out_features = 8;
  const LinearPlan plan = make_linear_plan(context, problem, {.strategy = "tf32x3"});
  const Tensor x = upload(context, Dtype::fp32, {batch, 8},
                          std::vector<double>(static_cast<size_t>(batch) * 8, 0x1.f01ffep127));
  std::vector<double> weights(64, 0);
  for (size_t out = 0; out < 8; ++out) weights[out * 8 + out] = 0x1p-40;
  const Tensor weight = upload(context, Dtype::fp32, {1, 8, 8}, weights);
  Tensor y(context, Dtype::fp32, {batch, 8});
  plan.run({x, weight, {}, y}, bench.execution(plan.workspace_bytes()));
  context.synchronize(bench.stream());
  for (const double value : download(context, y)) {
    CHECK(std::fabs(value / 0x1.f01ffep87 - 1) < 0x1p-11);
  }
}

TEST_CASE("linear on CUDA: empty sizes") {
  TestDevice bench(require_cuda());
  const std::string strategy =
      GENERATE("simt", "tf32x3", "sequential", "cublas_batched", "cublaslt", "cublas_grouped");
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
