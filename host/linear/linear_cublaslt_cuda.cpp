// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// linear through cuBLASLt: one call for all members, with bias, residual and relu in it where
// cuBLASLt has an algorithm that does so, else with our epilogue kernel after it.
//
// Algorithms depend on the operands' alignment, which a plan does not know: it keeps one for
// multiples of 16 bytes and one for any address; where there is none (fp8), simt stands in.
// The execution's cublasHandle_t is used as a cublasLtHandle_t, which its documentation allows
// ("cublasLtHandle_t": any valid cublasHandle_t can be used in its place with a cast).
#include "host/linear/linear_cublaslt.hpp"

#include <algorithm>
#include <optional>

#include "host/core/beside_captures.hpp"
#include "host/core/check.hpp"
#include "host/core/context.hpp"
#include "host/core/cuda_check.hpp"
#include "host/core/current_device.hpp"
#include "host/core/heuristic_policy.hpp"
#include "host/core/native_stream.hpp"
#include "host/core/plan_checks.hpp"
#include "host/linear/linear_cublaslt_call_cuda.hpp"
#include "host/linear/linear_policy.hpp"
#include "host/linear/linear_problem.hpp"
#include "host/linear/linear_run.hpp"
#include "host/linear/linear_vendor_cuda.hpp"

namespace wide {

namespace {

constexpr int64_t kAligned = 16;  // bytes that the widest loads move

cublasLtMatrixLayoutOpaque_t layout_of(const BlasMatrix& matrix, Dtype dtype, int64_t num_members) {
  cublasLtMatrixLayoutOpaque_t layout;
  WIDE_CHECK_CUBLAS(
      cublasLtMatrixLayoutInit(&layout, cuda_type(dtype), static_cast<uint64_t>(matrix.rows),
                               static_cast<uint64_t>(matrix.columns), matrix.leading));
  const auto count = static_cast<int32_t>(num_members);
  WIDE_CHECK_CUBLAS(cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                     &count, sizeof(count)));
  WIDE_CHECK_CUBLAS(cublasLtMatrixLayoutSetAttribute(
      &layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &matrix.member, sizeof(matrix.member)));
  return layout;
}

/// The library's name for it is handle; it only reads it.
cublasLtMatrixLayout_t handle_of(const cublasLtMatrixLayoutOpaque_t& layout) {
  return const_cast<cublasLtMatrixLayoutOpaque_t*>(&layout);
}

cublasLtEpilogue_t native(CublasLtEpilogue epilogue) {
  switch (epilogue) {
    case CublasLtEpilogue::none:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case CublasLtEpilogue::bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case CublasLtEpilogue::relu:
      return CUBLASLT_EPILOGUE_RELU;
    case CublasLtEpilogue::relu_bias:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

template <class Value>
void set(cublasLtMatmulDescOpaque_t& operation, cublasLtMatmulDescAttributes_t name,
         const Value& value) {
  WIDE_CHECK_CUBLAS(cublasLtMatmulDescSetAttribute(&operation, name, &value, sizeof(value)));
}

template <class Value>
void set(cublasLtMatmulPreferenceOpaque_t& preference, cublasLtMatmulPreferenceAttributes_t name,
         const Value& value) {
  WIDE_CHECK_CUBLAS(cublasLtMatmulPreferenceSetAttribute(&preference, name, &value, sizeof(value)));
}

cublasLtHandle_t handle_of(const Context& context) {
  std::string reason;
  void* const handle = context.state().cublaslt->get(reason);
  if (handle == nullptr) throw_unsupported("linear: cuBLASLt cannot start: " + reason);
  return static_cast<cublasLtHandle_t>(handle);
}

bool is_aligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % kAligned == 0;
}

class Plan final : public CublasLtPlan {
 public:
  Plan(const Context& context, const LinearProblem& problem, const std::string& policy,
       bool searches)
      : device_(context.info()), problem_(problem) {
    if (is_empty(problem) || problem.in_features == 0) {
      explain_ = "nothing to multiply";
      return;
    }
    const CurrentDevice current(device_.device.ordinal);
    const BesideCaptures beside;
    cublasLtHandle_t const handle = handle_of(context);
    const auto candidates = find_candidates(handle);
    int chosen = std::max(0, parse_heuristic_policy(policy, kMaxCublasLtCandidates));
    const auto count = static_cast<int>(candidates.size());
    std::string found = "the heuristic's first of " + std::to_string(count) + " algorithms";
    if (!policy.empty()) found = "the policy";
    if (policy.empty() && searches) {
      chosen = fastest_candidate(context, handle, problem, call_, *matmul_, candidates,
                                 workspace_.cublas_bytes);
      if (chosen < 0) throw_unsupported("linear: none of cuBLASLt's algorithms runs");
      found = "the fastest of " + std::to_string(count) + " algorithms";
    }
    policy_ = heuristic_policy(chosen);
    if (chosen >= count) {
      throw_unsupported("linear: policy " + policy_ + ": cuBLASLt offers " + std::to_string(count) +
                        " algorithms for this problem");
    }
    aligned_ = candidates[static_cast<size_t>(chosen)].algo;
    const auto unaligned =
        matmul_->candidates(handle, dtype_bytes(problem.dtype), workspace_.cublas_bytes, 1);
    if (!unaligned.empty()) unaligned_ = unaligned.front().algo;
    explain_ = policy_ + ", " + found + "; epilogue " +
               (call_.needs_kernel ? "in a kernel of ours"
                                   : "in the call: " + std::string(to_string(call_.epilogue)) +
                                         (call_.adds_residual ? " and residual" : ""));
  }

  void run(const LinearArguments& arguments, const Execution& execution) const override {
    const CurrentDevice current(device_.device.ordinal);
    if (!matmul_) return finish_linear(problem_, arguments, nullptr, execution.stream);
    const LinearProduct to = linear_product(problem_, arguments, execution, workspace_);
    const CublasLtOperands operands{
        arguments.weight.data, arguments.x.data, call_.adds_bias() ? arguments.bias.data : nullptr,
        call_.adds_residual ? arguments.residual.data : to.data, to.data};
    const bool all_aligned = is_aligned(operands.weight) && is_aligned(operands.x) &&
                             is_aligned(operands.bias) && is_aligned(operands.residual) &&
                             is_aligned(operands.y);
    if (!all_aligned && !unaligned_) return stand_in(arguments, execution);
    auto* const handle =
        reinterpret_cast<cublasLtHandle_t>(require_cublas("linear", execution, device_.device));
    const BesideCaptures beside;
    WIDE_CHECK_CUBLAS(matmul_->run(handle, operands, all_aligned ? aligned_ : *unaligned_,
                                   {execution.workspace.data, workspace_.cublas_bytes},
                                   native_stream(execution.stream)));
    if (call_.needs_kernel) finish_linear(problem_, arguments, &to, execution.stream);
  }

 private:
  /// Runs our own kernel, as where wgmma has no tensor maps.
  void stand_in(const LinearArguments& arguments, const Execution& execution) const {
    constexpr LinearStrategy kSimt = LinearStrategy::simt;
    run_linear_kernel(device_, kSimt, linear_tiles(kSimt, problem_, device_, ""), problem_,
                      arguments, execution);
  }

  /// Fixes the call: with the epilogue in it where there are algorithms for that.
  std::vector<cublasLtMatmulHeuristicResult_t> find_candidates(cublasLtHandle_t handle) {
    for (const bool fuses : {true, false}) {
      call_ = describe_cublaslt(problem_, fuses);
      workspace_ = cublas_workspace(problem_, device_, call_.writes_sums);
      matmul_.emplace(call_, problem_.num_members);
      auto candidates =
          matmul_->candidates(handle, kAligned, workspace_.cublas_bytes, kMaxCublasLtCandidates);
      if (!candidates.empty()) return candidates;
    }
    throw_unsupported("linear: cuBLASLt has no algorithm for this problem");
  }

  DeviceInfo device_;
  LinearProblem problem_;
  CublasLtCall call_;
  std::optional<CublasLtMatmul> matmul_;  ///< none: nothing to multiply
  cublasLtMatmulAlgo_t aligned_{};
  std::optional<cublasLtMatmulAlgo_t> unaligned_;
};

}  // namespace

CublasLtMatmul::CublasLtMatmul(const CublasLtCall& call, int64_t num_members)
    : call_(call),
      weight_(layout_of(call.blas.weight, call.dtype, num_members)),
      x_(layout_of(call.blas.x, call.dtype, num_members)),
      residual_(layout_of(call.residual, call.to_dtype, num_members)),
      y_(layout_of(call.blas.y, call.to_dtype, num_members)) {}

cublasLtMatmulDescOpaque_t CublasLtMatmul::operation(const void* bias) const {
  cublasLtMatmulDescOpaque_t operation;
  const auto compute = call_.is_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  WIDE_CHECK_CUBLAS(cublasLtMatmulDescInit(&operation, compute, CUDA_R_32F));
  set(operation, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, native(call_.epilogue));
  if (bias != nullptr) {
    set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    set(operation, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, call_.bias_member_stride);
    set(operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
        static_cast<int32_t>(cuda_type(call_.to_dtype)));
  }
  return operation;
}

std::vector<cublasLtMatmulHeuristicResult_t> CublasLtMatmul::candidates(cublasLtHandle_t handle,
                                                                        int64_t alignment,
                                                                        int64_t workspace_bytes,
                                                                        int at_most) const {
  cublasLtMatmulPreferenceOpaque_t preference;
  WIDE_CHECK_CUBLAS(cublasLtMatmulPreferenceInit(&preference));
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(workspace_bytes));
  for (const auto name :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(preference, name, static_cast<uint32_t>(alignment));
  }
  // Parts of a sum are never added up in 16 bits.
  const uint32_t reductions = call_.to_dtype == Dtype::fp32
                                  ? CUBLASLT_REDUCTION_SCHEME_MASK
                                  : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
  // Not read: only its alignment matters.
  auto operation =
      this->operation(call_.adds_bias() ? reinterpret_cast<const void*>(alignment) : nullptr);
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(at_most));
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle, &operation, handle_of(weight_), handle_of(x_), handle_of(residual_), handle_of(y_),
      &preference, at_most, results.data(), &count);
  if (status != CUBLAS_STATUS_SUCCESS) count = 0;
  results.resize(static_cast<size_t>(count));
  std::erase_if(results, [](const auto& one) { return one.state != CUBLAS_STATUS_SUCCESS; });
  return results;
}

cublasStatus_t CublasLtMatmul::run(cublasLtHandle_t handle, const CublasLtOperands& operands,
                                   const cublasLtMatmulAlgo_t& algorithm,
                                   const Workspace& workspace, cudaStream_t stream) const {
  auto operation = this->operation(operands.bias);
  const float alpha = call_.alpha, beta = call_.adds_residual ? 1.0f : 0.0f;
  return cublasLtMatmul(handle, &operation, &alpha, operands.weight, handle_of(weight_), operands.x,
                        handle_of(x_), &beta, operands.residual, handle_of(residual_), operands.y,
                        handle_of(y_), &algorithm, workspace.data,
                        static_cast<size_t>(workspace.bytes), stream);
}

std::shared_ptr<const CublasLtPlan> make_cublaslt_plan(const Context& context,
                                                       const LinearProblem& problem,
                                                       const std::string& policy, bool searches) {
  return std::make_shared<const Plan>(context, problem, policy, searches);
}

}  // namespace wide
