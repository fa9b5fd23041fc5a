// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// linear through cuBLAS on the packed operands as they lie: one call per member, one for all by
// strides, one for all by pointers.
//
// The epilogue follows in one kernel of ours. Where the output is 16-bit, or may be the residual
// itself, the GEMM then writes its fp32 sums to the workspace: rounding happens once, at the end.
// The grouped call has no such sums; it adds to a y that already holds the bias or the residual.
#include "host/core/cuda_check.hpp"
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/pointer.hpp"
#include "host/linear/linear_cublas_handle_cuda.hpp"
#include "host/linear/linear_epilogue_cuda.hpp"
#include "host/linear/linear_vendor.hpp"
#include "host/linear/linear_vendor_cuda.hpp"
#include "kernels/linear/linear_epilogue.hpp"
#include "kernels/linear/linear_pointers.hpp"

namespace wide {

namespace {

/// The GEMMs of one linear: to = alpha * weight^T x + beta * to.
struct Gemms {
  cublasHandle_t handle;
  const LinearProblem& problem;
  const LinearArguments& arguments;
  LinearProduct to;
  float alpha = 1, beta = 0;

  BlasProblem blas() const { return blas_problem(problem, to.strides); }
  cudaDataType_t type() const { return cuda_type(problem.dtype); }
  cublasComputeType_t compute() const { return compute_type(problem.dtype, problem.allow_tf32); }

  void run_batched() const {
    const auto [weight, x, y] = blas();
    WIDE_CHECK_CUBLAS(cublasGemmStridedBatchedEx_64(
        handle, CUBLAS_OP_T, CUBLAS_OP_N, y.rows, y.columns, x.rows, &alpha, arguments.weight.data,
        type(), weight.leading, weight.member, arguments.x.data, type(), x.leading, x.member, &beta,
        to.data, cuda_type(to.dtype), y.leading, y.member, problem.num_members, compute(),
        CUBLAS_GEMM_DEFAULT));
  }

  void run_one_by_one() const {
    const auto [weight, x, y] = blas();
    const int64_t bytes = dtype_bytes(problem.dtype), to_bytes = dtype_bytes(to.dtype);
    for (int64_t i = 0; i < problem.num_members; ++i) {
      WIDE_CHECK_CUBLAS(
          cublasGemmEx_64(handle, CUBLAS_OP_T, CUBLAS_OP_N, y.rows, y.columns, x.rows, &alpha,
                          advanced(arguments.weight.data, i * weight.member, bytes), type(),
                          weight.leading, advanced(arguments.x.data, i * x.member, bytes), type(),
                          x.leading, &beta, advanced(to.data, i * y.member, to_bytes),
                          cuda_type(to.dtype), y.leading, compute(), CUBLAS_GEMM_DEFAULT));
    }
  }

  /// `pointers` has room for three addresses of every member.
  void run_grouped(void** pointers, Stream stream) const {
    const auto [weight, x, y] = blas();
    const int64_t bytes = dtype_bytes(problem.dtype);
    const kernels::LinearPointersParams params{
        arguments.weight.data, arguments.x.data, to.data,
        weight.member * bytes, x.member * bytes, y.member * dtype_bytes(to.dtype),
        problem.num_members,   pointers};
    WIDE_CHECK_CUDA(kernels::launch_linear_pointers(params, native_stream(stream)));
    const cublasOperation_t transposed = CUBLAS_OP_T, plain = CUBLAS_OP_N;
    void** const of_x = pointers + problem.num_members;
    void** const of_y = of_x + problem.num_members;
    WIDE_CHECK_CUBLAS(cublasGemmGroupedBatchedEx_64(
        handle, &transposed, &plain, &y.rows, &y.columns, &x.rows, &alpha, pointers, type(),
        &weight.leading, of_x, type(), &x.leading, &beta, of_y, cuda_type(to.dtype), &y.leading, 1,
        &problem.num_members, compute()));
  }
};

bool is_aligned(const LinearArguments& arguments) {
  constexpr int64_t kVectorBytes = 16;
  return arguments.x.alignment() >= kVectorBytes && arguments.weight.alignment() >= kVectorBytes &&
         arguments.y.alignment() >= kVectorBytes;
}

void** pointers_in(const Execution& execution, const LinearWorkspace& workspace) {
  char* const begin = static_cast<char*>(execution.workspace.data);
  return reinterpret_cast<void**>(begin + workspace.cublas_bytes + workspace.sums_bytes);
}

}  // namespace

LinearProduct linear_product(const LinearProblem& problem, const LinearArguments& arguments,
                             const Execution& execution, const LinearWorkspace& workspace) {
  if (workspace.sums_bytes == 0) return {arguments.y.data, *problem.y_dtype, problem.y};
  return {static_cast<char*>(execution.workspace.data) + workspace.cublas_bytes, Dtype::fp32,
          sums_strides(problem)};
}

void finish_linear(const LinearProblem& problem, const LinearArguments& arguments,
                   const LinearProduct* sums, Stream stream, int num_planes) {
  kernels::LinearEpilogueParams params{};
  params.sums = sums == nullptr ? nullptr : static_cast<const float*>(sums->data);
  params.y = arguments.y.data;
  params.rows = problem.batch;
  params.num_members = problem.num_members;
  params.features = problem.out_features;
  params.sums_strides = sums == nullptr ? problem.y : sums->strides;
  params.y_strides = problem.y;
  params.num_planes = num_planes;
  params.plane_stride = problem.batch * params.sums_strides.row;
  params.epilogue = linear_epilogue_of(problem, arguments);
  WIDE_CHECK_CUDA(kernels::launch_linear_epilogue(params, *problem.y_dtype, native_stream(stream)));
}

void run_linear_cublas(const DeviceInfo& device, LinearStrategy strategy,
                       const LinearWorkspace& workspace, const LinearProblem& problem,
                       const LinearArguments& arguments, const Execution& execution) {
  const CurrentDevice current(device.device.ordinal);
  // Without in_features the sums are zero and there is nothing for cuBLAS to multiply.
  if (problem.in_features == 0) {
    return finish_linear(problem, arguments, nullptr, execution.stream);
  }
  Gemms gemms{static_cast<cublasHandle_t>(require_cublas("linear", execution, device.device)),
              problem, arguments, linear_product(problem, arguments, execution, workspace)};
  const ConfiguredHandle configured(gemms.handle, problem.allow_tf32, execution,
                                    workspace.cublas_bytes);
  bool needs_kernel = !problem.epilogue.is_identity();
  if (strategy == LinearStrategy::cublas_grouped) {
    const CublasGroupedCall call = describe_cublas_grouped(problem);
    needs_kernel = call.needs_kernel;
    gemms.alpha = call.alpha;
    if (call.begins_with_epilogue) {
      finish_linear(problem, arguments, nullptr, execution.stream);
      gemms.beta = 1;
    }
    if (cublas_grouped_needs_alignment(problem) && !is_aligned(arguments)) {
      gemms.run_batched();
    } else {
      gemms.run_grouped(pointers_in(execution, workspace), execution.stream);
    }
  } else if (strategy == LinearStrategy::cublas_batched) {
    gemms.run_batched();
  } else {
    gemms.run_one_by_one();
  }
  if (needs_kernel) finish_linear(problem, arguments, &gemms.to, execution.stream);
}

}  // namespace wide
