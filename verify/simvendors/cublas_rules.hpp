// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What cuBLAS and cuBLASLt multiply at all, by the tables of NVIDIA's "cuBLAS" documentation:
// sections cublasGemmEx, cublasGemmGroupedBatchedEx, cublasLtMatmul and cublasSetWorkspace.
#pragma once

#include <cublasLt.h>

#include <array>
#include <cstdint>

namespace wide::simvendors {

/// Of a workspace's address.
inline constexpr uintptr_t kWorkspaceAlignment = 256;

/// Whether cublasGemmEx() and its strided form take the types.
bool takes_types(cudaDataType_t a, cudaDataType_t b, cudaDataType_t c, cublasComputeType_t compute);
/// Whether the grouped form does: its outputs are of the inputs' type.
bool takes_grouped_types(cudaDataType_t a, cudaDataType_t b, cudaDataType_t c,
                         cublasComputeType_t compute);
/// Whether its matrices must begin at multiples of 16 bytes.
bool needs_grouped_alignment(cudaDataType_t type, cublasComputeType_t compute);

template <class Value>
Value layout(cublasLtMatrixLayout_t one, cublasLtMatrixLayoutAttribute_t name) {
  Value value{};
  (void)cublasLtMatrixLayoutGetAttribute(one, name, &value, sizeof(value), nullptr);
  return value;
}
template <class Value>
Value attribute(cublasLtMatmulDesc_t one, cublasLtMatmulDescAttributes_t name) {
  Value value{};
  (void)cublasLtMatmulDescGetAttribute(one, name, &value, sizeof(value), nullptr);
  return value;
}

template <class Value>
Value preferred(cublasLtMatmulPreference_t one, cublasLtMatmulPreferenceAttributes_t name) {
  Value value{};
  (void)cublasLtMatmulPreferenceGetAttribute(one, name, &value, sizeof(value), nullptr);
  return value;
}

/// Of a, b, c, d and the bias, in bytes.
using Alignments = std::array<uint64_t, 5>;

/// As a heuristic is told them: that of the bias by the value of its address (cublasLt.h).
Alignments alignments_of(cublasLtMatmulPreference_t preference, cublasLtMatmulDesc_t operation);

/// What an algorithm is here: its number, and what it needs of a call.
struct LtChoice {
  uint64_t number = 0, workspace_bytes = 0;
  Alignments alignments{1, 1, 1, 1, 1};
};
cublasLtMatmulAlgo_t algorithm_of(const LtChoice& choice);
/// Null: the first, which then needs nothing.
LtChoice choice_of(const cublasLtMatmulAlgo_t* algorithm);

inline bool is_aligned(const void* address, uint64_t alignment) {
  return reinterpret_cast<uintptr_t>(address) % alignment == 0;
}

/// Whether cublasLtMatmul() has kernels for the operation: a^T b, with a bias of the right type,
/// as many matrices of every operand, and fp8 of whole 16 bytes.
bool takes(cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
           cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d);

}  // namespace wide::simvendors
