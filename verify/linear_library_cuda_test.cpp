// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The strategies that call NVIDIA's libraries, where those cannot run: this program has cuBLAS's
// and cuBLASLt's entry points itself, which multiply on the host as their documentation says, in
// the simulated GPU's memory. What is tested is what the library is told, and our kernels around
// it.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>

#include "host/linear/linear_problem.hpp"
#include "host/linear/linear_strategy.hpp"
#include "verify/linear_case.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/simulation.hpp"

namespace {

using wide::Dtype;

cudaStream_t current_stream = nullptr;  // of the one handle
int num_calls = 0;
bool refuses_fused = false, saw_fused = false;
int num_enqueued = 0;  // of cublasLtMatmul, outside of captures

Dtype dtype_of(int type) {
  if (type == CUDA_R_8F_E4M3) return Dtype::fp8_e4m3;
  return type == CUDA_R_16F ? Dtype::fp16 : type == CUDA_R_16BF ? Dtype::bf16 : Dtype::fp32;
}

/// One column-major matrix in device memory.
struct Matrix {
  const void* data;
  Dtype dtype;
  int64_t rows, columns, leading;

  /// All of it, gaps included: one copy for many elements.
  std::vector<std::byte> fetch() const {
    const int64_t count = (columns - 1) * leading + rows;
    std::vector<std::byte> bytes(static_cast<size_t>(count * wide::dtype_bytes(dtype)));
    REQUIRE(cudaMemcpy(bytes.data(), data, bytes.size(), cudaMemcpyDeviceToHost) == cudaSuccess);
    return bytes;
  }
  double element(const std::vector<std::byte>& bytes, int64_t row, int64_t column) const {
    return wide::load_element(bytes.data(), dtype, column * leading + row);
  }
  void set_column(int64_t c, const std::vector<double>& values) const {
    std::vector<std::byte> bytes(static_cast<size_t>(rows * wide::dtype_bytes(dtype)));
    for (int64_t r = 0; r < rows; ++r) {
      wide::store_element(bytes.data(), dtype, r, values[static_cast<size_t>(r)]);
    }
    REQUIRE(cudaMemcpy(const_cast<void*>(at(c)), bytes.data(), bytes.size(),
                       cudaMemcpyHostToDevice) == cudaSuccess);
  }
  const void* at(int64_t c) const {
    return static_cast<const std::byte*>(data) + c * leading * wide::dtype_bytes(dtype);
  }
  Matrix member(int64_t i, int64_t stride) const {
    Matrix other = *this;
    other.data = static_cast<const std::byte*>(data) + i * stride * wide::dtype_bytes(dtype);
    return other;
  }
};

/// d = relu(alpha * a^T b + beta * c + bias), rounded once. Null: none.
void multiply(const Matrix& a, const Matrix& b, const Matrix& c, const Matrix& d, double alpha,
              double beta, const Matrix* bias = nullptr, bool is_relu = false) {
  ++num_calls;
  REQUIRE((a.rows == b.rows && a.columns == d.rows && b.columns == d.columns));
  REQUIRE((a.leading >= a.rows && b.leading >= b.rows && d.leading >= d.rows));
  REQUIRE(cudaStreamSynchronize(current_stream) == cudaSuccess);
  const auto of_a = a.fetch(), of_b = b.fetch();
  const auto of_c = beta != 0 ? c.fetch() : std::vector<std::byte>();
  const auto biases = bias != nullptr ? bias->fetch() : std::vector<std::byte>();
  for (int64_t column = 0; column < d.columns; ++column) {
    std::vector<double> values;
    for (int64_t row = 0; row < d.rows; ++row) {
      double sum = 0;
      for (int64_t k = 0; k < a.rows; ++k) {
        sum += a.element(of_a, k, row) * b.element(of_b, k, column);
      }
      sum *= alpha;
      if (beta != 0) sum += beta * c.element(of_c, row, column);
      if (bias != nullptr) sum += bias->element(biases, row, 0);
      values.push_back(is_relu && sum < 0 ? 0 : sum);
    }
    d.set_column(column, values);
  }
}

template <class Value>
Value layout(cublasLtMatrixLayout_t one, cublasLtMatrixLayoutAttribute_t name) {
  Value value{};
  REQUIRE(cublasLtMatrixLayoutGetAttribute(one, name, &value, sizeof(value), nullptr) ==
          CUBLAS_STATUS_SUCCESS);
  return value;
}

template <class Value>
Value attribute(cublasLtMatmulDesc_t one, cublasLtMatmulDescAttributes_t name) {
  Value value{};
  REQUIRE(cublasLtMatmulDescGetAttribute(one, name, &value, sizeof(value), nullptr) ==
          CUBLAS_STATUS_SUCCESS);
  return value;
}

Matrix matrix_of(cublasLtMatrixLayout_t one, const void* data, int64_t i) {
  const Matrix first{data, dtype_of(layout<int32_t>(one, CUBLASLT_MATRIX_LAYOUT_TYPE)),
                     static_cast<int64_t>(layout<uint64_t>(one, CUBLASLT_MATRIX_LAYOUT_ROWS)),
                     static_cast<int64_t>(layout<uint64_t>(one, CUBLASLT_MATRIX_LAYOUT_COLS)),
                     layout<int64_t>(one, CUBLASLT_MATRIX_LAYOUT_LD)};
  return first.member(i, layout<int64_t>(one, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET));
}

float scalar(const void* value) {
  return *static_cast<const float*>(value);
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = reinterpret_cast<cublasHandle_t>(uintptr_t{256});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t, cudaStream_t stream) {
  current_stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t, cublasPointerMode_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) {
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t, cublasOperation_t, cublasOperation_t,
                                             int64_t m, int64_t n, int64_t k, const void* alpha,
                                             const void* a, cudaDataType a_type, int64_t lda,
                                             long long a_stride, const void* b, cudaDataType b_type,
                                             int64_t ldb, long long b_stride, const void* beta,
                                             void* c, cudaDataType c_type, int64_t ldc,
                                             long long c_stride, int64_t count, cublasComputeType_t,
                                             cublasGemmAlgo_t) {
  for (int64_t i = 0; i < count; ++i) {
    const Matrix y = Matrix{c, dtype_of(c_type), m, n, ldc}.member(i, c_stride);
    multiply(Matrix{a, dtype_of(a_type), k, m, lda}.member(i, a_stride),
             Matrix{b, dtype_of(b_type), k, n, ldb}.member(i, b_stride), y, y, scalar(alpha),
             scalar(beta));
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb,
                               int64_t m, int64_t n, int64_t k, const void* alpha, const void* a,
                               cudaDataType a_type, int64_t lda, const void* b, cudaDataType b_type,
                               int64_t ldb, const void* beta, void* c, cudaDataType c_type,
                               int64_t ldc, cublasComputeType_t compute,
                               cublasGemmAlgo_t algorithm) {
  return cublasGemmStridedBatchedEx_64(handle, ta, tb, m, n, k, alpha, a, a_type, lda, 0, b, b_type,
                                       ldb, 0, beta, c, c_type, ldc, 0, 1, compute, algorithm);
}

cublasStatus_t cublasGemmGroupedBatchedEx_64(
    cublasHandle_t, const cublasOperation_t*, const cublasOperation_t*, const int64_t* m,
    const int64_t* n, const int64_t* k, const void* alpha, const void* const* a,
    cudaDataType_t a_type, const int64_t* lda, const void* const* b, cudaDataType_t b_type,
    const int64_t* ldb, const void* beta, void* const* c, cudaDataType_t c_type, const int64_t* ldc,
    int64_t group_count, const int64_t* group_size, cublasComputeType_t) {
  REQUIRE((group_count == 1 && a_type == b_type && b_type == c_type));
  REQUIRE(cudaStreamSynchronize(current_stream) == cudaSuccess);
  const auto fetch = [&](const void* const* from, int64_t i) {
    const void* address = nullptr;
    REQUIRE(cudaMemcpy(&address, from + i, sizeof(address), cudaMemcpyDeviceToHost) == cudaSuccess);
    REQUIRE((a_type == CUDA_R_32F || reinterpret_cast<uintptr_t>(address) % 16 == 0));
    return address;
  };
  for (int64_t i = 0; i < *group_size; ++i) {
    const Matrix y{fetch(c, i), dtype_of(c_type), *m, *n, *ldc};
    multiply(Matrix{fetch(a, i), dtype_of(a_type), *k, *m, *lda},
             Matrix{fetch(b, i), dtype_of(b_type), *k, *n, *ldb}, y, y, scalar(alpha),
             scalar(beta));
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(uintptr_t{512});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) {
  return CUBLAS_STATUS_SUCCESS;
}

/// Three algorithms; none with an epilogue where that is asked for, nor of fp8 at any address.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int at_most,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* count) {
  const auto epilogue = attribute<uint32_t>(operation, CUBLASLT_MATMUL_DESC_EPILOGUE);
  if (refuses_fused && epilogue != CUBLASLT_EPILOGUE_DEFAULT) return CUBLAS_STATUS_NOT_SUPPORTED;
  uint32_t alignment = 0;
  REQUIRE(cublasLtMatmulPreferenceGetAttribute(
              preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &alignment, sizeof(alignment),
              nullptr) == CUBLAS_STATUS_SUCCESS);
  const Dtype dtype = dtype_of(layout<int32_t>(a, CUBLASLT_MATRIX_LAYOUT_TYPE));
  if (wide::is_fp8(dtype) && alignment < 16) return CUBLAS_STATUS_NOT_SUPPORTED;
  *count = std::min(at_most, 3);
  for (int i = 0; i < *count; ++i) {
    results[i] = {};
    results[i].algo.data[0] = static_cast<uint64_t>(i);
    results[i].state = CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}

/// The algorithms 0 and 1 cannot run what is asked for, so that a search has to end with 2. In a
/// graph, which only a search makes here, they differ in how long they take.
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void*, size_t,
                              cudaStream_t stream) {
  if (refuses_fused && algorithm->data[0] < 2) return CUBLAS_STATUS_NOT_SUPPORTED;
  current_stream = stream;
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  REQUIRE(cudaStreamIsCapturing(stream, &capturing) == cudaSuccess);
  if (capturing != cudaStreamCaptureStatusNone) {
    constexpr int kNodes[] = {4, 2, 3};
    for (int i = 0; i < kNodes[algorithm->data[0]]; ++i) {
      REQUIRE(cudaMemsetAsync(d, 0, 1, stream) == cudaSuccess);
    }
    return CUBLAS_STATUS_SUCCESS;
  }
  ++num_enqueued;
  REQUIRE(attribute<int32_t>(operation, CUBLASLT_MATMUL_DESC_TRANSA) == CUBLAS_OP_T);
  const auto epilogue = attribute<uint32_t>(operation, CUBLASLT_MATMUL_DESC_EPILOGUE);
  saw_fused = saw_fused || epilogue != CUBLASLT_EPILOGUE_DEFAULT;
  const auto* bias = attribute<const std::byte*>(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  const auto bias_stride = attribute<int64_t>(operation, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE);
  const auto count = layout<int32_t>(d_layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  for (int64_t i = 0; i < count; ++i) {
    const Matrix to = matrix_of(d_layout, d, i);
    const Matrix biases = Matrix{bias, to.dtype, to.rows, 1, to.rows}.member(i, bias_stride);
    multiply(matrix_of(a_layout, a, i), matrix_of(b_layout, b, i), matrix_of(c_layout, c, i), to,
             scalar(alpha), scalar(beta),
             (epilogue & CUBLASLT_EPILOGUE_BIAS) != 0 ? &biases : nullptr,
             (epilogue & CUBLASLT_EPILOGUE_RELU) != 0);
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"

namespace wide::test {
namespace {

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
  const int64_t misalign = GENERATE(0, 1);
  refuses_fused = GENERATE(false, true);
  if (strategy == "cublaslt" && refuses_fused) return;  // it has a test of its own
  LinearProblem base = small_problem(dtype);
  base.in_features = 24;
  base.out_features = 8;
  int num_run = 0;
  for (const auto& [name, problem] : layouts(base)) {
    if (!can_run(device, strategy, problem)) continue;
    INFO(name << ", " << dtype_name(dtype) << ", " << strategy << ", misaligned by " << misalign);
    const int before = num_calls;
    check_placed(device, problem, strategy, misalign);
    CHECK(num_calls == before + problem.num_members);
    ++num_run;
  }
  CHECK(num_run >= 3);
}

TEST_CASE("libraries: every epilogue against the reference") {
  TestDevice device(new_device());
  const std::string strategy = GENERATE(from_range(std::begin(kStrategies), std::end(kStrategies)));
  const std::string dtype = GENERATE("fp32", "bf16");
  const std::string activation = GENERATE("none", "relu", "gelu");
  const std::string bias = GENERATE("yes", "no");
  const std::string scale = GENERATE("no", "member", "output");
  const std::string residual = GENERATE("no", "before", "after");
  refuses_fused = false;
  const Values values{{"n", int64_t{3}},    {"batch", int64_t{5}},  {"in", int64_t{16}},
                      {"out", int64_t{24}}, {"dtype", dtype},       {"bias", bias},
                      {"scale", scale},     {"residual", residual}, {"activation", activation}};
  const catalog::PrimitiveSpec& spec = catalog::linear_spec();
  const auto workload = spec.make_workload(device.context(), catalog::make_case(spec, values), {});
  if (!workload->unsupported_reason(strategy).empty()) {
    CHECK(strategy == "cublas_grouped");
    return;
  }
  saw_fused = false;
  check_case(device, strategy, values);
  const bool is_plain = activation == "none" && bias == "no";
  const bool has_the_same =
      activation != "gelu" && scale == "no" && (residual != "after" || activation == "none");
  CHECK(saw_fused == (strategy == "cublaslt" && has_the_same && !is_plain));
}

TEST_CASE("libraries: cublaslt multiplies fp8, and simt stands in for it") {
  TestDevice device(new_device());
  const bool has_bias = GENERATE(false, true);
  const int64_t misalign = GENERATE(0, 1);
  refuses_fused = false;
  LinearProblem problem = small_problem(Dtype::fp8_e4m3);
  problem.y_dtype = GENERATE(Dtype::fp16, Dtype::bf16);
  problem.in_features = 32;
  problem.out_features = 16;
  problem.epilogue.has_bias = has_bias;
  if (!can_run(device, "cublaslt", problem)) SKIP("fp8 needs compute capability 8.9");
  const int before = num_calls;
  check_placed(device, problem, "cublaslt", misalign);
  CHECK(num_calls == before + (misalign == 0 ? problem.num_members : 0));
  problem.epilogue.activation = Activation::gelu;
  CHECK(make_linear_plan(device.context(), problem, {.strategy = "cublaslt"})
            .explain()
            .ends_with("in a kernel of ours"));
}

TEST_CASE("libraries: alpha, and a residual that is y itself") {
  TestDevice device(new_device());
  const std::string strategy = GENERATE(from_range(std::begin(kStrategies), std::end(kStrategies)));
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::bf16);
  refuses_fused = false;
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
  refuses_fused = true;
  num_enqueued = 0;
  const LinearProblem problem = small_problem(dtype);
  const LinearPlan plan = make_linear_plan(device.context(), problem,
                                           {.strategy = "cublaslt", .search_algorithms = true});
  CHECK(plan.policy() == "h2");
  CHECK(num_enqueued == 1);  // what is measured comes from graphs
  CHECK(plan.explain() ==
        "cublaslt: asked for by name; h2, the fastest of 3 algorithms; epilogue "
        "in a kernel of ours");
  PlacedLinear placed(device, plan.problem());
  plan.run(placed.arguments(), device.execution(plan.workspace_bytes()));
  placed.check();
  refuses_fused = false;
  CHECK(make_linear_plan(device.context(), problem,
                         {.strategy = "cublaslt", .search_algorithms = true})
            .policy() == "h1");
  const LinearPlan fused = make_linear_plan(device.context(), problem, {.strategy = "cublaslt"});
  CHECK(fused.explain() ==
        "cublaslt: asked for by name; h0, the heuristic's first of 3 algorithms; "
        "epilogue in the call: bias");
  CHECK(make_linear_plan(device.context(), problem, {.strategy = "cublaslt", .policy = "h1"})
            .policy() == "h1");
  try {
    (void)make_linear_plan(device.context(), problem, {.strategy = "cublaslt", .policy = "h3"});
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::unsupported);
  }
}

}  // namespace
}  // namespace wide::test
