// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A CublasLtCall in cuBLASLt's own types.
#pragma once

#include <cublasLt.h>

#include <vector>

#include "host/linear/linear_vendor.hpp"
#include "wide/context.hpp"

namespace wide {

/// Addresses of one call's operands. Null where the call has none; `residual` is y's where it adds
/// none, since cuBLASLt requires an address.
struct CublasLtOperands {
  const void* weight = nullptr;
  const void* x = nullptr;
  const void* bias = nullptr;
  const void* residual = nullptr;
  void* y = nullptr;
};

/// The layouts are made once; the operation, which holds the bias's address, at every run. Both are
/// structs in place: nothing is allocated.
class CublasLtMatmul {
 public:
  CublasLtMatmul(const CublasLtCall& call, int64_t num_members);

  /// What the heuristic offers for operands at multiples of `alignment` bytes, best guess first.
  /// Empty where it has nothing.
  std::vector<cublasLtMatmulHeuristicResult_t> candidates(cublasLtHandle_t handle,
                                                          int64_t alignment,
                                                          int64_t workspace_bytes,
                                                          int at_most) const;
  cublasStatus_t run(cublasLtHandle_t handle, const CublasLtOperands& operands,
                     const cublasLtMatmulAlgo_t& algorithm, const Workspace& workspace,
                     cudaStream_t stream) const;

 private:
  cublasLtMatmulDescOpaque_t operation(const void* bias) const;

  CublasLtCall call_;
  cublasLtMatrixLayoutOpaque_t weight_, x_, residual_, y_;
};

/// The index of the fastest of `candidates`, each run several times in turns; those that fail to
/// run are left out. -1 where none ran.
int fastest_candidate(const Context& context, cublasLtHandle_t handle, const LinearProblem& problem,
                      const CublasLtCall& call, const CublasLtMatmul& matmul,
                      const std::vector<cublasLtMatmulHeuristicResult_t>& candidates,
                      int64_t workspace_bytes);

}  // namespace wide
