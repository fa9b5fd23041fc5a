// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// linear_simt.cuh for members of one shape.
#include "kernels/arch/grid.cuh"
#include "kernels/linear/linear_simt.cuh"

#include "kernels/common/dispatch.hpp"
#include "kernels/linear/linear_launch.cuh"
#include "kernels/linear/linear_simt.hpp"

namespace wide::kernels {

namespace {

template <class T, class Out, LinearSimtTile tile_shape>
__global__ void __launch_bounds__(policy_of(tile_shape).threads(),
                                  policy_of(tile_shape).blocks_per_multiprocessor)
    linear_simt(const __grid_constant__ LinearParams params, uint32_t tiles_m, uint32_t tiles_n) {
  constexpr SimtPolicy policy = policy_of(tile_shape);
  extern __shared__ __align__(128) char shared[];
  // Neighbouring blocks share their rows of the weight.
  const uint32_t member = blockIdx.x / (tiles_m * tiles_n), tile = blockIdx.x % (tiles_m * tiles_n);
  arch::follow_grid();
  compute_simt_tile<T, Out, tile_shape>(
      params, member, static_cast<int64_t>(tile % tiles_m) * policy.tile_m,
      static_cast<int64_t>(tile / tiles_m) * policy.tile_n, shared);
}

template <class T, class Out, LinearSimtTile tile>
cudaError_t launch_tile(const LinearParams& params, cudaStream_t stream) {
  constexpr SimtPolicy policy = policy_of(tile);
  return launch_tiles(linear_simt<T, Out, tile>, params, policy.tile_m, policy.tile_n,
                      policy.threads(), policy.shared_bytes(), stream);
}

/// The fallback for fp8 without wgmma: one tile, to keep the number of kernels low.
template <class T>
cudaError_t launch_fp8(LinearParams params, Dtype y_dtype, LinearSimtTile tile,
                       cudaStream_t stream) {
  constexpr LinearSimtTile kTile = LinearSimtTile::m64n64;
  if (tile != kTile) return cudaErrorInvalidValue;
  set_alignment(params, sizeof(T));
  set_output_alignment(params, sizeof(__half));
  return y_dtype == Dtype::fp16 ? launch_tile<T, __half, kTile>(params, stream)
                                : launch_tile<T, __nv_bfloat16, kTile>(params, stream);
}

}  // namespace

cudaError_t launch_linear_simt(LinearParams params, Dtype dtype, Dtype y_dtype, LinearSimtTile tile,
                               cudaStream_t stream) {
  if (params.num_members == 0 || params.m == 0 || params.n == 0) return cudaSuccess;
  if (dtype == Dtype::fp8_e4m3) {
    return launch_fp8<__nv_fp8_e4m3>(params, y_dtype, tile, stream);
  }
  if (dtype == Dtype::fp8_e5m2) {
    return launch_fp8<__nv_fp8_e5m2>(params, y_dtype, tile, stream);
  }
  return dispatch_float(dtype, [&]<class T>(std::type_identity<T>) {
    set_alignment(params, sizeof(T));
    switch (tile) {
      case LinearSimtTile::m16n64:
        return launch_tile<T, T, LinearSimtTile::m16n64>(params, stream);
      case LinearSimtTile::m32n64:
        return launch_tile<T, T, LinearSimtTile::m32n64>(params, stream);
      case LinearSimtTile::m64n64:
        return launch_tile<T, T, LinearSimtTile::m64n64>(params, stream);
      case LinearSimtTile::m128n128:
        return launch_tile<T, T, LinearSimtTile::m128n128>(params, stream);
    }
    return cudaErrorInvalidValue;
  });
}

}  // namespace wide::kernels
