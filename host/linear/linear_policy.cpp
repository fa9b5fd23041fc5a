// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// One list of tiles per strategy; those that a problem rules out are removed.
#include "host/linear/linear_policy.hpp"

#include <algorithm>
#include <span>

#include "host/core/heuristic_policy.hpp"
#include "host/core/workspace.hpp"
#include "host/linear/linear_cublaslt.hpp"
#include "kernels/common/grid_blocks.hpp"

namespace wide {

namespace {

struct NamedTile {
  std::string_view name;
  int64_t rows, columns;
};

bool is_on_mma(LinearStrategy strategy) {
  return strategy == LinearStrategy::small_m || strategy == LinearStrategy::tensor_core ||
         strategy == LinearStrategy::tf32x3;
}

std::vector<NamedTile> tiles_of(LinearStrategy strategy) {
  using enum LinearStrategy;
  std::vector<NamedTile> named;
  const auto append = [&](const auto& tiles) {
    for (const auto tile : tiles) named.push_back({tile_name(tile), tile_m(tile), tile_n(tile)});
  };
  if (strategy == simt) append(kernels::kLinearSimtTiles);
  if (strategy == wgmma) append(kernels::kLinearWgmmaTiles);
  if (strategy == small_m || strategy == tf32x3) append(kernels::kLinearSmallMTiles);
  if (strategy == tensor_core || strategy == tf32x3) append(kernels::kLinearTensorCoreTiles);
  if (strategy == weight_only) append(kernels::kLinearWeightOnlyTiles);
  return named;
}

/// Whether wgmma's tile of this name is built for the problem's dtype.
bool is_built_wgmma(std::string_view name, const LinearProblem& problem) {
  return std::any_of(kernels::kLinearWgmmaTiles.begin(), kernels::kLinearWgmmaTiles.end(),
                     [&](kernels::LinearWgmmaTile tile) {
                       return tile_name(tile) == name && is_built_for(tile, is_fp8(problem.dtype));
                     });
}

bool can_run(LinearStrategy strategy, const NamedTile& tile, const LinearProblem& problem) {
  if (linear_tiles_of(problem, tile.rows, tile.columns) >
      kernels::kMaxGridBlocks / problem.num_members) {
    return false;
  }
  if (strategy == LinearStrategy::weight_only)
    return tile.rows >= std::min(problem.batch, kMaxSmallBatch);
  if (strategy == LinearStrategy::wgmma) return is_built_wgmma(tile.name, problem);
  if (is_fp8(problem.dtype)) return tile.rows == 64;  // simt is built for one tile
  if (!is_on_mma(strategy)) return true;
  // 128 x 128 sums plus fp32 operands exceed a thread's registers.
  if (problem.dtype == Dtype::fp32 && tile.rows == 128 && tile.columns == 128) return false;
  return tile.rows >= 64 || problem.batch <= kMaxSmallBatch;
}

std::string joined(const std::vector<std::string_view>& names) {
  std::string list;
  for (const std::string_view name : names) {
    list += (list.empty() ? "" : ", ") + std::string(name);
  }
  return list;
}

template <class Tile>
void replace_by_name(Tile& tile, std::span<const Tile> known, std::string_view name) {
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](Tile candidate) { return tile_name(candidate) == name; });
  if (found != known.end()) tile = *found;
}

}  // namespace

std::vector<std::string_view> linear_policy_names(LinearStrategy strategy) {
  std::vector<std::string_view> names;
  for (const NamedTile& tile : tiles_of(strategy)) names.push_back(tile.name);
  return names;
}

std::vector<std::string_view> linear_policies(LinearStrategy strategy,
                                              const LinearProblem& problem) {
  std::vector<std::string_view> names;
  for (const NamedTile& tile : tiles_of(strategy)) {
    if (can_run(strategy, tile, problem)) names.push_back(tile.name);
  }
  return names;
}

