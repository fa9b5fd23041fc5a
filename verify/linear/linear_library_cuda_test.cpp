// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The strategies that call NVIDIA's libraries, where those cannot run: this program has the
// simulated cuBLAS itself. What is tested is what the library is told, and our kernels around it.
#include <cublas_v2.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include "host/core/plan_checks.hpp"
#include "host/linear/linear_problem.hpp"
#include "host/linear/linear_strategy.hpp"
#include "verify/linear/linear_case.hpp"
#include "verify/simvendors/cublas.hpp"
#include "verify/support/captured_call_cuda.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/refusals.hpp"
#include "verify/support/simulation.hpp"
#include "wide/error.hpp"

namespace wide::test {
namespace {

simvendors::CublasControl& library = simvendors::cublas_control();

constexpr const char* kStrategies[] = {"sequential", "cublas_batched", "cublaslt",
                                       "cublas_grouped"};

/// Without what earlier tests left: the simulated GPU looks through it at every access.
Context new_device() {
  require_simulation();
  Simulation::reset_device();
  return Context::cuda(0);
}

bool can_run(const TestDevice& device, const std::string& strategy, const LinearProblem& problem) {
  return linear_unsupported_reason(*parse_linear_strategy(strategy, DeviceType::cuda),
                                   complete_linear_problem(problem), device.context().info())
      .empty();
}

TEST_CASE("libraries: every layout and dtype, exactly") {
  TestDevice device(new_device());
  const std::string strategy = GENERATE(from_range(std::begin(kStrategies), std::end(kStrategies)));
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::fp16, Dtype::bf16);
  const int64_t misalign = GENERATE(0, 1, 8);  // 8: 16 or 32 bytes
  library.refuses_fused = GENERATE(false, true);
  if (strategy == "cublaslt" && library.refuses_fused) return;  // it has a test of its own
  LinearProblem base = small_problem(dtype);
  base.in_features = 24;
  base.out_features = 8;
  int num_run = 0;
  for (const auto& [name, problem] : layouts(base)) {
    if (!can_run(device, strategy, problem)) continue;
    INFO(name << ", " << dtype_name(dtype) << ", " << strategy << ", misaligned by " << misalign);
    const int before = library.num_products;
    check_placed(device, problem, strategy, misalign);
    CHECK(library.num_products == before + problem.num_members);
    ++num_run;
  }
  CHECK(num_run >= 3);
}

TEST_CASE("libraries: handles of another device are refused, but for lent ones, which do not say") {
  const Context context = new_device();
  const Device other{DeviceType::cuda, 1};
  const OwnedStream stream(context);
  const VendorHandles handles(context);
  const VendorHandles lent = VendorHandles::borrow(handles.cublas());
  Execution execution{stream.get()};
  execution.handles = &handles;
  CHECK(handles.device() == context.device());
  CHECK(require_cublas("linear", execution, context.device()) == handles.cublas());
  CHECK_THROWS_MATCHES(require_cublas("linear", execution, other), Error,
                       Catch::Matchers::Message("linear: execution.handles are of cuda:0, expected "
                                                "the plan's device = cuda:1"));
  execution.handles = &lent;
  CHECK(!lent.device());
  CHECK(require_cublas("linear", execution, other) == handles.cublas());
}

TEST_CASE("libraries: a handle that was lent comes back as it was") {
  TestDevice device(new_device());
  const std::string strategy = GENERATE("sequential", "cublas_batched", "cublas_grouped");
  const auto handle = static_cast<cublasHandle_t>(device.handles().cublas());
  cudaStream_t own = nullptr, stream = nullptr;
  REQUIRE(cudaStreamCreate(&own) == cudaSuccess);
  REQUIRE(cublasSetStream(handle, own) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH) == CUBLAS_STATUS_SUCCESS);
  check_case(device, strategy, {{"n", int64_t{2}}, {"batch", int64_t{8}}, {"d", int64_t{16}}});
  cublasPointerMode_t pointers{};
  cublasMath_t math{};
  REQUIRE(cublasGetStream(handle, &stream) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasGetPointerMode(handle, &pointers) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasGetMathMode(handle, &math) == CUBLAS_STATUS_SUCCESS);
  CHECK((stream == own && pointers == CUBLAS_POINTER_MODE_DEVICE));
  CHECK(math == CUBLAS_TF32_TENSOR_OP_MATH);
  CHECK(cudaStreamDestroy(own) == cudaSuccess);
}

