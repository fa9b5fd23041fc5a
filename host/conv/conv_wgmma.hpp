// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the strategy wgmma takes, and with which tiles: pure functions, tested for absent
// devices.
#pragma once

#include <string>

#include "kernels/conv/conv_wgmma_tile.hpp"
#include "wide/conv.hpp"
#include "wide/device.hpp"

namespace wide {

std::string conv_wgmma_unsupported_reason(const ConvProblem& problem, const DeviceInfo& device);

/// Whether so many of its products are useful that implicit_gemm takes longer for these alone.
bool conv_wgmma_is_expected_to_win(const ConvProblem& problem, const DeviceInfo& device);

/// The rectangle with the tile's pixels of which y takes the fewest, then the one whose taps reach
/// the fewest positions of x; {} where a tile with a halo has none.
kernels::ConvRectangle conv_wgmma_rectangle(const ConvProblem& problem,
                                            kernels::ConvWgmmaTile tile);

/// By waves of blocks on the device, and what each loads and multiplies: tiles change no bit.
kernels::ConvWgmmaTile choose_conv_wgmma_tile(const ConvProblem& problem, const DeviceInfo& device);

/// Positions from one pixel of a box to the next: the problem's stride, where there is a next one.
PerAxis conv_wgmma_steps(const ConvProblem& problem);

/// Whether y's strides allow storing whole blocks at once; its address must allow it, too.
bool conv_wgmma_stores_boxes(const ConvProblem& problem);

}  // namespace wide
