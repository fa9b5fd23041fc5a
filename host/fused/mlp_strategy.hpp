// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which strategy runs an mlp, how the fused kernel is laid out, and what runs the layers where they
// run one by one: pure functions of problem, device and what was verified.
#pragma once

#include <span>
#include <string>

#include "host/core/strategy_choice.hpp"
#include "kernels/fused/mlp_fused_shape.hpp"
#include "wide/device.hpp"
#include "wide/linear.hpp"
#include "wide/mlp.hpp"

namespace wide {

enum class MlpStrategy : uint8_t {
  sequential,      ///< member by member, layer by layer, by linear's `sequential`
  cublas_batched,  ///< CUDA: one strided-batched cuBLAS GEMM and epilogue per layer
  layerwise,       ///< CUDA: one of linear's kernels per layer, all members at once
  fused,           ///< CUDA: all layers of all members in one launch: kernels/fused/mlp_fused.cuh
  wide,            ///< CPU: layer by layer, all members at once
};

std::string_view strategy_name(MlpStrategy strategy);

/// The strategy of linear that runs a layer; not for fused.
std::string mlp_layer_strategy(MlpStrategy strategy, const LinearProblem& layer,
                               const DeviceInfo& device);

/// The fused kernel's arithmetic.
kernels::MlpMath mlp_math(Dtype dtype, bool allow_tf32);
/// Its parameters for the layers of a complete problem, which has no more and no wider ones than
/// the kernel takes.
kernels::MlpFusedNet mlp_fused_net(const MlpProblem& problem);
/// As many warps as rows keep busy, and all weights in shared memory where they fit, else in a
/// ring; warps == 0 where not even that fits. Changes no bit. Routed: batch is a member's mean.
kernels::MlpFusedShape choose_mlp_fused_shape(const MlpProblem& problem, const DeviceInfo& device,
                                              bool is_routed = false);
/// Why the fused kernel cannot run the problem on the device; empty where it can.
std::string mlp_fused_reason(const MlpProblem& problem, const DeviceInfo& device, bool is_routed);

/// Why the strategy cannot run the problem on the device; empty where it can.
std::string mlp_unsupported_reason(MlpStrategy strategy, const MlpProblem& problem,
                                   const DeviceInfo& device);

using MlpChoice = StrategyChoice<MlpStrategy>;

/// "auto" is `wide` on the CPU; on CUDA fused where it is verified and takes the problem,
/// else layerwise where that is verified, else cublas_batched, else sequential. Throws
/// invalid_argument for an unknown name, unsupported with the reason for one that cannot run.
MlpChoice choose_mlp_strategy(const MlpProblem& problem, const DeviceInfo& device,
                              std::string_view name, std::span<const VerifiedStrategy> verified,
                              const Tuning& tuning = {});

}  // namespace wide
