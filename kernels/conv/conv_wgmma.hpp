// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launcher of convolution as a matrix product on Hopper's warpgroup products.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "kernels/conv/conv_params.hpp"
#include "kernels/conv/conv_wgmma_tile.hpp"
#include "wide/dtype.hpp"

namespace wide::kernels {

struct ConvWgmmaParams {
  /// x as {channels, batch, columns, rows, members} with boxes of {kConvWgmmaTileBytes, rectangle,
  /// 1} and the element strides of the convolution, or for a tile that has_halo with boxes of {..,
  /// kConvHaloBatch, box, 1}; weight as {channels, kernel columns, kernel rows, output channels,
  /// members} with boxes of {kConvWgmmaTileBytes, 1, 1, tile_channels, 1}; both with the 128-byte
  /// swizzle.
  /// For volumes, which have one axis more, members are part of the channels: x as {members *
  /// channels, batch, columns, rows, planes}, weight as {channels, kernel columns, kernel rows,
  /// kernel planes, members * output channels}, y like x.
  CUtensorMap x, weight;
  /// y like x, with boxes of {kConvWgmmaStoreChannels, first_pixels(rectangle,
  /// kConvWgmmaStorePixels), 1} and the 128-byte swizzle, where stores_boxes.
  CUtensorMap y;
  bool stores_boxes;  ///< for outputs of 16 bits
  bool are_volumes;   ///< then a member's channels of x end with a stage or half of one
  ConvParams conv;    ///< of one group; x and weight are ignored; a member stride of 0: shared
  ConvRectangle rectangle;  ///< of tile_pixels
  /// Columns and rows of x's box: the rectangle's or, for a tile that has_halo, all that its taps
  /// need. Then rectangles have kConvHaloBatch batch rows, and at least 8 columns.
  ConvAxes box;
  int num_multiprocessors;
};

/// All members in one launch, for fp16, bf16, or fp32 multiplied as tf32. A sum goes through the
/// channels 128 bytes at a time, and all taps of each, whatever the tile. Nothing is launched where
/// y is empty. cudaErrorInvalidConfiguration for more than 2^31 - 1 tiles or steps;
/// cudaErrorInvalidValue for other dtypes or tiles.
cudaError_t launch_conv_wgmma(const ConvWgmmaParams& params, Dtype dtype, ConvWgmmaTile tile,
                              cudaStream_t stream);

}  // namespace wide::kernels
