// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launcher of the convolution on the ordinary fp32 units.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/conv/conv_params.hpp"
#include "wide/dtype.hpp"

namespace wide::kernels {

/// y as `params` says for all members in one launch; y is not empty. All operands of one dtype:
/// fp32, fp16, bf16; x of a layout of its own, `layout` that of the others. Sums run over channels,
/// then taps upwards in fp32, whatever the tile. cudaErrorInvalidConfiguration for more than 2^31 -
/// 1 blocks or more shared memory than the device has, cudaErrorInvalidValue for other dtypes.
cudaError_t launch_conv_direct(const ConvParams& params, ChannelLayout x_layout,
                               ChannelLayout layout, Dtype dtype, cudaStream_t stream);

}  // namespace wide::kernels
