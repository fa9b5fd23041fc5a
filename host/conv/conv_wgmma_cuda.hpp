// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How conv's wgmma is started: with the tensor maps of its operands.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/conv/conv_wgmma_tile.hpp"
#include "wide/conv.hpp"
#include "wide/device.hpp"

namespace wide {

/// Whether x and weight lie at multiples of 16 bytes, as its tensor maps need.
bool has_conv_maps(const ConvArguments& arguments);

/// Of a problem that it can run, and operands with maps.
void run_conv_wgmma(const DeviceInfo& device, kernels::ConvWgmmaTile tile,
                    const ConvProblem& problem, const ConvArguments& arguments,
                    cudaStream_t stream);

}  // namespace wide
