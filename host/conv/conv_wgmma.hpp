// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the strategy wgmma takes, and with which tiles: pure functions, tested for devices that are
// not at hand.
#pragma once

#include <string>

#include "kernels/conv/conv_wgmma_tile.hpp"
#include "wide/conv.hpp"
#include "wide/device.hpp"

namespace wide {

std::string conv_wgmma_unsupported_reason(const ConvProblem& problem, const DeviceInfo& device);

/// So much of what it multiplies are products that implicit_gemm takes longer for them alone.
bool conv_wgmma_is_expected_to_win(const ConvProblem& problem, const DeviceInfo& device);

/// Of those with the tile's pixels that of which y takes the fewest, then that whose taps reach
/// over the fewest positions of x; {} where a tile with a halo has none.
kernels::ConvRectangle conv_wgmma_rectangle(const ConvProblem& problem,
                                            kernels::ConvWgmmaTile tile);

/// By waves of blocks on the device, and what each brings and multiplies: no tile changes a bit.
kernels::ConvWgmmaTile choose_conv_wgmma_tile(const ConvProblem& problem, const DeviceInfo& device);

/// Positions from one pixel of a box to the next: the problem's, where there is a next one.
PerAxis conv_wgmma_steps(const ConvProblem& problem);

/// Whether y's strides allow whole blocks of it to be stored at once; its address has to, too.
bool conv_wgmma_stores_boxes(const ConvProblem& problem);

}  // namespace wide
