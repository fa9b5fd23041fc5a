// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// linear_wgmma for fp16 and bf16, and the dispatch to the others.
#include "kernels/linear/linear_wgmma.cuh"

namespace wide::kernels {

namespace {

template <class T>
cudaError_t launch_type(const LinearWgmmaParams& params, LinearWgmmaTile tile,
                        cudaStream_t stream) {
  switch (tile) {
    case LinearWgmmaTile::m64n128:
      return launch_wgmma_tile<T, T, LinearWgmmaTile::m64n128>(params, stream);
    case LinearWgmmaTile::m128n128:
      return launch_wgmma_tile<T, T, LinearWgmmaTile::m128n128>(params, stream);
    case LinearWgmmaTile::m128n256:
      return launch_wgmma_tile<T, T, LinearWgmmaTile::m128n256>(params, stream);
    case LinearWgmmaTile::m128n128x2:
      break;
    case LinearWgmmaTile::m128n256x2:
      return launch_wgmma_tile<T, T, LinearWgmmaTile::m128n256x2>(params, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t launch_linear_wgmma_16(const LinearWgmmaParams& params, Dtype dtype,
                                   LinearWgmmaTile tile, cudaStream_t stream) {
  return dtype == Dtype::fp16 ? launch_type<__half>(params, tile, stream)
                              : launch_type<__nv_bfloat16>(params, tile, stream);
}

cudaError_t launch_linear_wgmma(const LinearWgmmaParams& params, Dtype dtype, Dtype y_dtype,
                                LinearWgmmaTile tile, cudaStream_t stream) {
  const LinearParams& p = params.linear;
  if (p.num_members == 0 || p.m == 0 || p.n == 0) return cudaSuccess;
  const bool is_16 = dtype == Dtype::fp16 || dtype == Dtype::bf16;
  const bool is_fp8 = dtype == Dtype::fp8_e4m3 || dtype == Dtype::fp8_e5m2;
  const bool is_y_16 = y_dtype == Dtype::fp16 || y_dtype == Dtype::bf16;
  if (is_16 && y_dtype == dtype) return launch_linear_wgmma_16(params, dtype, tile, stream);
  if (dtype == Dtype::fp32 && y_dtype == dtype) {
    return launch_linear_wgmma_tf32(params, tile, stream);
  }
  if (is_fp8 && is_y_16) return launch_linear_wgmma_fp8(params, dtype, y_dtype, tile, stream);
  return cudaErrorInvalidValue;
}

}  // namespace wide::kernels
