// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The strategies of routed_linear by name, what each of them cannot run, and what "auto" is.
#include "host/linear/routed_linear_strategy.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "host/core/hopper.hpp"
#include "host/linear/routed_linear_problem.hpp"
#include "kernels/common/grid_blocks.hpp"
#include "kernels/linear/routed_linear_params.hpp"

namespace wide {

namespace {

/// On average a member, for wgmma. Per 64 inputs and 256 outputs, c rows of a member cost wgmma
/// 128 (256 ceil(c / 128) + c) bytes from L2, tensor_core 128 (256 ceil(c / 64) + 4 c). Of fewer
/// rows than these, nearly all bytes are weights, and smaller blocks spread them better.
constexpr int64_t kRoutedWgmmaRows = 64;

/// Where these are few enough, wgmma's larger ones are, too.
bool has_too_many_blocks(const RoutedLinearProblem& problem) {
  using namespace kernels;
  // Their sum fits in 64 bits.
  if (problem.num_members > kMaxGridBlocks) return true;
  const int64_t slots = routed_slots(problem.num_rows, problem.num_members, kRoutedTile);
  const int64_t tiles_n = (problem.out_features - 1) / kRoutedTileN + 1;
  return block_product({slots, tiles_n}) > kMaxGridBlocks ||
         block_product({int64_t{kRoutedGroup}, tiles_n}) > kMaxGridBlocks;
}

std::string routed_wgmma_reason(const RoutedLinearProblem& p, const DeviceInfo& device) {
  std::string reason = wgmma_device_reason(device);
  if (!reason.empty()) return reason;
  if (p.dtype == Dtype::fp32) return "it multiplies fp16 and bf16, dtype is fp32";
  constexpr int64_t kVector = 8, kStage = 64;  // elements
  if (rows_of_x(p) > 1 && p.x_row_stride % kVector != 0) {
    return "x has row stride " + std::to_string(p.x_row_stride) +
           ", its rows are copied 16 bytes at a time: it needs a multiple of 8 elements; "
           "tensor_core takes any";
  }
  reason =
      tensor_map_reason("weight", p.weight, p.out_features, p.num_members, p.in_features, kVector);
  if (!reason.empty()) return reason;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const int64_t outputs = tile_n(choose_routed_wgmma_tile(p, device));
  if (p.in_features > kMost - kStage || p.out_features > kMost / outputs * outputs) {
    return "coordinates of its tiles, and of what lies past the end, are 32 bits wide";
  }
  return "";
}

/// Tiles of a routing as it is expected: of a member's last one, half.
double expected_routed_tiles(const RoutedLinearProblem& p, int64_t outputs) {
  const auto rows = static_cast<double>(p.num_rows), members = static_cast<double>(p.num_members);
  const double tiles_n =
      std::ceil(static_cast<double>(p.out_features) / static_cast<double>(outputs));
  return std::min(rows, rows / kernels::kRoutedWgmmaTile + members / 2) * tiles_n;
}

/// Why the strategy cannot read weights of this format; empty where it can.
std::string routed_format_reason(RoutedLinearStrategy strategy,
                                 const RoutedLinearProblem& problem) {
  const bool is_weight_only = strategy == RoutedLinearStrategy::weight_only;
  if (!is_quantized(problem)) {
    return is_weight_only ? "it is for quantised weights, these are packed" : "";
  }
  if (!is_weight_only && strategy != RoutedLinearStrategy::sequential) {
    return "it reads packed weights, theirs is format " +
           std::string(weight_format_name(problem.weight_format)) +
           "; weight_only and sequential read quantised ones";
  }
  if (problem.dtype == Dtype::fp32) return "it multiplies fp16 and bf16, dtype is fp32";
  return "";
}

}  // namespace

std::string_view strategy_name(RoutedLinearStrategy strategy) {
  static constexpr std::array<std::string_view, 6> kNames{
      "sequential", "simt", "tensor_core", "wgmma", "weight_only", "wide"};
  return kNames[static_cast<size_t>(strategy)];
}

kernels::LinearWgmmaTile choose_routed_wgmma_tile(const RoutedLinearProblem& problem,
                                                  const DeviceInfo& device) {
  using enum kernels::LinearWgmmaTile;
  // A block's time is that of what it reads of x and weight, row by row, from L2: more than that of
  // its products (kernels/linear/README.md).
  const auto time = [&](kernels::LinearWgmmaTile tile) {
    const double blocks = std::max(device.num_multiprocessors, 1);
    return std::ceil(expected_routed_tiles(problem, tile_n(tile)) / blocks) *
           static_cast<double>(tile_m(tile) + tile_n(tile));
  };
  return time(m128n128) < time(m128n256) ? m128n128 : m128n256;
}

bool is_routed_wgmma_expected_to_win(const RoutedLinearProblem& problem, const DeviceInfo& device) {
  const int64_t outputs = tile_n(choose_routed_wgmma_tile(problem, device));
  return problem.num_rows / problem.num_members >= kRoutedWgmmaRows &&
         2 * expected_routed_tiles(problem, outputs) >= device.num_multiprocessors;
}

std::string routed_linear_unsupported_reason(RoutedLinearStrategy strategy,
                                             const RoutedLinearProblem& problem,
                                             const DeviceInfo& device) {
  const std::string reason = other_device_reason(strategy_name(strategy), device);
  if (!reason.empty()) return reason;
  if (device.device.type == DeviceType::cpu || is_empty(problem)) return "";
  const std::string device_reason = kernel_device_reason(device);
  if (!device_reason.empty()) return device_reason;
  const std::string format_reason = routed_format_reason(strategy, problem);
  if (!format_reason.empty()) return format_reason;
  if (strategy == RoutedLinearStrategy::tensor_core && problem.dtype == Dtype::fp32 &&
      !problem.allow_tf32) {
    return "tensor cores multiply fp32 as tf32, which allow_tf32 does not allow";
  }
  if (strategy == RoutedLinearStrategy::wgmma) {
    const std::string wgmma_reason = routed_wgmma_reason(problem, device);
    if (!wgmma_reason.empty()) return wgmma_reason;
  }
  if (has_too_many_blocks(problem)) {
    return "the outputs of any routing have more than 2^31 - 1 tiles of 64 rows by 64";
  }
  return "";
}

RoutedLinearChoice choose_routed_linear_strategy(const RoutedLinearProblem& problem,
                                                 const DeviceInfo& device,
                                                 std::span<const VerifiedStrategy> verified,
                                                 std::string_view name, const Tuning& tuning) {
  using enum RoutedLinearStrategy;
  using enum DeviceType;
  static constexpr std::string_view kOneLaunch = "one launch for the rows of all members";
  static constexpr StrategyRow<RoutedLinearStrategy, RoutedLinearProblem> kTable[] = {
      {weight_only, cuda, false, kOneLaunch},
      {wgmma, cuda, false,
       "one launch for the rows of all members, on average 64 or more of each: tiles of 128 read "
       "weights and x less often",
       is_routed_wgmma_expected_to_win},
      {tensor_core, cuda, false, kOneLaunch},
      {simt, cuda, false, kOneLaunch},
      {sequential, cuda, false, "one launch per member"},
      {wide, cpu, false, "the blocks of all members share the threads"},
      {sequential, cpu, false, "member after member"},
  };
  return choose_strategy<RoutedLinearStrategy, RoutedLinearProblem>(
      {"routed_linear", device, name, verified_by(verified, "routed_linear", device),
       is_quantized(problem) ? "weight_only" : "simt", tuning},
      kTable, problem, routed_linear_unsupported_reason);
}

}  // namespace wide
