// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y[r, n, :] = norm(residual[r, n, :] + activation(x[r, n, :] + bias[n, :])): see row_norm.cuh.
#include "kernels/norm/row_norm.cuh"

namespace wide::kernels {

cudaError_t launch_chain_wide(Dtype dtype, const RowNormParams& params, cudaStream_t stream) {
  return launch_row_norm<RowKind::chain>(dtype, params, stream);
}

}  // namespace wide::kernels
