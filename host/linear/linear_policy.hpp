// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The policies of linear's strategies: tiles by name, so that one can be asked for, measured and
// remembered. Pure functions, like the choice of the strategy.
//
// A policy belongs to a plan, and all members of a plan have the same one: where tiles add up in
// another order, a member's bits differ from plan to plan, never with its neighbours.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host/linear/linear_strategy.hpp"

namespace wide {

/// All of the strategy, whatever the problem; empty where it has none to choose.
std::vector<std::string_view> linear_policy_names(LinearStrategy strategy);
/// Those that can run the problem, which the strategy can run.
std::vector<std::string_view> linear_policies(LinearStrategy strategy,
                                              const LinearProblem& problem);

/// Why the policy does not run the problem: it is unknown to the strategy, or cannot; empty where
/// it does, or is empty itself.
std::string linear_policy_reason(LinearStrategy strategy, const LinearProblem& problem,
                                 std::string_view policy);
/// Whether the strategy has a policy of this name, whatever the problem.
bool is_linear_policy(LinearStrategy strategy, std::string_view policy);

/// What the kernels of a plan are launched with; a strategy uses only its own fields.
struct LinearTiles {
  kernels::LinearSimtTile simt = kernels::LinearSimtTile::m16n64;
  kernels::LinearMmaTile mma = kernels::LinearMmaTile::m64n64;  ///< also where it stands in
  kernels::LinearWgmmaTile wgmma = kernels::LinearWgmmaTile::m64n128;
  kernels::LinearWeightOnlyTile weight_only = kernels::LinearWeightOnlyTile::m16n64;
  int num_planes = 1;  ///< blocks that divide a tile's k, where `mma` is one of few rows
  LinearStrategy kernel = LinearStrategy::simt;  ///< linear_kernel_of(), found once, not per call
};

/// The tiles that choose_linear_*_tile find, except the one that `policy` names: one of
/// linear_policies(), or empty.
LinearTiles linear_tiles(LinearStrategy strategy, const LinearProblem& problem,
                         const DeviceInfo& device, std::string_view policy);

/// Scratch memory of the planes: their partial sums in fp32, up to a multiple of 256 bytes. 0 for
/// one plane.
int64_t linear_planes_bytes(const LinearProblem& problem, const LinearTiles& tiles);

/// The name of the tile among them that the strategy launches; empty where it has no policies.
std::string_view linear_policy_name(LinearStrategy strategy, const LinearTiles& tiles);

}  // namespace wide
