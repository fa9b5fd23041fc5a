// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which strategy runs a routed_mlp, and how the fused kernel is laid out: pure functions of
// problem, device and what was verified.
#pragma once

#include <span>
#include <string>

#include "host/core/strategy_choice.hpp"
#include "host/core/verified.hpp"
#include "kernels/fused/mlp_fused_shape.hpp"
#include "wide/device.hpp"
#include "wide/routed_linear.hpp"
#include "wide/routed_mlp.hpp"

namespace wide {

enum class RoutedMlpStrategy : uint8_t {
  sequential,  ///< layer by layer, by routed_linear's `sequential`
  layerwise,   ///< CUDA: one of routed_linear's kernels per layer, all members at once
  fused,       ///< CUDA: all layers of all members in one launch: kernels/fused/mlp_fused.cuh
  wide,        ///< CPU: layer by layer, all members at once
};

std::string_view strategy_name(RoutedMlpStrategy strategy);

/// The strategy of routed_linear that runs a layer; not for fused.
std::string_view routed_mlp_layer_strategy(RoutedMlpStrategy strategy,
                                           const RoutedLinearProblem& layer,
                                           const DeviceInfo& device);

/// A block's division of shared memory, and its rows at most. Changes no bit.
struct RoutedMlpShape {
  kernels::MlpFusedShape block;
  int32_t tile = 0;
};
/// For members that have about as many rows each, and as well as may be for others. The problem is
/// complete, not empty, and of those that the kernel takes.
RoutedMlpShape choose_routed_mlp_shape(const RoutedMlpProblem& problem, const DeviceInfo& device);

/// Why the strategy cannot run the problem, which is complete, there; empty where it can.
std::string routed_mlp_unsupported_reason(RoutedMlpStrategy strategy,
                                          const RoutedMlpProblem& problem,
                                          const DeviceInfo& device);

using RoutedMlpChoice = StrategyChoice<RoutedMlpStrategy>;

/// "auto" is `wide` on the CPU; on CUDA fused where it is verified and takes the problem, else
/// layerwise where that is verified, else sequential. Throws as choose_strategy().
RoutedMlpChoice choose_routed_mlp_strategy(const RoutedMlpProblem& problem,
                                           const DeviceInfo& device,
                                           std::span<const VerifiedStrategy> verified,
                                           std::string_view name = "auto",
                                           const Tuning& tuning = {});

}  // namespace wide
