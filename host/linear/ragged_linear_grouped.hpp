// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A ragged problem as one cublasGemmGroupedBatchedEx. Pure functions: what is passed to cuBLAS is
// tested where it cannot run.
#pragma once

#include <string>
#include <vector>

#include "host/linear/linear_strategy.hpp"
#include "wide/ragged_linear.hpp"

namespace wide {

/// The arrays of the call, an entry a group: neighbours of one shape. What has no output, or
/// nothing to multiply, is in none.
struct RaggedGroupedCall {
  std::vector<int64_t> out, batch, in;            ///< m, n, k
  std::vector<int64_t> weight_row, x_row, y_row;  ///< leading dimensions
  std::vector<int64_t> sizes;                     ///< products of a group
  std::vector<float> alphas, betas;
  int64_t num_products = 0;
  bool begins_with_epilogue = false;  ///< our kernel fills y; products are added to it
  bool needs_kernel = false;          ///< our kernel follows
  bool writes_sums = false;           ///< to the workspace, where they lie as y's storage does
};
RaggedGroupedCall describe_ragged_grouped(const RaggedLinearProblem& problem);

/// Whether a member is one of the call's products.
bool is_product(const RaggedLinearMember& member);

/// Why a member's place in a storage is none of the call's: see cublas_grouped_needs_alignment().
std::string ragged_grouped_offset_reason(const RaggedLinearProblem& problem, size_t index);

LinearWorkspace ragged_grouped_workspace(const RaggedLinearProblem& problem,
                                         const DeviceInfo& device);

}  // namespace wide
