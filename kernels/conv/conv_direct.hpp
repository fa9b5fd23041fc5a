// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launcher of the convolution on the ordinary fp32 units.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/conv/conv_params.hpp"
#include "wide/dtype.hpp"

namespace wide::kernels {

/// y by `params` for all members in one launch; y is not empty. All operands of one dtype: fp32,
/// fp16, bf16; x in its own layout, the others in `layout`. Sums run in order of channels, then
/// taps, in fp32, whatever the tile. cudaErrorInvalidConfiguration for more than 2^31 - 1 blocks or
/// more shared memory than the device has, cudaErrorInvalidValue for other dtypes.
cudaError_t launch_conv_direct(const ConvParams& params, ChannelLayout x_layout,
                               ChannelLayout layout, Dtype dtype, cudaStream_t stream);

}  // namespace wide::kernels
