// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Shared by the launchers of this folder.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "kernels/common/grid_blocks.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/linear/linear_params.hpp"

namespace wide::kernels {

/// Sets whether bias, scale and residual may be read four elements at a time.
inline void set_alignment(LinearEpilogue& epilogue, int64_t element_bytes) {
  constexpr int64_t kGroup = 4;
  const auto is_fit = [](const void* pointer, const RowStrides& strides, int64_t bytes) {
    return pointer == nullptr || is_aligned(pointer, strides.row, strides.member, kGroup, bytes);
  };
  epilogue.is_aligned = is_fit(epilogue.bias, {0, epilogue.bias_member_stride}, element_bytes) &&
                        is_fit(epilogue.residual, epilogue.residual_strides, element_bytes) &&
                        (!epilogue.scale_is_per_output ||
                         is_fit(epilogue.scale, {0, epilogue.scale_member_stride}, sizeof(float)));
}

/// Sets whether y and what is added to it may be moved four elements at a time.
inline void set_output_alignment(LinearParams& params, int64_t element_bytes) {
  constexpr int64_t kGroup = 4;
  params.y_is_aligned =
      is_aligned(params.y, params.y_strides.row, params.y_strides.member, kGroup, element_bytes);
  set_alignment(params.epilogue, element_bytes);
}

/// Sets which operands may be moved 16 bytes (y and what is added to it: four elements) at a
/// time.
inline void set_alignment(LinearParams& params, int64_t element_bytes) {
  const int64_t vector = 16 / element_bytes;
  params.x_is_aligned =
      is_aligned(params.x, params.x_strides.row, params.x_strides.member, vector, element_bytes);
  params.weight_is_aligned = is_aligned(params.weight, params.weight_strides.row,
                                        params.weight_strides.member, vector, element_bytes);
  set_output_alignment(params, element_bytes);
}

/// Launches kernel(params, tiles_m, tiles_n) on a 1-D grid, one block per tile of a member, and per
/// share of k where that is divided. Params: LinearParams and a kernel's additions.
template <class Kernel, class Params>
cudaError_t launch_tiles(Kernel* kernel, const Params& params, int64_t tile_m, int64_t tile_n,
                         int threads, int shared_bytes, cudaStream_t stream) {
  // Each factor is checked before it is used, so that no product can overflow.
  const int64_t tiles_m = (params.m - 1) / tile_m + 1, tiles_n = (params.n - 1) / tile_n + 1;
  const int64_t shares = params.num_members * std::max(params.planes.count, 1);
  if (tiles_m > kMaxGridBlocks / tiles_n || shares > kMaxGridBlocks / (tiles_m * tiles_n)) {
    return cudaErrorInvalidConfiguration;
  }
  if (const cudaError_t status = allow_shared_bytes(kernel, shared_bytes); status != cudaSuccess) {
    return status;
  }
  const auto blocks = static_cast<unsigned>(tiles_m * tiles_n * shares);
  return launch_kernel(kernel, blocks, threads, static_cast<size_t>(shared_bytes), stream, params,
                       static_cast<uint32_t>(tiles_m), static_cast<uint32_t>(tiles_n));
}

}  // namespace wide::kernels
