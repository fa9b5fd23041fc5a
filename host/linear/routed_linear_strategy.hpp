// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which strategy runs a routed linear problem on which device. Pure functions of their arguments:
// they are tested for devices that are not at hand.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "host/core/strategy_choice.hpp"
#include "host/core/verified.hpp"
#include "kernels/linear/linear_wgmma_tile.hpp"
#include "wide/device.hpp"
#include "wide/routed_linear.hpp"

namespace wide {

enum class RoutedLinearStrategy : uint8_t {
  sequential,   ///< CUDA: simt's kernel, of quantised weights weight_only's, a launch per member
                ///< and one for the rows of none, as cuBLAS has its sizes from the host; CPU:
                ///< member after member
  simt,         ///< fp32 multiply-adds: kernels/linear/routed_linear_simt.cu
  tensor_core,  ///< kernels/linear/routed_linear_tensor_core.cu
  wgmma,        ///< kernels/linear/routed_linear_wgmma.cuh, for tensor maps of the weights
  weight_only,  ///< quantised weights: kernels/linear/routed_linear_weight_only.cu
  wide,         ///< CPU: all members' blocks at once
};

std::string_view strategy_name(RoutedLinearStrategy strategy);

/// Why the strategy cannot run the problem, which is complete, there; empty where it can.
std::string routed_linear_unsupported_reason(RoutedLinearStrategy strategy,
                                             const RoutedLinearProblem& problem,
                                             const DeviceInfo& device);

/// wgmma's tile: that of which a round of blocks takes least time.
kernels::LinearWgmmaTile choose_routed_wgmma_tile(const RoutedLinearProblem& problem,
                                                  const DeviceInfo& device);

/// Whether members have rows enough for wgmma, and the device tiles.
bool is_routed_wgmma_expected_to_win(const RoutedLinearProblem& problem, const DeviceInfo& device);

using RoutedLinearChoice = StrategyChoice<RoutedLinearStrategy>;

/// "auto" is on the CPU `wide`; on CUDA a kernel that is in `verified` for this compute capability,
/// else `sequential`. Throws as choose_strategy().
RoutedLinearChoice choose_routed_linear_strategy(const RoutedLinearProblem& problem,
                                                 const DeviceInfo& device,
                                                 std::span<const VerifiedStrategy> verified,
                                                 std::string_view name = "auto",
                                                 const Tuning& tuning = {});

}  // namespace wide
