// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which strategy runs recurrent layers, and what runs their products: pure functions of problem,
// device and what was verified.
#pragma once

#include <span>
#include <string>

#include "host/core/strategy_choice.hpp"
#include "kernels/recurrent/recurrent_params.hpp"
#include "wide/device.hpp"
#include "wide/linear.hpp"
#include "wide/recurrent.hpp"

namespace wide {

enum class RecurrentStrategy : uint8_t {
  sequential,      ///< member by member, step by step, by linear's `sequential`
  cublas_batched,  ///< CUDA: one strided-batched cuBLAS GEMM and the cells per step
  stepwise,        ///< CUDA: one of linear's kernels and the cells per step, all members at once
  fused,           ///< CUDA: all steps of all members in one launch, kernels/recurrent/
  wide,            ///< CPU: step by step, all members at once
};

std::string_view strategy_name(RecurrentStrategy strategy);

/// The strategy of linear that runs a product; for fused, x's.
std::string recurrent_product_strategy(RecurrentStrategy strategy, const LinearProblem& product,
                                       const DeviceInfo& device);

kernels::RecurrentMath recurrent_math(Dtype dtype);

/// Why the strategy cannot run the problem on the device; empty where it can.
std::string recurrent_unsupported_reason(RecurrentStrategy strategy,
                                         const RecurrentProblem& problem, const DeviceInfo& device);

using RecurrentChoice = StrategyChoice<RecurrentStrategy>;

/// "auto" is `wide` on the CPU; on CUDA fused where it is verified and takes the problem,
/// else stepwise where that is verified, else cublas_batched, else sequential. Throws
/// invalid_argument for an unknown name, unsupported with the reason for one that cannot run.
RecurrentChoice choose_recurrent_strategy(const RecurrentProblem& problem, const DeviceInfo& device,
                                          std::string_view name,
                                          std::span<const VerifiedStrategy> verified,
                                          const Tuning& tuning = {});

}  // namespace wide
