// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// linear_wgmma for fp8, with 16-bit outputs.
#include "kernels/linear/linear_wgmma.cuh"

namespace wide::kernels {

namespace {

template <class T, class Out>
cudaError_t launch_type(const LinearWgmmaParams& params, LinearWgmmaTile tile,
                        cudaStream_t stream) {
  switch (tile) {
    case LinearWgmmaTile::m64n128:
      return launch_wgmma_tile<T, Out, LinearWgmmaTile::m64n128>(params, stream);
    case LinearWgmmaTile::m128n128:
      return launch_wgmma_tile<T, Out, LinearWgmmaTile::m128n128>(params, stream);
    case LinearWgmmaTile::m128n128x2:
      return launch_wgmma_tile<T, Out, LinearWgmmaTile::m128n128x2>(params, stream);
    case LinearWgmmaTile::m128n256:
    case LinearWgmmaTile::m128n256x2:
      break;
  }
  return cudaErrorInvalidValue;
}

template <class T>
cudaError_t launch_input(const LinearWgmmaParams& params, Dtype y_dtype, LinearWgmmaTile tile,
                         cudaStream_t stream) {
  return y_dtype == Dtype::fp16 ? launch_type<T, __half>(params, tile, stream)
                                : launch_type<T, __nv_bfloat16>(params, tile, stream);
}

}  // namespace

cudaError_t launch_linear_wgmma_fp8(const LinearWgmmaParams& params, Dtype dtype, Dtype y_dtype,
                                    LinearWgmmaTile tile, cudaStream_t stream) {
  return dtype == Dtype::fp8_e4m3 ? launch_input<__nv_fp8_e4m3>(params, y_dtype, tile, stream)
                                  : launch_input<__nv_fp8_e5m2>(params, y_dtype, tile, stream);
}

}  // namespace wide::kernels
