// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launchers of what surrounds a vendor's grouped GEMM over members of different shapes: their
// addresses in device memory before it, and the epilogue before or after it.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/linear/ragged_linear_params.hpp"
#include "wide/dtype.hpp"

namespace wide::kernels {

struct RaggedPointersParams {
  const RaggedMember* members;
  int64_t num_members, num_products;
  const void* x;  ///< storages
  const void* weight;
  void* to;  ///< what is written: y, or sums that lie as y does
  int64_t element_bytes, to_bytes;
  void** pointers;  ///< [3, num_products]: of weight, of x, of what is written
};

/// The addresses of every member that is a product. cudaErrorInvalidConfiguration for more than
/// 2^31 - 1 blocks of 256 members.
cudaError_t launch_ragged_linear_pointers(const RaggedPointersParams& params, cudaStream_t stream);

/// y = epilogue(params.sums), members without in_features as if their sums were zeros; one block a
/// tile. Errors as launch_ragged_linear_simt.
cudaError_t launch_ragged_linear_epilogue(const RaggedLinearParams& params, Dtype dtype,
                                          cudaStream_t stream);

}  // namespace wide::kernels
