// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// linear in terms of NVIDIA's libraries, and what these cannot express. Pure functions: what is
// passed to a library is tested where the library cannot run.
//
// A row-major [rows, N*in] tensor is, for one member, a column-major in x rows matrix with leading
// dimension N*in, and the next member's begins `in` elements later. So y^T = weight * x^T needs no
// copy, batched or not, and a shared x is a batch stride of 0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "wide/device.hpp"
#include "wide/linear.hpp"

namespace wide {

/// One member's operand as a column-major matrix.
struct BlasMatrix {
  int64_t rows = 0, columns = 0;
  int64_t leading = 0;  ///< elements from column to column, at least `rows`
  int64_t member = 0;   ///< elements from member to member; 0: all read the same
  friend bool operator==(const BlasMatrix&, const BlasMatrix&) = default;
};

/// y = op(weight) * x for every member, with op the transposition.
struct BlasProblem {
  BlasMatrix weight, x, y;
};

/// `to` are the strides of what the product is written to: y, or sums in a workspace.
BlasProblem blas_problem(const LinearProblem& problem, const RowStrides& to);

/// Why no call of cuBLAS or cuBLASLt reads the operands; empty where each does.
std::string blas_unsupported_reason(const LinearProblem& problem);

/// Packed fp32 sums of the whole output.
RowStrides sums_strides(const LinearProblem& problem);
/// Whether our epilogue kernel needs the product as fp32 sums in a workspace: 16-bit sums would be
/// rounded twice, and y may be the residual.
bool needs_sums(const LinearProblem& problem);

/// What cuBLASLt does after the product.
enum class CublasLtEpilogue : uint8_t { none, bias, relu, relu_bias };
std::string_view to_string(CublasLtEpilogue epilogue);

/// One cublasLtMatmul over all members: y = epilogue(alpha * weight^T x + residual).
struct CublasLtCall {
  BlasProblem blas;
  BlasMatrix residual;                                ///< where `adds_residual`, else as y
  Dtype dtype = Dtype::fp32, to_dtype = Dtype::fp32;  ///< of weight and x; of what is written
  bool is_tf32 = false;
  float alpha = 1;
  CublasLtEpilogue epilogue = CublasLtEpilogue::none;
  int64_t bias_member_stride = 0;
  bool adds_residual = false;
  bool needs_kernel = false;  ///< our epilogue kernel follows and does all of the epilogue
  bool writes_sums = false;   ///< to the workspace instead of y

  bool adds_bias() const {
    return epilogue == CublasLtEpilogue::bias || epilogue == CublasLtEpilogue::relu_bias;
  }
};

/// Why cuBLASLt cannot multiply the problem's elements; empty where it can. It takes fp8 from
/// compute capability 8.9 on, not fp8_e5m2 on both sides, and only rows of whole 16 bytes.
std::string cublaslt_unsupported_reason(const LinearProblem& problem, const DeviceInfo& device);

/// With the epilogue in the call where cuBLASLt has the same one and `fuses`. Both gelus and silu
/// are ours in any case (its gelu is the one by tanh, with undocumented error and result at
/// -infinity, where ours is 0; and it has no silu), and so is a scale per member or output.
/// Its relu is documented as max(x, 0), without mention of NaN.
CublasLtCall describe_cublaslt(const LinearProblem& problem, bool fuses);

/// One cublasGemmGroupedBatchedEx: all members in one group.
struct CublasGroupedCall {
  BlasProblem blas;
  float alpha = 1;
  bool begins_with_epilogue = false;  ///< our kernel fills y with bias or residual; sums are added
  bool needs_kernel = false;          ///< our epilogue kernel follows
  bool writes_sums = false;           ///< to the workspace instead of y
};
CublasGroupedCall describe_cublas_grouped(const LinearProblem& problem);

/// Why that call cannot run the problem; empty where it can. Its outputs have the type of its
/// inputs, so that 16-bit sums are rounded before any activation of ours; and it reads addresses on
/// the device, where it cannot check that they suit the 16-byte loads of its kernels.
std::string cublas_grouped_unsupported_reason(const LinearProblem& problem);
/// Whether its operands must begin at multiples of 16 bytes. Where they do not, cublas_batched's
/// call stands in.
bool cublas_grouped_needs_alignment(const LinearProblem& problem);

}  // namespace wide
