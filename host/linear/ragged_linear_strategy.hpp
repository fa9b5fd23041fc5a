// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which strategy runs a ragged linear problem on which device, and the table of its kernels. Pure
// functions of their arguments: they are tested for devices that are not at hand.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host/core/strategy_choice.hpp"
#include "host/core/verified.hpp"
#include "kernels/linear/ragged_linear_params.hpp"
#include "wide/device.hpp"
#include "wide/ragged_linear.hpp"

namespace wide {

enum class RaggedLinearStrategy : uint8_t {
  sequential,      ///< CUDA: one cuBLAS call per member; CPU: member after member
  cublas_grouped,  ///< one grouped cuBLAS call by pointers
  simt,            ///< fp32 multiply-adds: kernels/linear/ragged_linear_simt.cu
  tensor_core,     ///< kernels/linear/ragged_linear_tensor_core.cu
  wide,            ///< CPU: all members' blocks at once
};

std::string_view strategy_name(RaggedLinearStrategy strategy);

/// Why the strategy cannot run the problem, which is laid out, there; empty where it can.
std::string ragged_linear_unsupported_reason(RaggedLinearStrategy strategy,
                                             const RaggedLinearProblem& problem,
                                             const DeviceInfo& device);

using RaggedLinearChoice = StrategyChoice<RaggedLinearStrategy>;

/// "auto" is on the CPU `wide`; on CUDA a kernel of ours that is in `verified` for this compute
/// capability where members are small enough for launches to matter, else `sequential`. Throws as
/// choose_strategy().
RaggedLinearChoice choose_ragged_linear_strategy(const RaggedLinearProblem& problem,
                                                 const DeviceInfo& device,
                                                 std::span<const VerifiedStrategy> verified,
                                                 std::string_view name = "auto",
                                                 const Tuning& tuning = {});

/// No output element at all.
bool is_empty(const RaggedLinearProblem& problem);
bool is_empty(const RaggedLinearMember& member);

/// What `strategy` needs, a multiple of 256: at any time it may be `sequential` that runs.
int64_t ragged_linear_workspace_bytes(RaggedLinearStrategy strategy,
                                      const RaggedLinearProblem& problem, const DeviceInfo& device);

/// What the kernels read. A member's tile depends on its own shape alone; members whose tiles take
/// longest come first, so that no long tile begins when the others have ended.
struct RaggedLinearTable {
  std::vector<kernels::RaggedTile> tiles;
  std::vector<kernels::RaggedMember> members;
};
RaggedLinearTable make_ragged_linear_table(RaggedLinearStrategy strategy,
                                           const RaggedLinearProblem& problem);

}  // namespace wide
