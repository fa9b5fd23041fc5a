// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y[r, n, :] = x[r, n, :] / sqrt(mean of squares + epsilon) * gamma[n, :]: see row_norm.cuh.
#include "kernels/norm/row_norm.cuh"

namespace wide::kernels {

cudaError_t launch_rmsnorm_wide(Dtype dtype, const RowNormParams& params, cudaStream_t stream) {
  return launch_row_norm<RowKind::rmsnorm>(dtype, params, stream);
}

}  // namespace wide::kernels
