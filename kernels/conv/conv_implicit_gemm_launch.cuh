// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Dispatches a form and a tile to conv_implicit_gemm.cuh's kernel.
#pragma once

#include <type_traits>

#include "kernels/common/dispatch.hpp"
#include "kernels/common/grid_blocks.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/conv/conv_implicit_gemm.cuh"

namespace wide::kernels {

template <class Math, int kAxes, ConvGemmForm form, ConvGemmTile tile>
cudaError_t launch_conv_gemm_tile(const ConvGemmParams& params, cudaStream_t stream) {
  using Shared = ConvGemmShared<typename Math::Element, kAxes, form, tile>;
  const ConvParams& conv = params.conv;
  const int64_t tiles_p = (params.num_pixels - 1) / tile_pixels(tile) + 1;
  const int64_t tiles_c = (conv.out_per_group - 1) / tile_channels(tile) + 1;
  // Each factor is checked before it is used, so that no product can overflow.
  if (tiles_p > kMaxGridBlocks / tiles_c || conv.groups > kMaxGridBlocks / (tiles_p * tiles_c) ||
      conv.num_members > kMaxGridBlocks / (tiles_p * tiles_c * conv.groups)) {
    return cudaErrorInvalidConfiguration;
  }
  const auto kernel = conv_implicit_gemm<Math, kAxes, form, tile>;
  if (const cudaError_t status = allow_shared_bytes(kernel, Shared::kBytes);
      status != cudaSuccess) {
    return status;
  }
  const auto blocks = static_cast<unsigned>(tiles_p * tiles_c * conv.groups * conv.num_members);
  return launch_kernel(kernel, blocks, Shared::policy.threads(), Shared::kBytes, stream, params,
                       static_cast<uint32_t>(tiles_p), static_cast<uint32_t>(tiles_c));
}

template <class Math, int kAxes, ConvGemmForm form>
cudaError_t launch_conv_gemm_form(const ConvGemmParams& params, ConvGemmTile tile,
                                  cudaStream_t stream) {
  switch (tile) {
    case ConvGemmTile::p128c32:
      return launch_conv_gemm_tile<Math, kAxes, form, ConvGemmTile::p128c32>(params, stream);
    case ConvGemmTile::p64c64:
      return launch_conv_gemm_tile<Math, kAxes, form, ConvGemmTile::p64c64>(params, stream);
    case ConvGemmTile::p64c128:
      if constexpr (form == ConvGemmForm::gather) {
        return launch_conv_gemm_tile<Math, kAxes, form, ConvGemmTile::p64c128>(params, stream);
      }
      return cudaErrorInvalidValue;
    case ConvGemmTile::p128c128:
      // The registers of 32-bit operands do not fit alongside its sums.
      if constexpr (form == ConvGemmForm::vector && sizeof(typename Math::Element) == 2) {
        return launch_conv_gemm_tile<Math, kAxes, form, ConvGemmTile::p128c128>(params, stream);
      }
      return cudaErrorInvalidValue;
  }
  return cudaErrorInvalidValue;
}

template <int kAxes>
cudaError_t launch_conv_gemm(const ConvGemmParams& params, ConvGemmForm form, Dtype dtype,
                             const ConvGemmTiles& tiles, cudaStream_t stream) {
  return dispatch_float(dtype, [&]<class T>(std::type_identity<T>) {
    using Math = std::conditional_t<std::is_same_v<T, float>, MmaTf32, MmaHalf<T>>;
    return form == ConvGemmForm::vector ? launch_conv_gemm_form<Math, kAxes, ConvGemmForm::vector>(
                                              params, tiles.vector, stream)
                                        : launch_conv_gemm_form<Math, kAxes, ConvGemmForm::gather>(
                                              params, tiles.gather, stream);
  });
}

}  // namespace wide::kernels
