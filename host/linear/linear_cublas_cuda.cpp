// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// linear through cuBLAS, on the packed operands as they lie: a row-major [rows, N*in] tensor is,
// for one member, a column-major in x rows matrix with leading dimension N*in, and the next
// member's begins `in` elements later. So y^T = weight * x^T needs no copy, batched or not, and a
// shared x is a batch stride of 0.
//
// The epilogue follows in one kernel of ours. Where the output is 16-bit, or may be the residual
// itself, the GEMM then writes its fp32 sums to the workspace: rounding happens once, in the end.
#include <algorithm>

#include "host/core/cuda_check.hpp"
#include "host/core/current_device.hpp"
#include "host/core/plan_checks.hpp"
#include "host/linear/linear_epilogue_cuda.hpp"
#include "host/linear/linear_run.hpp"
#include "kernels/linear/linear_epilogue.hpp"

namespace wide {

namespace {

cudaDataType_t cuda_type(Dtype dtype) {
  return dtype == Dtype::fp16 ? CUDA_R_16F : dtype == Dtype::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

const void* element_at(const void* base, int64_t offset, Dtype dtype) {
  return static_cast<const char*>(base) + offset * dtype_bytes(dtype);
}

/// Where the GEMM writes: y itself, or fp32 sums in the workspace.
struct Destination {
  void* data;
  Dtype dtype;
  RowStrides strides;
};

/// Prepares the handle. The order matters: cublasSetStream takes a workspace back. The handle keeps
/// these settings; it is the execution's, and whoever shares it sets its own before its own calls.
void configure(cublasHandle_t handle, const LinearProblem& problem, const Execution& execution,
               int64_t cublas_bytes) {
  WIDE_CHECK_CUBLAS(cublasSetStream(handle, static_cast<cudaStream_t>(execution.stream.native())));
  WIDE_CHECK_CUBLAS(
      cublasSetWorkspace(handle, execution.workspace.data, static_cast<size_t>(cublas_bytes)));
  WIDE_CHECK_CUBLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
  // An engine's handle may allow tf32 for everything; and 16-bit partial sums are never wanted.
  const int mode = (problem.allow_tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH) |
                   CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
  WIDE_CHECK_CUBLAS(cublasSetMathMode(handle, static_cast<cublasMath_t>(mode)));
}

void run_gemms(cublasHandle_t handle, LinearStrategy strategy, const LinearProblem& problem,
               const LinearArguments& arguments, const Destination& to) {
  const float one = 1.0f, zero = 0.0f;
  const cudaDataType_t type = cuda_type(problem.dtype), to_type = cuda_type(to.dtype);
  const bool is_tf32 = problem.allow_tf32 && problem.dtype == Dtype::fp32;
  const cublasComputeType_t compute = is_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  const int64_t out = problem.out_features, batch = problem.batch, in = problem.in_features;
  // One row or one output leaves a stride that nothing steps along, but cuBLAS checks it.
  const int64_t lda = std::max(problem.weight.row, in), ldb = std::max(problem.x.row, in);
  const int64_t ldc = std::max(to.strides.row, out);
  if (strategy == LinearStrategy::cublas_batched) {
    WIDE_CHECK_CUBLAS(cublasGemmStridedBatchedEx_64(
        handle, CUBLAS_OP_T, CUBLAS_OP_N, out, batch, in, &one, arguments.weight.data, type, lda,
        problem.weight.member, arguments.x.data, type, ldb, problem.x.member, &zero, to.data,
        to_type, ldc, to.strides.member, problem.num_members, compute, CUBLAS_GEMM_DEFAULT));
    return;
  }
  for (int64_t i = 0; i < problem.num_members; ++i) {
    const void* weight =
        element_at(arguments.weight.data, i * problem.weight.member, problem.dtype);
    const void* x = element_at(arguments.x.data, i * problem.x.member, problem.dtype);
    void* y = const_cast<void*>(element_at(to.data, i * to.strides.member, to.dtype));
    WIDE_CHECK_CUBLAS(cublasGemmEx_64(handle, CUBLAS_OP_T, CUBLAS_OP_N, out, batch, in, &one,
                                      weight, type, lda, x, type, ldb, &zero, y, to_type, ldc,
                                      compute, CUBLAS_GEMM_DEFAULT));
  }
}

}  // namespace

void run_linear_cublas(const DeviceInfo& device, LinearStrategy strategy,
                       const LinearProblem& problem, const LinearArguments& arguments,
                       const Execution& execution) {
  const CurrentDevice current(device.device.ordinal);
  const LinearWorkspace workspace = linear_workspace(strategy, problem, device);
  Destination to{arguments.y.data, problem.dtype, problem.y};
  if (workspace.sums_bytes > 0) {
    to.data = static_cast<char*>(execution.workspace.data) + workspace.cublas_bytes;
    to.dtype = Dtype::fp32;
    to.strides = {problem.num_members * problem.out_features, problem.out_features};
  }
  // Without in_features the sums are zero and there is nothing for cuBLAS to multiply.
  const bool has_sums = problem.in_features > 0;
  if (has_sums) {
    auto* handle = static_cast<cublasHandle_t>(require_cublas("linear", execution));
    configure(handle, problem, execution, workspace.cublas_bytes);
    run_gemms(handle, strategy, problem, arguments, to);
  }
  if (has_sums && problem.epilogue.is_identity()) return;

  kernels::LinearEpilogueParams params{};
  params.sums = has_sums ? static_cast<const float*>(to.data) : nullptr;
  params.y = arguments.y.data;
  params.rows = problem.batch;
  params.num_members = problem.num_members;
  params.features = problem.out_features;
  params.sums_strides = to.strides;
  params.y_strides = problem.y;
  params.epilogue = linear_epilogue_of(problem, arguments);
  WIDE_CHECK_CUDA(kernels::launch_linear_epilogue(
      params, problem.dtype, static_cast<cudaStream_t>(execution.stream.native())));
}

}  // namespace wide
