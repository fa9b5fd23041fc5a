// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/fused/mlp_strategy.hpp"

#include <algorithm>
#include <array>

#include "host/fused/mlp_problem.hpp"
#include "host/linear/linear_strategy.hpp"

namespace wide {

namespace {

constexpr int kFewestWarps = 4;  ///< that load weights, if not all of them have rows

/// Threads that a multiprocessor has registers for. Its schedulers have 16,384 each, a warp by what
/// ptxas 13.0 makes of the kernels 96 times 32 (fp32; tf32 up to 8.9), or 104 times (tf32 on 9.0).
int64_t threads_at_once(const kernels::MlpFusedNet& net, kernels::MlpMath math,
                        const DeviceInfo& device) {
  if (math == kernels::MlpMath::fp32) return 640;
  if (math == kernels::MlpMath::tf32) return device.compute_capability < 90 ? 640 : 512;
  const int width = kernels::mlp_register_width(net);
  return width == 64 ? 512 : width == 128 ? 384 : 256;
}

/// Minimises the total time in rounds of rows: a block that begins waits for its weights.
int64_t choose_blocks(int64_t members, int64_t tiles, int64_t warps, int64_t at_once) {
  constexpr int64_t kRoundsToBegin = 2, kMaxWaves = 8;
  const int64_t most = std::min((tiles - 1) / warps + 1, kMaxWaves * at_once / members + 1);
  int64_t best = 1, least = 0;
  for (int64_t blocks = 1; blocks <= most; ++blocks) {
    const int64_t rounds = (tiles - 1) / (blocks * warps) + 1;
    const int64_t waves = (members * blocks - 1) / at_once + 1;
    const int64_t takes = waves * (rounds + kRoundsToBegin);
    if (least == 0 || takes < least) best = blocks, least = takes;
  }
  return best;
}

std::string layers_reason(MlpStrategy strategy, const MlpProblem& problem,
                          const DeviceInfo& device) {
  const int64_t members = strategy == MlpStrategy::sequential ? 1 : problem.num_members;
  for (const LinearProblem& layer : mlp_layers(problem, members)) {
    const std::string name = mlp_layer_strategy(strategy, layer, device);
    const std::string reason =
        linear_unsupported_reason(*parse_linear_strategy(name, device.device.type), layer, device);
    if (!reason.empty()) return "linear by " + name + ": " + reason;
  }
  return "";
}

}  // namespace

std::string_view strategy_name(MlpStrategy strategy) {
  static constexpr std::array<std::string_view, 5> kNames{"sequential", "cublas_batched",
                                                          "layerwise", "fused", "wide"};
  return kNames[static_cast<size_t>(strategy)];
}

std::string mlp_layer_strategy(MlpStrategy strategy, const LinearProblem& layer,
                               const DeviceInfo& device) {
  if (strategy != MlpStrategy::layerwise) return std::string(strategy_name(strategy));
  return std::string(strategy_name(own_linear_kernel(layer, device)));
}

kernels::MlpMath mlp_math(Dtype dtype, bool allow_tf32) {
  using enum kernels::MlpMath;
  if (dtype == Dtype::fp32) return allow_tf32 ? tf32 : fp32;
  return dtype == Dtype::fp16 ? fp16 : bf16;
}

kernels::MlpFusedNet mlp_fused_net(const MlpProblem& p) {
  const std::vector<MlpLayerPlace> places = mlp_layer_places(p);
  const int64_t element = dtype_bytes(p.dtype);
  kernels::MlpFusedNet net{};
  net.num_layers = static_cast<int32_t>(places.size());
  for (size_t l = 0; l < places.size(); ++l) {
    kernels::MlpFusedLayer& layer = net.layers[l];
    layer.in = static_cast<int32_t>(p.widths[l]);
    layer.out = static_cast<int32_t>(p.widths[l + 1]);
    layer.bias = static_cast<int32_t>(places[l].bias * element);
    layer.weight = static_cast<int32_t>(places[l].weight * element);
    layer.row_bytes = static_cast<int32_t>(places[l].row * element);
    net.num_strips += (layer.out - 1) / kernels::kMlpStrip + 1;
  }
  net.bias_bytes = net.layers[0].weight;
  net.weight_bytes = static_cast<int32_t>(mlp_member_elements(p) * element) - net.bias_bytes;
  return net;
}

kernels::MlpFusedShape choose_mlp_fused_shape(const MlpProblem& p, const DeviceInfo& device,
                                              bool is_routed) {
  const kernels::MlpMath math = mlp_math(p.dtype, p.allow_tf32);
  const kernels::MlpFusedNet net = mlp_fused_net(p);
  const int64_t tiles = std::max<int64_t>(p.batch - 1, 0) / kernels::mlp_warp_rows(math) + 1;
  // Half of the members have more rows than the mean: up to twice of it in one round.
  const int wanted = static_cast<int>(
      std::clamp<int64_t>(is_routed ? 2 * tiles : tiles, kFewestWarps, kernels::kMaxMlpWarps));
  kernels::MlpFusedShape chosen{};
  // Prefers a ring to few warps, and few warps to a ring that loads nothing ahead.
  for (int warps = wanted; warps > 0 && chosen.warps == 0; warps /= 2) {
    for (const int slots : {0, kernels::kMaxMlpSlots, 3, 2}) {
      if (slots == 2 && warps > kFewestWarps) continue;
      const kernels::MlpFusedShape shape =
          kernels::mlp_fused_shape(net, math, warps, slots, is_routed);
      if (shape.shared_bytes > device.shared_bytes_per_block) continue;
      chosen = shape;
      break;
    }
  }
  if (chosen.warps == 0) return chosen;
  constexpr int64_t kSystemBytes = 1024;  // of a block's, since compute capability 8.0
  const int64_t by_memory =
      device.shared_bytes_per_multiprocessor / (chosen.shared_bytes + kSystemBytes);
  const int64_t resident = std::clamp<int64_t>(
      threads_at_once(net, math, device) / (32 * chosen.warps), 1, std::max<int64_t>(by_memory, 1));
  const int64_t at_once = std::max<int64_t>(resident * device.num_multiprocessors, 1);
  chosen.blocks_per_member =
      static_cast<int32_t>(choose_blocks(p.num_members, tiles, chosen.warps, at_once));
  return chosen;
}

std::string mlp_fused_reason(const MlpProblem& p, const DeviceInfo& device, bool is_routed) {
  const std::string device_reason = kernel_device_reason(device);
  if (!device_reason.empty()) return device_reason;
  const auto layers = static_cast<int64_t>(p.widths.size()) - 1;
  if (layers > kernels::kMaxMlpLayers) {
    return "it takes up to " + std::to_string(kernels::kMaxMlpLayers) + " layers, there are " +
           std::to_string(layers);
  }
  const int64_t widest = *std::max_element(p.widths.begin(), p.widths.end());
  if (widest > kernels::kMaxMlpWidth) {
    return "it takes widths up to " + std::to_string(kernels::kMaxMlpWidth) + ", widths is " +
           mlp_widths_text(p);
  }
  if (choose_mlp_fused_shape(p, device, is_routed).warps == 0) {
    const kernels::MlpFusedShape least = kernels::mlp_fused_shape(
        mlp_fused_net(p), mlp_math(p.dtype, p.allow_tf32), 1, 2, is_routed);
    return "widths " + mlp_widths_text(p) + " need " + std::to_string(least.shared_bytes) +
           " bytes of shared memory at the least, " + device.name + " has " +
           std::to_string(device.shared_bytes_per_block);
  }
  return "";
}

std::string mlp_unsupported_reason(MlpStrategy strategy, const MlpProblem& problem,
                                   const DeviceInfo& device) {
  const std::string reason = other_device_reason(strategy_name(strategy), device);
  if (!reason.empty()) return reason;
  return strategy == MlpStrategy::fused ? mlp_fused_reason(problem, device, false)
                                        : layers_reason(strategy, problem, device);
}

MlpChoice choose_mlp_strategy(const MlpProblem& problem, const DeviceInfo& device,
                              std::string_view name, std::span<const VerifiedStrategy> verified,
                              const Tuning& tuning) {
  using enum MlpStrategy;
  using enum DeviceType;
  static constexpr StrategyRow<MlpStrategy, MlpProblem> kTable[] = {
      {fused, cuda, false, "all layers of all members in one launch"},
      {layerwise, cuda, false, "one launch a layer"},
      {cublas_batched, cuda, true, "one vendor call a layer"},
      {sequential, cuda, false, "member after member"},
      {wide, cpu, false, "layer by layer, members share the threads"},
      {sequential, cpu, false, "member after member"},
  };
  return choose_strategy<MlpStrategy, MlpProblem>(
      {"mlp", device, name, verified_by(verified, "mlp", device), "", tuning}, kTable, problem,
      mlp_unsupported_reason);
}

}  // namespace wide
