// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// cuBLAS's calls, as its documentation says, on the simulated GPU: the shapes that wide asks for,
// y^T = W^T-transposed times x, and no others. Handles, algorithms and epilogues are here;
// descriptors of cublasLt's are the real library's, which needs no device for them.
#include "verify/simvendors/cublas.hpp"

#include <cublasLt.h>
#include <cublas_v2.h>

#include <algorithm>
#include <memory>

#include "verify/simvendors/cublas_rules.hpp"
#include "verify/simvendors/device_memory.hpp"
#include "verify/simvendors/faults.hpp"
#include "verify/simvendors/matrix.hpp"

namespace wide::simvendors {

CublasControl& cublas_control() {
  static CublasControl control;
  return control;
}

namespace {

struct Settings {
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  cublasMath_t math_mode = CUBLAS_DEFAULT_MATH;
};
struct Handle : Settings {
  KeptMemory kept = keep_memory();
  LoadedKernels kernels;
};

Handle& of(cublasHandle_t handle) {
  return *reinterpret_cast<Handle*>(handle);
}
Handle& of(cublasLtHandle_t handle) {  // which a cublasHandle_t may be, too
  return *reinterpret_cast<Handle*>(handle);
}

Dtype dtype_of(int type) {
  switch (type) {
    case CUDA_R_16F:
      return Dtype::fp16;
    case CUDA_R_16BF:
      return Dtype::bf16;
    case CUDA_R_8F_E4M3:
      return Dtype::fp8_e4m3;
    case CUDA_R_8F_E5M2:
      return Dtype::fp8_e5m2;
    default:
      return Dtype::fp32;
  }
}

double scalar(const void* value) {
  return static_cast<double>(*static_cast<const float*>(value));
}

/// Inside enqueued work: what the library overwrites is nobody else's.
void require_apart(const Settings& settings, const void* data, int64_t bytes) {
  const auto workspace = reinterpret_cast<uintptr_t>(settings.workspace);
  const auto at = reinterpret_cast<uintptr_t>(data);
  if (at < workspace + settings.workspace_bytes && workspace < at + static_cast<uintptr_t>(bytes)) {
    refuse_access("an operand in the library's workspace");
  }
}

/// Likewise, with the library's workspace in use.
void multiply_apart(const Settings& settings, const Product& product) {
  for (const Matrix& one : {product.a, product.b, product.c, product.d}) {
    require_apart(settings, one.data, one.bytes());
  }
  if (product.bias != nullptr) {
    const Matrix& d = product.d;
    require_apart(settings, product.bias, d.rows * wide::dtype_bytes(d.dtype));
  }
  product.compute();
}

cublasStatus_t status_of(cudaError_t error) {
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

bool is_captured(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  (void)cudaStreamIsCapturing(stream, &status);
  return status != cudaStreamCaptureStatusNone;
}

/// Without a workspace of the user's the library puts allocations of its own into a graph, which
/// nobody here wants.
bool would_allocate(const Settings& settings) {
  return settings.workspace == nullptr && is_captured(settings.stream);
}

/// One call's products, in the order of the handle's stream.
cublasStatus_t multiply(const Settings& handle, const std::vector<Product>& products) {
  if (handle.pointer_mode != CUBLAS_POINTER_MODE_HOST) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (!std::all_of(products.begin(), products.end(),
                   [](const Product& p) { return p.is_legal(); })) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  cublas_control().num_products += static_cast<int>(products.size());
  return status_of(enqueue(handle.stream, [handle, products] {
    leave_anything(handle.workspace, static_cast<int64_t>(handle.workspace_bytes));
    for (const Product& product : products) multiply_apart(handle, product);
  }));
}

/// An address that lies in device memory.
const void* pointer_at(const void* const* table, int64_t i) {
  const test::Access access = device_access("a table of pointers");
  return *reinterpret_cast<const void* const*>(access(table + i, sizeof(void*), false));
}

Matrix matrix_of(cublasLtMatrixLayout_t one, const void* data, int64_t i) {
  const Matrix first{data, dtype_of(layout<int32_t>(one, CUBLASLT_MATRIX_LAYOUT_TYPE)),
                     static_cast<int64_t>(layout<uint64_t>(one, CUBLASLT_MATRIX_LAYOUT_ROWS)),
                     static_cast<int64_t>(layout<uint64_t>(one, CUBLASLT_MATRIX_LAYOUT_COLS)),
                     layout<int64_t>(one, CUBLASLT_MATRIX_LAYOUT_LD)};
  return first.at(i, layout<int64_t>(one, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET));
}

constexpr int kAlgorithms = 3;

}  // namespace
}  // namespace wide::simvendors

using namespace wide::simvendors;

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (fails(__func__)) return CUBLAS_STATUS_ALLOC_FAILED;
  if (!is_simulated()) return CUBLAS_STATUS_NOT_INITIALIZED;
  auto made = std::make_unique<Handle>();
  if (made->kept == nullptr) return CUBLAS_STATUS_ALLOC_FAILED;
  *handle = reinterpret_cast<cublasHandle_t>(made.release());
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete &of(handle);
  return CUBLAS_STATUS_SUCCESS;
}
/// Takes the workspace back, as the library does.
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  if (fails(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  of(handle).stream = stream;
  of(handle).workspace = nullptr;
  of(handle).workspace_bytes = 0;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  if (fails(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  *stream = of(handle).stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes) {
  if (fails(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (!is_aligned(workspace, kWorkspaceAlignment)) return CUBLAS_STATUS_INVALID_VALUE;
  of(handle).workspace = workspace;
  of(handle).workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  if (fails(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  of(handle).pointer_mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode) {
  if (fails(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  *mode = of(handle).pointer_mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  if (fails(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  of(handle).math_mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  if (fails(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  *mode = of(handle).math_mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmStridedBatchedEx_64(
    cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int64_t m, int64_t n,
    int64_t k, const void* alpha, const void* a, cudaDataType a_type, int64_t lda,
    long long a_stride, const void* b, cudaDataType b_type, int64_t ldb, long long b_stride,
    const void* beta, void* c, cudaDataType c_type, int64_t ldc, long long c_stride, int64_t count,
    cublasComputeType_t compute, cublasGemmAlgo_t) {
  if (fails(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (!of(handle).kernels.load()) return CUBLAS_STATUS_EXECUTION_FAILED;
  const bool is_ours = of_a == CUBLAS_OP_T && of_b == CUBLAS_OP_N;
  if (!is_ours || !takes_types(a_type, b_type, c_type, compute)) return CUBLAS_STATUS_NOT_SUPPORTED;
  std::vector<Product> products;
  for (int64_t i = 0; i < count; ++i) {
    const Matrix y = Matrix{c, dtype_of(c_type), m, n, ldc}.at(i, c_stride);
    products.push_back({Matrix{a, dtype_of(a_type), k, m, lda}.at(i, a_stride),
                        Matrix{b, dtype_of(b_type), k, n, ldb}.at(i, b_stride), y, y, scalar(alpha),
                        scalar(beta)});
  }
  if (would_allocate(of(handle))) return CUBLAS_STATUS_ALLOC_FAILED;
  return multiply(of(handle), products);
}

cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t of_a,
                               cublasOperation_t of_b, int64_t m, int64_t n, int64_t k,
                               const void* alpha, const void* a, cudaDataType a_type, int64_t lda,
                               const void* b, cudaDataType b_type, int64_t ldb, const void* beta,
                               void* c, cudaDataType c_type, int64_t ldc,
                               cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  return cublasGemmStridedBatchedEx_64(handle, of_a, of_b, m, n, k, alpha, a, a_type, lda, 0, b,
                                       b_type, ldb, 0, beta, c, c_type, ldc, 0, 1, compute,
                                       algorithm);
}
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b,
                            int m, int n, int k, const void* alpha, const void* a,
                            cudaDataType a_type, int lda, const void* b, cudaDataType b_type,
                            int ldb, const void* beta, void* c, cudaDataType c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  return cublasGemmEx_64(handle, of_a, of_b, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta,
                         c, c_type, ldc, compute, algorithm);
}

/// Groups, one after the other, whose pointers lie in device memory and are read when the stream
/// comes to it.
cublasStatus_t cublasGemmGroupedBatchedEx_64(
    cublasHandle_t handle, const cublasOperation_t* of_a, const cublasOperation_t* of_b,
    const int64_t* m, const int64_t* n, const int64_t* k, const void* alpha, const void* const* a,
    cudaDataType_t a_type, const int64_t* lda, const void* const* b, cudaDataType_t b_type,
    const int64_t* ldb, const void* beta, void* const* c, cudaDataType_t c_type, const int64_t* ldc,
    int64_t group_count, const int64_t* group_size, cublasComputeType_t compute) {
  if (fails(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (!of(handle).kernels.load()) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (of(handle).pointer_mode != CUBLAS_POINTER_MODE_HOST ||
      !takes_grouped_types(a_type, b_type, c_type, compute)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (would_allocate(of(handle))) return CUBLAS_STATUS_ALLOC_FAILED;
  const wide::Dtype dtype = dtype_of(a_type);
  std::vector<Product> all;
  for (int64_t g = 0; g < group_count; ++g) {
    if (of_a[g] != CUBLAS_OP_T || of_b[g] != CUBLAS_OP_N) return CUBLAS_STATUS_NOT_SUPPORTED;
    const bool is_legal =
        m[g] > 0 && n[g] > 0 && k[g] > 0 && lda[g] >= k[g] && ldb[g] >= k[g] && ldc[g] >= m[g];
    if (!is_legal) return CUBLAS_STATUS_INVALID_VALUE;
    const Matrix to{nullptr, dtype, m[g], n[g], ldc[g]};
    const Product like{
        {nullptr, dtype, k[g], m[g], lda[g]}, {nullptr, dtype, k[g], n[g], ldb[g]}, to, to,
        static_cast<const float*>(alpha)[g],  static_cast<const float*>(beta)[g]};
    all.insert(all.end(), static_cast<size_t>(group_size[g]), like);
  }
  cublas_control().num_products += static_cast<int>(all.size());
  const bool is_vectorised = needs_grouped_alignment(a_type, compute);
  const auto work = [all, a, b, c, is_vectorised, settings = static_cast<Settings>(of(handle))] {
    leave_anything(settings.workspace, static_cast<int64_t>(settings.workspace_bytes));
    const auto bytes = static_cast<int64_t>(all.size() * sizeof(void*));
    for (const void* const table : {a, b, static_cast<const void* const*>(c)}) {
      require_apart(settings, table, bytes);
    }
    for (int64_t i = 0; i < std::ssize(all); ++i) {
      Product product = all[static_cast<size_t>(i)];
      product.a.data = pointer_at(a, i);
      product.b.data = pointer_at(b, i);
      product.c.data = product.d.data = pointer_at(c, i);
      for (const void* const one : {product.a.data, product.b.data, product.d.data}) {
        const bool is_aligned = reinterpret_cast<uintptr_t>(one) % 16 == 0;
        if (is_vectorised && !is_aligned) refuse_access("an unaligned matrix");
      }
      multiply_apart(settings, product);
    }
  };
  return status_of(enqueue(of(handle).stream, work));
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return cublasCreate_v2(reinterpret_cast<cublasHandle_t*>(handle));
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return cublasDestroy_v2(reinterpret_cast<cublasHandle_t>(handle));
}

/// Three algorithms; none with an epilogue where that is asked for, nor of fp8 at any address.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int at_most,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* count) {
  if (fails(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (!takes(operation, a, b, c, d)) return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto epilogue = attribute<uint32_t>(operation, CUBLASLT_MATMUL_DESC_EPILOGUE);
  if (cublas_control().refuses_fused && epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const Alignments alignments = alignments_of(preference, operation);
  const wide::Dtype dtype = dtype_of(layout<int32_t>(a, CUBLASLT_MATRIX_LAYOUT_TYPE));
  const uint64_t least = *std::min_element(alignments.begin(), alignments.end());
  if (wide::is_fp8(dtype) && least < 16) return CUBLAS_STATUS_NOT_SUPPORTED;
  *count = std::min(at_most, kAlgorithms);
  for (int i = 0; i < *count; ++i) {
    results[i] = {};
    // All there is, none, and half of it.
    const uint64_t bytes =
        preferred<uint64_t>(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
    results[i].workspaceSize = i == 1 ? 0 : bytes / static_cast<uint64_t>(1 + i / 2);
    results[i].algo =
        algorithm_of({static_cast<uint64_t>(i), results[i].workspaceSize, alignments});
    results[i].state = CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}

/// In a graph, which a search makes, algorithms differ in how long they take.
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t bytes,
                              cudaStream_t stream) {
  if (fails(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (!of(handle).kernels.load()) return CUBLAS_STATUS_EXECUTION_FAILED;
  CublasControl& control = cublas_control();
  const auto [chosen, needed_bytes, alignments] = choice_of(algorithm);
  if (control.refuses_fused && chosen + 1 < kAlgorithms) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (!takes(operation, a_layout, b_layout, c_layout, d_layout)) return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto epilogue = attribute<uint32_t>(operation, CUBLASLT_MATMUL_DESC_EPILOGUE);
  const bool has_bias = (epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
  control.saw_fused = control.saw_fused || epilogue != CUBLASLT_EPILOGUE_DEFAULT;
  const auto* bias = attribute<const std::byte*>(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  const void* const operands[] = {a, b, c, d, has_bias ? bias : nullptr};
  for (size_t i = 0; i < alignments.size(); ++i) {
    if (!is_aligned(operands[i], alignments[i])) return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (bytes < needed_bytes || !is_aligned(workspace, kWorkspaceAlignment)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const auto bias_stride = attribute<int64_t>(operation, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE);
  std::vector<Product> products;
  for (int64_t i = 0; i < layout<int32_t>(d_layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT); ++i) {
    const Matrix to = matrix_of(d_layout, d, i);
    products.push_back({matrix_of(a_layout, a, i), matrix_of(b_layout, b, i),
                        matrix_of(c_layout, c, i), to, scalar(alpha), scalar(beta),
                        has_bias ? bias + i * bias_stride * wide::dtype_bytes(to.dtype) : nullptr,
                        (epilogue & CUBLASLT_EPILOGUE_RELU) != 0});
  }
  if (is_captured(stream)) {
    constexpr int kMore[kAlgorithms] = {3, 1, 2};
    for (int i = 0; i < kMore[chosen]; ++i) (void)enqueue(stream, [] {});
  } else {
    ++control.num_enqueued;
  }
  return multiply({stream, workspace, bytes}, products);
}

}  // extern "C"
