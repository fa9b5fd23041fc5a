// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// conv_implicit_gemm.cuh for volumes, compiled separately from images.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/conv/conv_implicit_gemm_params.hpp"
#include "kernels/conv/conv_implicit_gemm_tile.hpp"
#include "wide/dtype.hpp"

namespace wide::kernels {

cudaError_t launch_conv_gemm_of_volumes(const ConvGemmParams& params, ConvGemmForm form,
                                        Dtype dtype, const ConvGemmTiles& tiles,
                                        cudaStream_t stream);

}  // namespace wide::kernels
