// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// linear through cuBLAS on the packed operands as they lie: one call per member, one for all by
// strides, one for all by pointers.
//
// The epilogue follows in one kernel of ours. Where the output is 16-bit, or may be the residual
// itself, the GEMM then writes its fp32 sums to the workspace: rounding happens once, in the end.
// The grouped call has no such sums; it adds to a y that holds the bias, or the residual, already.
#include "host/core/cuda_check.hpp"
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/pointer.hpp"
#include "host/linear/linear_epilogue_cuda.hpp"
#include "host/linear/linear_vendor.hpp"
#include "host/linear/linear_vendor_cuda.hpp"
#include "kernels/linear/linear_epilogue.hpp"
#include "kernels/linear/linear_pointers.hpp"

namespace wide {

namespace {

/// The execution's handle as a call needs it, and as it was behind the call: it may be the
/// engine's.
class ConfiguredHandle {
 public:
  ConfiguredHandle(cublasHandle_t handle, const LinearProblem& problem, const Execution& execution,
                   int64_t cublas_bytes)
      : handle_(handle) {
    WIDE_CHECK_CUBLAS(cublasGetStream(handle, &stream_));
    WIDE_CHECK_CUBLAS(cublasGetPointerMode(handle, &pointer_mode_));
    WIDE_CHECK_CUBLAS(cublasGetMathMode(handle, &math_mode_));
    try {
      configure(problem, execution, cublas_bytes);
    } catch (...) {
      restore();
      throw;
    }
  }
  ~ConfiguredHandle() { restore(); }
  ConfiguredHandle(const ConfiguredHandle&) = delete;

 private:
  /// The order matters: cublasSetStream takes a workspace back.
  void configure(const LinearProblem& problem, const Execution& execution, int64_t cublas_bytes) {
    WIDE_CHECK_CUBLAS(cublasSetStream(handle_, native_stream(execution.stream)));
    WIDE_CHECK_CUBLAS(
        cublasSetWorkspace(handle_, execution.workspace.data, static_cast<size_t>(cublas_bytes)));
    WIDE_CHECK_CUBLAS(cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_HOST));
    // An engine's handle may allow tf32 for everything; and 16-bit partial sums are never wanted.
    const int mode = (problem.allow_tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH) |
                     CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    WIDE_CHECK_CUBLAS(cublasSetMathMode(handle_, static_cast<cublasMath_t>(mode)));
  }
  /// Setting the stream takes back the execution's workspace, which is not the handle's to keep.
  void restore() const {
    (void)cublasSetPointerMode(handle_, pointer_mode_);
    (void)cublasSetMathMode(handle_, math_mode_);
    (void)cublasSetStream(handle_, stream_);
  }

  cublasHandle_t handle_;
  cudaStream_t stream_ = nullptr;
  cublasPointerMode_t pointer_mode_ = CUBLAS_POINTER_MODE_HOST;
  cublasMath_t math_mode_ = CUBLAS_DEFAULT_MATH;
};

/// The GEMMs of one linear: to = alpha * weight^T x + beta * to.
struct Gemms {
  cublasHandle_t handle;
  const LinearProblem& problem;
  const LinearArguments& arguments;
  LinearProduct to;
  float alpha = 1, beta = 0;

  BlasProblem blas() const { return blas_problem(problem, to.strides); }
  cudaDataType_t type() const { return cuda_type(problem.dtype); }
  cublasComputeType_t compute() const {
    const bool is_tf32 = problem.allow_tf32 && problem.dtype == Dtype::fp32;
    return is_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  }

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
  const ConfiguredHandle configured(gemms.handle, problem, execution, workspace.cublas_bytes);
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
