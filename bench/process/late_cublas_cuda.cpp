// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The functions of cuBLAS that libwide and wbench call, of which each finds the library when it is
// called first. To load libcublasLt takes longer than all else that `wbench list`, a completion or
// a short run on the CPU does, and without its file wbench would not start at all. An engine links
// cuBLAS as it likes: this is for wbench, and for the library that tests share.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <dlfcn.h>

#include <string>

namespace {

/// cuBLAS in this process: libcublas, whose handle finds libcublasLt's functions, too.
struct Library {
  void* handle = nullptr;
  std::string reason;  // why there is none, as the name of a status

  Library() {
    // Without a driver it would be loaded only to say that it cannot be initialised.
    if (open("libcuda.so.1") == nullptr) return;
    handle = open("libcublas.so." + std::to_string(CUBLAS_VER_MAJOR));
  }

 private:
  void* open(const std::string& file) {
    void* opened = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) reason = std::string("CUBLAS_STATUS_NOT_INITIALIZED: ") + ::dlerror();
    return opened;
  }
};

const Library& cublas() {
  static const Library library;
  return library;
}

/// Null where there is no library. One that stands in front of cuBLAS comes first, as a profiler's
/// or the simulated one does (LD_PRELOAD); ours are hidden, so that they do not find themselves.
void* find(const char* name) {
  void* found = ::dlsym(RTLD_DEFAULT, name);
  if (found == nullptr && cublas().handle != nullptr) found = ::dlsym(cublas().handle, name);
  return found;
}

/// `function`'s result, where there is one. Arguments are its caller's parameters, whose types the
/// library's header has checked.
template <class... Arguments>
cublasStatus_t call(void* function, Arguments... arguments) {
  if (function == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  return reinterpret_cast<cublasStatus_t (*)(Arguments...)>(function)(arguments...);
}

/// What a status is called by `function`, where there is one.
const char* describe(void* function, cublasStatus_t status) {
  if (function == nullptr) return cublas().reason.c_str();
  return reinterpret_cast<const char* (*)(cublasStatus_t)>(function)(status);
}

}  // namespace

#define WIDE_FOUND(name)                    \
  [] {                                      \
    static void* const found = find(#name); \
    return found;                           \
  }()

#pragma GCC visibility push(hidden)
extern "C" {

const char* cublasGetStatusName(cublasStatus_t status) {
  return describe(WIDE_FOUND(cublasGetStatusName), status);
}
const char* cublasGetStatusString(cublasStatus_t status) {
  return describe(WIDE_FOUND(cublasGetStatusString), status);
}

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  return call(WIDE_FOUND(cublasCreate_v2), handle);
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  return call(WIDE_FOUND(cublasDestroy_v2), handle);
}
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  return call(WIDE_FOUND(cublasGetStream_v2), handle, stream);
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  return call(WIDE_FOUND(cublasSetStream_v2), handle, stream);
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* data, size_t bytes) {
  return call(WIDE_FOUND(cublasSetWorkspace_v2), handle, data, bytes);
}
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode) {
  return call(WIDE_FOUND(cublasGetPointerMode_v2), handle, mode);
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  return call(WIDE_FOUND(cublasSetPointerMode_v2), handle, mode);
}
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  return call(WIDE_FOUND(cublasGetMathMode), handle, mode);
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return call(WIDE_FOUND(cublasSetMathMode), handle, mode);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k, const void* alpha,
                            const void* a, cudaDataType a_type, int lda, const void* b,
                            cudaDataType b_type, int ldb, const void* beta, void* c,
                            cudaDataType c_type, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algorithm) {
  return call(WIDE_FOUND(cublasGemmEx), handle, transa, transb, m, n, k, alpha, a, a_type, lda, b,
              b_type, ldb, beta, c, c_type, ldc, compute, algorithm);
}
cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t transa,
                               cublasOperation_t transb, int64_t m, int64_t n, int64_t k,
                               const void* alpha, const void* a, cudaDataType a_type, int64_t lda,
                               const void* b, cudaDataType b_type, int64_t ldb, const void* beta,
                               void* c, cudaDataType c_type, int64_t ldc,
                               cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  return call(WIDE_FOUND(cublasGemmEx_64), handle, transa, transb, m, n, k, alpha, a, a_type, lda,
              b, b_type, ldb, beta, c, c_type, ldc, compute, algorithm);
}
cublasStatus_t cublasGemmStridedBatchedEx_64(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int64_t m, int64_t n,
    int64_t k, const void* alpha, const void* a, cudaDataType a_type, int64_t lda,
    long long stride_a, const void* b, cudaDataType b_type, int64_t ldb, long long stride_b,
    const void* beta, void* c, cudaDataType c_type, int64_t ldc, long long stride_c, int64_t count,
    cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  return call(WIDE_FOUND(cublasGemmStridedBatchedEx_64), handle, transa, transb, m, n, k, alpha, a,
              a_type, lda, stride_a, b, b_type, ldb, stride_b, beta, c, c_type, ldc, stride_c,
              count, compute, algorithm);
}
cublasStatus_t cublasGemmGroupedBatchedEx_64(
    cublasHandle_t handle, const cublasOperation_t transa[], const cublasOperation_t transb[],
    const int64_t m[], const int64_t n[], const int64_t k[], const void* alpha,
    const void* const a[], cudaDataType_t a_type, const int64_t lda[], const void* const b[],
    cudaDataType_t b_type, const int64_t ldb[], const void* beta, void* const c[],
    cudaDataType_t c_type, const int64_t ldc[], int64_t num_groups, const int64_t group_size[],
    cublasComputeType_t compute) {
  return call(WIDE_FOUND(cublasGemmGroupedBatchedEx_64), handle, transa, transb, m, n, k, alpha, a,
              a_type, lda, b, b_type, ldb, beta, c, c_type, ldc, num_groups, group_size, compute);
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return call(WIDE_FOUND(cublasLtCreate), handle);
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return call(WIDE_FOUND(cublasLtDestroy), handle);
}
cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t operation, size_t bytes,
                                               cublasComputeType_t compute, cudaDataType_t scale) {
  return call(WIDE_FOUND(cublasLtMatmulDescInit_internal), operation, bytes, compute, scale);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  return call(WIDE_FOUND(cublasLtMatmulDescSetAttribute), operation, attribute, value, bytes);
}
cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t bytes,
                                                 cudaDataType type, uint64_t rows, uint64_t columns,
                                                 int64_t leading) {
  return call(WIDE_FOUND(cublasLtMatrixLayoutInit_internal), layout, bytes, type, rows, columns,
              leading);
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t bytes) {
  return call(WIDE_FOUND(cublasLtMatrixLayoutSetAttribute), layout, attribute, value, bytes);
}
cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference,
                                                     size_t bytes) {
  return call(WIDE_FOUND(cublasLtMatmulPreferenceInit_internal), preference, bytes);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  return call(WIDE_FOUND(cublasLtMatmulPreferenceSetAttribute), preference, attribute, value,
              bytes);
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
                                              cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* num_found) {
  return call(WIDE_FOUND(cublasLtMatmulAlgoGetHeuristic), handle, operation, a, b, c, d, preference,
              wanted, results, num_found);
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* chosen,
                              void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  return call(WIDE_FOUND(cublasLtMatmul), handle, operation, alpha, a, a_layout, b, b_layout, beta,
              c, c_layout, d, d_layout, chosen, workspace, workspace_bytes, stream);
}

}  // extern "C"
#pragma GCC visibility pop
