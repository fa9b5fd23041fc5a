// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The strategies of routed_linear by name, what each of them cannot run, and what "auto" is.
#include "host/linear/routed_linear_strategy.hpp"

#include <array>

#include "host/linear/routed_linear_problem.hpp"
#include "kernels/common/grid_blocks.hpp"
#include "kernels/linear/routed_linear_params.hpp"

namespace wide {

namespace {

bool has_too_many_blocks(const RoutedLinearProblem& problem) {
  using namespace kernels;
  // Their sum fits in 64 bits.
  if (problem.num_members > kMaxGridBlocks) return true;
  const int64_t slots = routed_slots(problem.num_rows, problem.num_members, kRoutedTile);
  const int64_t tiles_n = (problem.out_features - 1) / kRoutedTileN + 1;
  return block_product({slots, tiles_n}) > kMaxGridBlocks ||
         block_product({int64_t{kRoutedGroup}, tiles_n}) > kMaxGridBlocks;
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
  static constexpr std::array<std::string_view, 5> kNames{"sequential", "simt", "tensor_core",
                                                          "weight_only", "wide"};
  return kNames[static_cast<size_t>(strategy)];
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
