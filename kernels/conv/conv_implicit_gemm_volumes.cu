// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/conv_implicit_gemm_volumes.hpp"

#include "kernels/conv/conv_implicit_gemm_launch.cuh"

namespace wide::kernels {

cudaError_t launch_conv_gemm_of_volumes(const ConvGemmParams& params, ConvGemmForm form,
                                        Dtype dtype, const ConvGemmTiles& tiles,
                                        cudaStream_t stream) {
  return launch_conv_gemm<kVolumeAxes>(params, form, dtype, tiles, stream);
}

}  // namespace wide::kernels
