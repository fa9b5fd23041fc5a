// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launches of routed_linear_wgmma.
#include "kernels/linear/routed_linear_wgmma.cuh"

#include <algorithm>
#include <limits>

namespace wide::kernels {

namespace {

template <class T, LinearWgmmaTile tile>
cudaError_t launch_tile(RoutedWgmmaParams params, cudaStream_t stream) {
  constexpr WgmmaPolicy policy = routed_policy_of(tile);
  constexpr int kSharedBytes = sizeof(RoutedWgmmaStorage<policy>);
  static_assert(kSharedBytes <= 227 * 1024, "what a block of compute capability 9.0 has");
  constexpr int64_t kTileK = kRowBytes / sizeof(T), kMost = std::numeric_limits<int32_t>::max();
  LinearParams& p = params.routed.linear;
  const int64_t slots = routed_slots(p.m, p.num_members, kRoutedWgmmaTile);
  const int64_t tiles_n = (p.n - 1) / policy.tile_n + 1;
  // Tiles' coordinates are 32 bits wide, including those past the end.
  if (p.k > kMost - kTileK || tiles_n > kMost / policy.tile_n ||
      block_product({slots, tiles_n}) > kMaxGridBlocks ||
      block_product({kRoutedGroup, tiles_n}) > kMaxGridBlocks) {
    return cudaErrorInvalidConfiguration;
  }
  set_output_alignment(p, sizeof(T));
  const auto num_steps = static_cast<int32_t>((p.k - 1) / kTileK + 1);
  // Of all members, as if they were one.
  const WgmmaGrid grid{static_cast<uint32_t>(slots), static_cast<uint32_t>(tiles_n),
                       static_cast<uint32_t>(slots * tiles_n), num_steps, num_steps};
  const auto kernel = routed_linear_wgmma<T, tile>;
  const cudaError_t status = allow_shared_bytes(kernel, kSharedBytes);
  if (status != cudaSuccess) return status;
  const uint32_t blocks = std::min(grid.count, static_cast<uint32_t>(params.num_multiprocessors));
  return launch_kernel(kernel, blocks, kWgmmaThreads, kSharedBytes, stream, params, grid);
}

template <class T>
cudaError_t launch_type(const RoutedWgmmaParams& params, LinearWgmmaTile tile,
                        cudaStream_t stream) {
  switch (tile) {
    case LinearWgmmaTile::m64n128:
    case LinearWgmmaTile::m128n128x2:
    case LinearWgmmaTile::m128n256x2:
      break;
    case LinearWgmmaTile::m128n128:
      return launch_tile<T, LinearWgmmaTile::m128n128>(params, stream);
    case LinearWgmmaTile::m128n256:
      return launch_tile<T, LinearWgmmaTile::m128n256>(params, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t launch_routed_linear_wgmma(const RoutedWgmmaParams& params, Dtype dtype,
                                       LinearWgmmaTile tile, cudaStream_t stream) {
  if (params.routed.linear.m == 0 || params.routed.linear.n == 0) return cudaSuccess;
  if (dtype == Dtype::fp16) return launch_type<__half>(params, tile, stream);
  if (dtype == Dtype::bf16) return launch_type<__nv_bfloat16>(params, tile, stream);
  return cudaErrorInvalidValue;
}

}  // namespace wide::kernels
