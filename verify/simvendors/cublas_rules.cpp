// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/simvendors/cublas_rules.hpp"

#include <algorithm>
#include <iterator>

namespace wide::simvendors {

namespace {

bool is_fp8(cudaDataType_t type) {
  return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

bool is_float(cudaDataType_t type) {
  return type == CUDA_R_16F || type == CUDA_R_16BF || type == CUDA_R_32F;
}

cudaDataType_t type_of(cublasLtMatrixLayout_t one) {
  return static_cast<cudaDataType_t>(layout<int32_t>(one, CUBLASLT_MATRIX_LAYOUT_TYPE));
}

/// Multiples of 16 elements, which are 16 bytes.
bool is_whole(cublasLtMatrixLayout_t one) {
  return layout<uint64_t>(one, CUBLASLT_MATRIX_LAYOUT_ROWS) % 16 == 0 &&
         layout<int64_t>(one, CUBLASLT_MATRIX_LAYOUT_LD) % 16 == 0 &&
         layout<int64_t>(one, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) % 16 == 0;
}

/// "cublasLtMatmul", the table of FP8 kernels: not e5m2 by e5m2, and a bias of bf16 for fp32.
bool takes_fp8(cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cudaDataType_t to,
               cublasComputeType_t compute) {
  const bool has_e4m3 = type_of(a) == CUDA_R_8F_E4M3 || type_of(b) == CUDA_R_8F_E4M3;
  return is_fp8(type_of(a)) && is_fp8(type_of(b)) && has_e4m3 && is_float(to) &&
         compute == CUBLAS_COMPUTE_32F && is_whole(a) && is_whole(b) &&
         layout<uint64_t>(a, CUBLASLT_MATRIX_LAYOUT_COLS) % 16 == 0;
}

/// By default a bias is of D's type.
bool takes_bias(cublasLtMatmulDesc_t operation, cudaDataType_t to, cudaDataType_t expected) {
  const auto epilogue = attribute<uint32_t>(operation, CUBLASLT_MATMUL_DESC_EPILOGUE);
  if ((epilogue & CUBLASLT_EPILOGUE_BIAS) == 0) return true;
  const auto type = attribute<int32_t>(operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
  return (type == -1 ? to : type) == expected;
}

}  // namespace

bool takes_types(cudaDataType_t a, cudaDataType_t b, cudaDataType_t c,
                 cublasComputeType_t compute) {
  if (a != b || !is_float(a) || (c != a && c != CUDA_R_32F)) return false;
  return compute == CUBLAS_COMPUTE_32F ||
         (compute == CUBLAS_COMPUTE_32F_FAST_TF32 && a == CUDA_R_32F);
}

bool takes_grouped_types(cudaDataType_t a, cudaDataType_t b, cudaDataType_t c,
                         cublasComputeType_t compute) {
  return a == c && takes_types(a, b, c, compute);
}

bool needs_grouped_alignment(cudaDataType_t type, cublasComputeType_t compute) {
  return type != CUDA_R_32F || compute != CUBLAS_COMPUTE_32F;
}

Alignments alignments_of(cublasLtMatmulPreference_t preference, cublasLtMatmulDesc_t operation) {
  static constexpr cublasLtMatmulPreferenceAttributes_t kNames[] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  Alignments all{};
  for (size_t i = 0; i < std::size(kNames); ++i)
    all[i] = preferred<uint32_t>(preference, kNames[i]);
  // Null is a multiple of whatever a kernel may want.
  constexpr uint64_t kMost = 256;
  const auto bias = attribute<uint64_t>(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  all.back() = bias == 0 ? kMost : std::min(kMost, bias & -bias);
  return all;
}

cublasLtMatmulAlgo_t algorithm_of(const LtChoice& choice) {
  cublasLtMatmulAlgo_t algorithm{};
  algorithm.data[0] = choice.number;
  algorithm.data[1] = choice.workspace_bytes;
  std::copy(choice.alignments.begin(), choice.alignments.end(), algorithm.data + 2);
  return algorithm;
}

LtChoice choice_of(const cublasLtMatmulAlgo_t* algorithm) {
  LtChoice choice;
  if (algorithm == nullptr) return choice;
  choice.number = algorithm->data[0];
  choice.workspace_bytes = algorithm->data[1];
  std::copy_n(algorithm->data + 2, choice.alignments.size(), choice.alignments.begin());
  return choice;
}

bool takes(cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
           cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d) {
  const auto count = layout<int32_t>(d, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  for (cublasLtMatrixLayout_t one : {a, b, c}) {
    if (layout<int32_t>(one, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) != count) return false;
  }
  const bool is_transposed =
      attribute<int32_t>(operation, CUBLASLT_MATMUL_DESC_TRANSA) == CUBLAS_OP_T &&
      attribute<int32_t>(operation, CUBLASLT_MATMUL_DESC_TRANSB) == CUBLAS_OP_N;
  const auto compute = static_cast<cublasComputeType_t>(
      attribute<int32_t>(operation, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE));
  const cudaDataType_t to = type_of(d);
  if (!is_transposed || type_of(c) != to) return false;
  if (!is_fp8(type_of(a))) {
    return takes_types(type_of(a), type_of(b), to, compute) && takes_bias(operation, to, to);
  }
  return takes_fp8(a, b, to, compute) &&
         takes_bias(operation, to, to == CUDA_R_32F ? CUDA_R_16BF : to);
}

}  // namespace wide::simvendors
