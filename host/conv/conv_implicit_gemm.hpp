// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the strategy implicit_gemm takes, and with which tiles: pure functions, tested for absent
// devices.
#pragma once

#include <string>

#include "kernels/conv/conv_implicit_gemm_tile.hpp"
#include "wide/conv.hpp"
#include "wide/device.hpp"

namespace wide {

/// What is computed: patches as channels, if they come by vectors so.
ConvProblem as_conv_gemm(const ConvProblem& problem);

std::string conv_implicit_gemm_unsupported_reason(const ConvProblem& problem,
                                                  const DeviceInfo& device);

/// Whether tiles are full of useful products.
bool conv_implicit_gemm_is_expected_to_win(const ConvProblem& problem, const DeviceInfo& device);

/// For as_conv_gemm()'s problem, by waves of blocks on the device: tiles change no bit.
kernels::ConvGemmTiles choose_conv_gemm_tiles(const ConvProblem& problem, const DeviceInfo& device);

}  // namespace wide
