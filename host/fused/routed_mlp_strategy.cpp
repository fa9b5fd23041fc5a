// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/fused/routed_mlp_strategy.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "host/fused/mlp_strategy.hpp"
#include "host/fused/routed_mlp_problem.hpp"
#include "host/linear/routed_linear_strategy.hpp"
#include "kernels/common/grid_blocks.hpp"
#include "kernels/common/routed_slots.hpp"

namespace wide {

namespace {

int64_t mean_rows(const RoutedMlpProblem& p) {
  return p.num_rows == 0 ? 0 : (p.num_rows - 1) / p.num_members + 1;
}

std::string routed_fused_reason(const RoutedMlpProblem& p, const DeviceInfo& device) {
  const std::string reason = mlp_fused_reason(mlp_of(p, mean_rows(p)), device, true);
  if (!reason.empty() || is_empty(p)) return reason;
  const int64_t tile = choose_routed_mlp_shape(p, device).tile;
  if (p.num_members > kernels::kMaxGridBlocks ||
      kernels::routed_slots(p.num_rows, p.num_members, tile) > kernels::kMaxGridBlocks) {
    return "the rows of any routing have more than 2^31 - 1 tiles of " + std::to_string(tile);
  }
  return "";
}

std::string routed_layers_reason(RoutedMlpStrategy strategy, const RoutedMlpProblem& problem,
                                 const DeviceInfo& device) {
  using enum RoutedLinearStrategy;
  for (const RoutedLinearProblem& layer : routed_mlp_layers(problem)) {
    const std::string_view name = routed_mlp_layer_strategy(strategy, layer, device);
    for (const RoutedLinearStrategy one : {sequential, simt, tensor_core, wgmma, wide}) {
      if (strategy_name(one) != name) continue;
      const std::string reason = routed_linear_unsupported_reason(one, layer, device);
      if (!reason.empty()) return "routed_linear by " + std::string(name) + ": " + reason;
    }
  }
  return "";
}

}  // namespace

std::string_view strategy_name(RoutedMlpStrategy strategy) {
  static constexpr std::array<std::string_view, 4> kNames{"sequential", "layerwise", "fused",
                                                          "wide"};
  return kNames[static_cast<size_t>(strategy)];
}

std::string_view routed_mlp_layer_strategy(RoutedMlpStrategy strategy,
                                           const RoutedLinearProblem& layer,
                                           const DeviceInfo& device) {
  using enum RoutedLinearStrategy;
  if (strategy != RoutedMlpStrategy::layerwise) return strategy_name(strategy);
  const auto fits = [&](RoutedLinearStrategy one) {
    return routed_linear_unsupported_reason(one, layer, device).empty();
  };
  if (fits(wgmma) && is_routed_wgmma_expected_to_win(layer, device)) return strategy_name(wgmma);
  return strategy_name(fits(tensor_core) ? tensor_core : simt);
}

RoutedMlpShape choose_routed_mlp_shape(const RoutedMlpProblem& p, const DeviceInfo& device) {
  constexpr int64_t kMostRows = int64_t{1} << 30;  // so that twice a tile fits in 32 bits
  const MlpProblem mlp = mlp_of(p, mean_rows(p));
  RoutedMlpShape shape{.block = choose_mlp_fused_shape(mlp, device, true)};
  const int64_t rows = kernels::mlp_warp_rows(mlp_math(p.dtype, p.allow_tf32));
  const int64_t tiles = (mlp.batch - 1) / rows + 1, warps = shape.block.warps;
  const int64_t blocks = std::exchange(shape.block.blocks_per_member, 1);
  // A block's rounds are as many as its rows need. A member that has one fetches its weights once
  // up to twice the mean: half of the members are above it.
  const int64_t shared_tiles = blocks == 1 ? 2 * tiles : (tiles - 1) / blocks + 1;
  const int64_t rounds = (shared_tiles - 1) / warps + 1;
  shape.tile = static_cast<int32_t>(std::min(rounds, kMostRows / (warps * rows)) * warps * rows);
  return shape;
}

std::string routed_mlp_unsupported_reason(RoutedMlpStrategy strategy,
                                          const RoutedMlpProblem& problem,
                                          const DeviceInfo& device) {
  const std::string reason = other_device_reason(strategy_name(strategy), device);
  if (!reason.empty()) return reason;
  return strategy == RoutedMlpStrategy::fused ? routed_fused_reason(problem, device)
                                              : routed_layers_reason(strategy, problem, device);
}

RoutedMlpChoice choose_routed_mlp_strategy(const RoutedMlpProblem& problem,
                                           const DeviceInfo& device,
                                           std::span<const VerifiedStrategy> verified,
                                           std::string_view name, const Tuning& tuning) {
  using enum RoutedMlpStrategy;
  using enum DeviceType;
  static constexpr StrategyRow<RoutedMlpStrategy, RoutedMlpProblem> kTable[] = {
      {fused, cuda, false, "all layers of all members in one launch"},
      {layerwise, cuda, false, "one launch a layer"},
      {sequential, cuda, false, "one launch per member and layer"},
      {wide, cpu, false, "layer by layer, members share the threads"},
      {sequential, cpu, false, "member after member"},
  };
  return choose_strategy<RoutedMlpStrategy, RoutedMlpProblem>(
      {"routed_mlp", device, name, verified_by(verified, "routed_mlp", device), "", tuning}, kTable,
      problem, routed_mlp_unsupported_reason);
}

}  // namespace wide
