// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Facts about the libraries are from NVIDIA's "cuBLAS" documentation, sections cublasLtMatmul,
// cublasLtEpilogue_t and cublasGemmGroupedBatchedEx.
#include "host/linear/linear_vendor.hpp"

#include <algorithm>
#include <limits>

namespace wide {

namespace {

/// Of the outputs: also true for fp8.
bool is_16_bit(const LinearProblem& problem) {
  return dtype_bytes(*problem.y_dtype) == 2;
}

std::string row_stride_reason(const char* name, int64_t rows, int64_t stride, int64_t in) {
  if (rows <= 1 || stride >= in) return "";
  return std::string(name) + " has row stride " + std::to_string(stride) +
         ", cuBLAS needs at least in_features = " + std::to_string(in);
}

/// Strides must be multiples of 16 bytes where anything steps along them.
std::string stride_reason(const char* name, Dtype dtype, const RowStrides& strides, int64_t rows,
                          int64_t members) {
  const int64_t vector = 16 / dtype_bytes(dtype);
  const bool is_wrong =
      (rows > 1 && strides.row % vector != 0) || (members > 1 && strides.member % vector != 0);
  if (!is_wrong) return "";
  return std::string(name) + " has strides " + std::to_string(strides.row) + " (row) and " +
         std::to_string(strides.member) + " (member), the call needs multiples of " +
         std::to_string(vector) + " elements";
}

/// The same for the first operand that fails.
std::string stride_reason(const LinearProblem& problem) {
  const int64_t members = problem.num_members;
  const std::string reasons[] = {
      stride_reason("x", problem.dtype, problem.x, problem.batch, members),
      stride_reason("weight", problem.dtype, problem.weight, problem.out_features, members),
      stride_reason("y", *problem.y_dtype, problem.y, problem.batch, members)};
  for (const std::string& reason : reasons) {
    if (!reason.empty()) return reason;
  }
  return "";
}

}  // namespace

BlasProblem blas_problem(const LinearProblem& problem, const RowStrides& to) {
  const int64_t in = problem.in_features, out = problem.out_features, batch = problem.batch;
  // With one row or one output nothing steps along a stride, but cuBLAS checks it.
  return {{in, out, std::max(problem.weight.row, in), problem.weight.member},
          {in, batch, std::max(problem.x.row, in), problem.x.member},
          {out, batch, std::max(to.row, out), to.member}};
}

std::string blas_unsupported_reason(const LinearProblem& problem) {
  const int64_t in = problem.in_features;
  const std::string x = row_stride_reason("x", problem.batch, problem.x.row, in);
  return !x.empty() ? x : row_stride_reason("weight", problem.out_features, problem.weight.row, in);
}

RowStrides sums_strides(const LinearProblem& problem) {
  return {problem.num_members * problem.out_features, problem.out_features};
}

bool needs_sums(const LinearProblem& problem) {
  const bool would_round_twice = is_16_bit(problem) && !problem.epilogue.is_identity();
  return would_round_twice || problem.epilogue.residual != Residual::none;
}

std::string_view to_string(CublasLtEpilogue epilogue) {
  switch (epilogue) {
    case CublasLtEpilogue::none:
      return "none";
    case CublasLtEpilogue::bias:
      return "bias";
    case CublasLtEpilogue::relu:
      return "relu";
    case CublasLtEpilogue::relu_bias:
      return "relu_bias";
  }
  return "?";
}

namespace {

/// Whether activation(alpha * sum + bias + residual) is all there is, with an activation and a
/// residual that cuBLASLt can take.
bool cublaslt_has(const LinearProblem& problem) {
  const Epilogue& epilogue = problem.epilogue;
  const bool is_linear = epilogue.activation == Activation::none;
  const bool is_added_first = epilogue.residual != Residual::after_activation || is_linear;
  const bool is_matrix =
      epilogue.residual == Residual::none || problem.residual.row >= problem.out_features;
  return epilogue.scale == OutputScale::none && is_added_first && is_matrix &&
         (is_linear || epilogue.activation == Activation::relu);
}

CublasLtEpilogue cublaslt_epilogue(const Epilogue& epilogue) {
  using enum CublasLtEpilogue;
  if (epilogue.activation == Activation::relu) return epilogue.has_bias ? relu_bias : relu;
  return epilogue.has_bias ? bias : none;
}

}  // namespace

std::string cublaslt_unsupported_reason(const LinearProblem& problem, const DeviceInfo& device) {
  if (problem.num_members > std::numeric_limits<int32_t>::max()) {
    return "cuBLASLt counts members in 32 bits, there are " + std::to_string(problem.num_members);
  }
  if (!is_fp8(problem.dtype)) return "";
  if (problem.dtype == Dtype::fp8_e5m2) {
    return "cuBLASLt multiplies fp8_e5m2 by fp8_e4m3 alone, dtype is fp8_e5m2 on both sides";
  }
  if (device.compute_capability < 89) {
    return "cuBLASLt multiplies fp8 from compute capability 8.9 on, " + device.name + " has " +
           std::to_string(device.compute_capability / 10) + "." +
           std::to_string(device.compute_capability % 10);
  }
  if (problem.in_features % 16 != 0 || problem.out_features % 16 != 0) {
    return "cuBLASLt multiplies fp8 of multiples of 16 features, they are " +
           std::to_string(problem.in_features) + " and " + std::to_string(problem.out_features);
  }
  return stride_reason(problem);
}

CublasLtCall describe_cublaslt(const LinearProblem& problem, bool fuses) {
  const Epilogue& epilogue = problem.epilogue;
  CublasLtCall call;
  call.dtype = problem.dtype;
  call.to_dtype = *problem.y_dtype;
  call.is_tf32 = problem.allow_tf32 && problem.dtype == Dtype::fp32;
  if (fuses && cublaslt_has(problem)) {
    call.alpha = epilogue.alpha;
    call.epilogue = cublaslt_epilogue(epilogue);
    call.bias_member_stride = problem.bias_member_stride;
    call.adds_residual = epilogue.residual != Residual::none;
  } else {
    call.needs_kernel = !epilogue.is_identity();
    call.writes_sums = needs_sums(problem);
    if (call.writes_sums) call.to_dtype = Dtype::fp32;
  }
  call.blas = blas_problem(problem, call.writes_sums ? sums_strides(problem) : problem.y);
  call.residual = call.adds_residual ? blas_problem(problem, problem.residual).y : call.blas.y;
  return call;
}

CublasGroupedCall describe_cublas_grouped(const LinearProblem& problem) {
  const Epilogue& epilogue = problem.epilogue;
  const bool adds = epilogue.has_bias || epilogue.residual != Residual::none;
  CublasGroupedCall call;
  if (is_16_bit(problem)) {
    call.alpha = epilogue.alpha;
    call.begins_with_epilogue = adds;
  } else {
    call.needs_kernel = !epilogue.is_identity();
    call.writes_sums = needs_sums(problem);
  }
  call.blas = blas_problem(problem, call.writes_sums ? sums_strides(problem) : problem.y);
  return call;
}

bool cublas_grouped_needs_alignment(const LinearProblem& problem) {
  return is_16_bit(problem) || problem.allow_tf32;
}

std::string cublas_grouped_unsupported_reason(const LinearProblem& problem) {
  const Epilogue& epilogue = problem.epilogue;
  const bool has_two_addends = epilogue.has_bias && epilogue.residual != Residual::none;
  if (is_16_bit(problem) && (epilogue.activation != Activation::none || has_two_addends ||
                             epilogue.scale != OutputScale::none)) {
    return "the grouped call rounds to " + std::string(dtype_name(problem.dtype)) +
           " itself: with more than a bias or a residual, outputs would be rounded twice";
  }
  return cublas_grouped_needs_alignment(problem) ? stride_reason(problem) : "";
}

}  // namespace wide
