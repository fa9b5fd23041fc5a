// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the strategies that call NVIDIA's libraries have in common on the CUDA side.
#pragma once

#include <cublas_v2.h>

#include "host/linear/linear_strategy.hpp"
#include "wide/dtype.hpp"
#include "wide/linear.hpp"

namespace wide {

inline cudaDataType_t cuda_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp16:
      return CUDA_R_16F;
    case Dtype::bf16:
      return CUDA_R_16BF;
    case Dtype::fp8_e4m3:
      return CUDA_R_8F_E4M3;
    case Dtype::fp8_e5m2:
      return CUDA_R_8F_E5M2;
    default:
      return CUDA_R_32F;
  }
}

inline cublasComputeType_t compute_type(Dtype dtype, bool allow_tf32) {
  return allow_tf32 && dtype == Dtype::fp32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

/// Where a GEMM writes: y itself, or fp32 sums in the workspace.
struct LinearProduct {
  void* data;
  Dtype dtype;
  RowStrides strides;
};
LinearProduct linear_product(const LinearProblem& problem, const LinearArguments& arguments,
                             const Execution& execution, const LinearWorkspace& workspace);

/// Starts the epilogue kernel: from `sums`, or from zeros where that is null. Several planes of
/// sums lie contiguously.
void finish_linear(const LinearProblem& problem, const LinearArguments& arguments,
                   const LinearProduct* sums, Stream stream, int num_planes = 1);

}  // namespace wide