bool is_linear_policy(LinearStrategy strategy, std::string_view policy) {
  if (strategy == LinearStrategy::cublaslt) {
    return parse_heuristic_policy(policy, kMaxCublasLtCandidates) >= 0;
  }
  const auto names = linear_policy_names(strategy);
  return std::find(names.begin(), names.end(), policy) != names.end();
}

std::string linear_policy_reason(LinearStrategy strategy, const LinearProblem& problem,
                                 std::string_view policy) {
  if (policy.empty()) return "";
  const std::string quoted = "policy \"" + std::string(policy) + "\"";
  const std::string name(strategy_name(strategy));
  const auto all = linear_policy_names(strategy), legal = linear_policies(strategy, problem);
  if (strategy == LinearStrategy::cublaslt) {
    return is_linear_policy(strategy, policy)
               ? ""
               : unknown_heuristic_policy(policy, kMaxCublasLtCandidates);
  }
  if (all.empty()) return quoted + ", expected none: " + name + " has none";
  if (!is_linear_policy(strategy, policy)) {
    return quoted + " of " + name + " is unknown, expected one of " + joined(all);
  }
  const bool is_legal = std::find(legal.begin(), legal.end(), policy) != legal.end();
  return is_legal ? ""
                  : quoted + " of " + name + " cannot run this problem, " + joined(legal) + " can";
}

LinearTiles linear_tiles(LinearStrategy strategy, const LinearProblem& problem,
                         const DeviceInfo& device, std::string_view policy) {
  // The member's own problem chooses, even within a wider one: it fixes the order of its sums.
  // The tiles of wgmma and simt change no bit and suit what is launched.
  LinearProblem whole = strategy == LinearStrategy::shared_input ? as_one_member(problem) : problem;
  if (strategy == LinearStrategy::sequential) whole.num_members = 1;
  const LinearStrategy kernel = linear_kernel_of(strategy, problem, device);
  LinearTiles tiles{
      choose_linear_simt_tile(whole, device), choose_linear_mma_tile(kernel, problem, device),
      choose_linear_wgmma_tile(whole, device), choose_linear_weight_only_tile(problem)};
  if (strategy == LinearStrategy::simt) {
    replace_by_name<kernels::LinearSimtTile>(tiles.simt, kernels::kLinearSimtTiles, policy);
  } else if (strategy == LinearStrategy::wgmma) {
    replace_by_name<kernels::LinearWgmmaTile>(tiles.wgmma, kernels::kLinearWgmmaTiles, policy);
  } else if (strategy == LinearStrategy::weight_only) {
    replace_by_name<kernels::LinearWeightOnlyTile>(tiles.weight_only,
                                                   kernels::kLinearWeightOnlyTiles, policy);
  } else if (is_on_mma(strategy)) {
    replace_by_name<kernels::LinearMmaTile>(tiles.mma, kernels::kLinearSmallMTiles, policy);
    replace_by_name<kernels::LinearMmaTile>(tiles.mma, kernels::kLinearTensorCoreTiles, policy);
  }
  tiles.kernel = kernel;
  if (is_on_mma(kernel)) tiles.num_planes = choose_linear_planes(problem, tiles.mma);
  return tiles;
}

int64_t linear_planes_bytes(const LinearProblem& problem, const LinearTiles& tiles) {
  if (tiles.num_planes <= 1) return 0;
  return aligned_bytes(checked_bytes(
      {tiles.num_planes, problem.batch, problem.num_members, problem.out_features}, sizeof(float)));
}

std::string_view linear_policy_name(LinearStrategy strategy, const LinearTiles& tiles) {
  if (strategy == LinearStrategy::simt) return tile_name(tiles.simt);
  if (strategy == LinearStrategy::wgmma) return tile_name(tiles.wgmma);
  if (strategy == LinearStrategy::weight_only) return tile_name(tiles.weight_only);
  return is_on_mma(strategy) ? tile_name(tiles.mma) : "";
}

}  // namespace wide
