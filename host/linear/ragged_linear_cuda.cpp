// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Starts the ragged kernels and cuBLAS's grouped call: the table is in place, a call adds its
// addresses.
#include "host/core/cuda_check.hpp"
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/core/plan_checks.hpp"
#include "host/linear/linear_cublas_handle_cuda.hpp"
#include "host/linear/linear_epilogue_cuda.hpp"
#include "host/linear/linear_vendor.hpp"
#include "host/linear/linear_vendor_cuda.hpp"
#include "host/linear/ragged_linear_grouped.hpp"
#include "host/linear/ragged_linear_problem.hpp"
#include "host/linear/ragged_linear_run.hpp"
#include "kernels/linear/ragged_linear.hpp"
#include "kernels/linear/ragged_linear_grouped.hpp"

namespace wide {

namespace {

/// The call's addresses, of storages.
void set_operands(kernels::RaggedLinearParams& params, const RaggedLinearProblem& problem,
                  const RaggedLinearArguments& arguments) {
  params.x = arguments.x.data;
  params.weight = arguments.weight.data;
  params.y = arguments.y.data;
  LinearProblem like;
  like.epilogue = problem.epilogue;
  LinearArguments storages;
  storages.bias = arguments.bias;
  storages.scale = arguments.scale;
  storages.residual = arguments.residual;
  params.epilogue = linear_epilogue_of(like, storages);
}

class GroupedCublas final : public RaggedGroupedCublas {
 public:
  GroupedCublas(const DeviceInfo& device, const RaggedLinearProblem& problem)
      : device_(device.device),
        problem_(problem),
        call_(describe_ragged_grouped(problem)),
        workspace_(ragged_grouped_workspace(problem, device)),
        transposed_(call_.sizes.size(), CUBLAS_OP_T),
        plain_(call_.sizes.size(), CUBLAS_OP_N),
        needs_alignment_(cublas_grouped_needs_alignment(ragged_member_problem(problem, 0))) {}

  bool needs_alignment() const override { return needs_alignment_; }
  bool takes(const RaggedLinearArguments& arguments) const override {
    constexpr int64_t kVectorBytes = 16;
    return !needs_alignment_ || (arguments.x.alignment() >= kVectorBytes &&
                                 arguments.weight.alignment() >= kVectorBytes &&
                                 arguments.y.alignment() >= kVectorBytes);
  }

  void run(kernels::RaggedLinearParams params, const RaggedLinearArguments& arguments,
           const Execution& execution) const override {
    const CurrentDevice current(device_.ordinal);
    const auto native = native_stream(execution.stream);
    set_operands(params, problem_, arguments);
    const auto finish = [&] {
      WIDE_CHECK_CUDA(kernels::launch_ragged_linear_epilogue(params, problem_.dtype, native));
    };
    if (call_.begins_with_epilogue) finish();
    char* const scratch = static_cast<char*>(execution.workspace.data) + workspace_.cublas_bytes;
    void* const to = call_.writes_sums ? scratch : arguments.y.data;
    if (call_.num_products > 0) {
      multiply(params, to, reinterpret_cast<void**>(scratch + workspace_.sums_bytes), execution);
    }
    if (!call_.needs_kernel) return;
    params.sums = static_cast<const float*>(to);
    finish();
  }

 private:
  /// `pointers` has room for three addresses of every product.
  void multiply(const kernels::RaggedLinearParams& params, void* to, void** pointers,
                const Execution& execution) const {
    const int64_t bytes = dtype_bytes(problem_.dtype);
    const auto num_members = static_cast<int64_t>(problem_.members.size());
    WIDE_CHECK_CUDA(kernels::launch_ragged_linear_pointers(
        {params.members, num_members, call_.num_products, params.x, params.weight, to, bytes, bytes,
         pointers},
        native_stream(execution.stream)));
    auto* const handle =
        static_cast<cublasHandle_t>(require_cublas("ragged_linear", execution, device_));
    const ConfiguredHandle configured(handle, problem_.allow_tf32, execution,
                                      workspace_.cublas_bytes);
    const cudaDataType_t type = cuda_type(problem_.dtype);
    void** const of_x = pointers + call_.num_products;
    void** const of_y = of_x + call_.num_products;
    WIDE_CHECK_CUBLAS(cublasGemmGroupedBatchedEx_64(
        handle, transposed_.data(), plain_.data(), call_.out.data(), call_.batch.data(),
        call_.in.data(), call_.alphas.data(), pointers, type, call_.weight_row.data(), of_x, type,
        call_.x_row.data(), call_.betas.data(), of_y, type, call_.y_row.data(),
        static_cast<int64_t>(call_.sizes.size()), call_.sizes.data(),
        compute_type(problem_.dtype, problem_.allow_tf32)));
  }

  Device device_;
  RaggedLinearProblem problem_;
  RaggedGroupedCall call_;
  LinearWorkspace workspace_;
  std::vector<cublasOperation_t> transposed_, plain_;
  bool needs_alignment_;
};

}  // namespace

void run_ragged_linear_kernel(const DeviceInfo& device, RaggedLinearStrategy strategy,
                              const RaggedLinearProblem& problem,
                              kernels::RaggedLinearParams params,
                              const RaggedLinearArguments& arguments, Stream stream) {
  const CurrentDevice current(device.device.ordinal);
  set_operands(params, problem, arguments);
  const auto native = native_stream(stream);
  if (strategy == RaggedLinearStrategy::simt) {
    WIDE_CHECK_CUDA(kernels::launch_ragged_linear_simt(params, problem.dtype, native));
    return;
  }
  const kernels::LinearMath math = problem.dtype == Dtype::fp16   ? kernels::LinearMath::fp16
                                   : problem.dtype == Dtype::bf16 ? kernels::LinearMath::bf16
                                                                  : kernels::LinearMath::tf32;
  WIDE_CHECK_CUDA(kernels::launch_ragged_linear_tensor_core(params, math, native));
}

std::unique_ptr<const RaggedGroupedCublas> make_ragged_grouped_cublas(
    const DeviceInfo& device, const RaggedLinearProblem& problem) {
  return std::make_unique<const GroupedCublas>(device, problem);
}

}  // namespace wide