TEST_CASE("libraries: a captured call has its workspace from us") {
  TestDevice device(new_device());
  const std::string strategy = GENERATE(from_range(std::begin(kStrategies), std::end(kStrategies)));
  library.refuses_fused = false;
  const LinearPlan plan =
      make_linear_plan(device.context(), small_problem(), {.strategy = strategy});
  PlacedLinear placed(device, plan.problem());
  const Execution execution = device.execution(plan.workspace_bytes());
  CapturedCall call(device.stream(), [&] { plan.run(placed.arguments(), execution); });
  call.launch();
  placed.check();
}

TEST_CASE("libraries: the simulated one refuses to allocate in a captured call") {
  TestDevice device(new_device());
  const auto handle = static_cast<cublasHandle_t>(device.handles().cublas());
  const auto stream = static_cast<cudaStream_t>(device.stream().native());
  Tensor memory(device.context(), Dtype::uint8, {1 << 12});
  auto* const data = static_cast<std::byte*>(memory.data());
  const float one = 1, zero = 0;
  fill_bytes(memory.view(), 0, device.stream());
  REQUIRE(cublasSetStream(handle, stream) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  CHECK(cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, 8, 8, 8, &one, data, CUDA_R_32F, 8,
                     data + 1024, CUDA_R_32F, 8, &zero, data + 2048, CUDA_R_32F, 8,
                     CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_ALLOC_FAILED);
  cudaGraph_t graph{};
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
}

TEST_CASE("libraries: the simulated ones refuse what cuBLAS's tables do not have") {
  TestDevice device(new_device());
  const auto handle = static_cast<cublasHandle_t>(device.handles().cublas());
  Tensor memory(device.context(), Dtype::uint8, {1 << 12});
  auto* const data = static_cast<std::byte*>(memory.data());
  const float one = 1, zero = 0;
  const auto multiply = [&](cudaDataType_t type, cudaDataType_t to, cublasComputeType_t compute) {
    return cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, 8, 8, 8, &one, data, type, 8, data + 1024,
                        type, 8, &zero, data + 2048, to, 8, compute, CUBLAS_GEMM_DEFAULT);
  };
  fill_bytes(memory.view(), 0, device.stream());
  REQUIRE(cublasSetStream(handle, static_cast<cudaStream_t>(device.stream().native())) ==
          CUBLAS_STATUS_SUCCESS);
  CHECK(multiply(CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F) == CUBLAS_STATUS_SUCCESS);
  CHECK(multiply(CUDA_R_16BF, CUDA_R_16F, CUBLAS_COMPUTE_32F) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(multiply(CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F_FAST_TF32) ==
        CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(multiply(CUDA_R_8F_E4M3, CUDA_R_32F, CUBLAS_COMPUTE_32F) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(cublasSetWorkspace(handle, data + 128, 512) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(cublasSetWorkspace(handle, data + 256, 512) == CUBLAS_STATUS_SUCCESS);
}

TEST_CASE("libraries: every epilogue against the reference") {
  TestDevice device(new_device());
  const std::string strategy = GENERATE(from_range(std::begin(kStrategies), std::end(kStrategies)));
  const std::string dtype = GENERATE("fp32", "bf16");
  const std::string activation = GENERATE("none", "relu", "gelu", "gelu_tanh");
  const std::string bias = GENERATE("yes", "no");
  const std::string scale = GENERATE("no", "member", "output");
  const std::string residual = GENERATE("no", "before", "after");
  library.refuses_fused = false;
  const Values values{{"n", int64_t{3}},    {"batch", int64_t{5}},  {"in", int64_t{16}},
                      {"out", int64_t{24}}, {"dtype", dtype},       {"bias", bias},
                      {"scale", scale},     {"residual", residual}, {"activation", activation}};
  const catalog::PrimitiveSpec& spec = catalog::linear_spec();
  const auto workload = spec.make_workload(device.context(), catalog::make_case(spec, values), {});
  if (!workload->unsupported_reason(strategy).empty()) {
    CHECK(strategy == "cublas_grouped");
    return;
  }
  library.saw_fused = false;
  check_case(device, strategy, values);
  const bool is_plain = activation == "none" && bias == "no";
  const bool has_the_same =
      (activation == "none" || (activation == "relu" && residual != "after")) && scale == "no";
  CHECK(library.saw_fused == (strategy == "cublaslt" && has_the_same && !is_plain));
}

TEST_CASE("libraries: cublaslt multiplies fp8, and simt stands in for it") {
  TestDevice device(new_device());
  const bool has_bias = GENERATE(false, true);
  const int64_t misalign = GENERATE(0, 1);
  library.refuses_fused = false;
  LinearProblem problem = small_problem(Dtype::fp8_e4m3);
  problem.y_dtype = GENERATE(Dtype::fp16, Dtype::bf16);
  problem.in_features = 32;
  problem.out_features = 16;
  problem.epilogue.has_bias = has_bias;
  if (!can_run(device, "cublaslt", problem)) SKIP("fp8 needs compute capability 8.9");
  const int before = library.num_products;
  check_placed(device, problem, "cublaslt", misalign);
  CHECK(library.num_products == before + (misalign == 0 ? problem.num_members : 0));
  problem.epilogue.activation = Activation::gelu;
  CHECK(make_linear_plan(device.context(), problem, {.strategy = "cublaslt"})
            .explain()
            .ends_with("in a kernel of ours"));
}

TEST_CASE("libraries: alpha, and a residual that is y itself") {
  TestDevice device(new_device());
  const std::string strategy = GENERATE(from_range(std::begin(kStrategies), std::end(kStrategies)));
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::bf16);
  library.refuses_fused = false;
  LinearProblem problem = small_problem(dtype);
  problem.in_features = 24;
  problem.out_features = 8;
  problem.epilogue.alpha = 0.5f;
  check_placed(device, problem, strategy);
  problem.epilogue.has_bias = false;
  check_placed(device, problem, strategy);
}

TEST_CASE("libraries: cublaslt without an epilogue of its own, and its search") {
  TestDevice device(new_device());
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::bf16);
  library.refuses_fused = true;
  library.num_enqueued = 0;
  const LinearProblem problem = small_problem(dtype);
  const LinearPlan plan = make_linear_plan(device.context(), problem,
                                           {.strategy = "cublaslt", .search_algorithms = true});
  CHECK(plan.policy() == "h2");
  CHECK(library.num_enqueued == 1);  // what is measured comes from graphs
  CHECK(plan.explain() ==
        "cublaslt: asked for by name; h2, the fastest of 3 algorithms; epilogue "
        "in a kernel of ours");
  PlacedLinear placed(device, plan.problem());
  plan.run(placed.arguments(), device.execution(plan.workspace_bytes()));
  placed.check();
  library.refuses_fused = false;
  CHECK(make_linear_plan(device.context(), problem,
                         {.strategy = "cublaslt", .search_algorithms = true})
            .policy() == "h1");
  const LinearPlan fused = make_linear_plan(device.context(), problem, {.strategy = "cublaslt"});
  CHECK(fused.explain() ==
        "cublaslt: asked for by name; h0, the heuristic's first of 3 algorithms; "
        "epilogue in the call: bias");
  CHECK(make_linear_plan(device.context(), problem, {.strategy = "cublaslt", .policy = "h1"})
            .policy() == "h1");
  const auto make_another = [&] {
    (void)make_linear_plan(device.context(), problem, {.strategy = "cublaslt", .policy = "h3"});
  };
  CHECK(message_of(ErrorCode::unsupported, make_another) != "nothing was thrown");
}

}  // namespace
}  // namespace wide::test
