// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The one list of conv's strategies, and the choice among them.
#include "host/conv/conv_strategy.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "host/conv/conv_implicit_gemm.hpp"
#include "host/conv/conv_problem.hpp"
#include "host/conv/conv_wgmma.hpp"
#include "host/core/heuristic_policy.hpp"

namespace wide {

namespace {

using enum DeviceType;

std::string runs_anything(const ConvProblem&, const DeviceInfo&) {
  return "";
}
bool always(const ConvProblem&, const DeviceInfo&) {
  return true;
}

/// cuDNN's kernels of many groups can be slower than one call per member: they pay off where a
/// member alone, in tiles of medium size, leaves multiprocessors idle.
bool leaves_multiprocessors_idle(const ConvProblem& problem, const DeviceInfo& device) {
  constexpr double kPixels = 128, kChannels = 64;
  const double tiles = std::ceil(static_cast<double>(conv_positions(problem)) / kPixels) *
                       std::ceil(static_cast<double>(problem.out_channels) / kChannels);
  return problem.num_members > 1 && tiles < device.num_multiprocessors;
}

/// Too few channels to fill a matrix unit; except images, whose first layer sums over many taps of
/// three channels.
bool is_narrow(const ConvProblem& problem, const DeviceInfo& device) {
  constexpr int64_t kNarrow = 8;
  const bool fills_matrices = conv_implicit_gemm_unsupported_reason(problem, device).empty() &&
                              conv_implicit_gemm_is_expected_to_win(problem, device);
  return problem.in_channels / problem.groups < kNarrow && !fills_matrices;
}

constexpr std::string_view kOneCall = "one call of cuDNN's for all members";

constexpr ConvStrategy kStrategies[] = {
    {"wgmma", cuda, false, conv_wgmma_unsupported_reason, conv_wgmma_is_expected_to_win,
     "one launch; taps are boxes of x that tensor memory copies bring", make_conv_wgmma},
    {"pointwise", cuda, false, conv_pointwise_unsupported_reason, always,
     "a matrix product for all members, epilogue fused", make_conv_pointwise},
    {"direct", cuda, false, conv_direct_unsupported_reason, is_narrow,
     "few channels a group, one launch", make_conv_direct},
    {"implicit_gemm", cuda, false, conv_implicit_gemm_unsupported_reason,
     conv_implicit_gemm_is_expected_to_win, "one launch fills tiles on tensor cores",
     make_conv_implicit_gemm},
    {"grouped", cuda, true, conv_grouped_unsupported_reason, leaves_multiprocessors_idle, kOneCall,
     nullptr, make_conv_grouped},
    {"channels_last", cuda, true, conv_channels_last_unsupported_reason,
     leaves_multiprocessors_idle, kOneCall, nullptr, make_conv_grouped},
    {"sequential", cuda, true, conv_direct_unsupported_reason, always,
     "one call of cuDNN's a member", make_conv_sequential},
    {"direct", cuda, false, conv_direct_unsupported_reason, always,
     "one launch of what cuDNN does not take", make_conv_direct},
    {"sequential", cuda, false, conv_direct_unsupported_reason, always, "member after member",
     make_conv_sequential},
    {"wide", cpu, false, runs_anything, always, "the tiles of all members share the threads",
     make_conv_cpu_wide},
    {"sequential", cpu, false, runs_anything, always, "member after member",
     make_conv_cpu_sequential},
};

/// conv1d and conv2d run the same kernels: each proves what the other does not. conv3d proves
/// volumes.
std::function<bool(std::string_view)> proved_by(std::span<const VerifiedStrategy> verified,
                                                const DeviceInfo& device, bool are_volumes) {
  if (are_volumes) return verified_by(verified, "conv3d", device);
  return [conv1d = verified_by(verified, "conv1d", device),
          conv2d = verified_by(verified, "conv2d", device)](std::string_view strategy) {
    return conv1d(strategy) && conv2d(strategy);
  };
}

}  // namespace

std::span<const ConvStrategy> conv_strategies() {
  return kStrategies;
}

std::string_view strategy_name(const ConvStrategy* strategy) {
  return strategy->name;
}

const ConvStrategy* find_conv_strategy(std::string_view name, DeviceType device) {
  const auto* const found = std::find_if(
      std::begin(kStrategies), std::end(kStrategies),
      [&](const ConvStrategy& one) { return one.name == name && one.device == device; });
  return found == std::end(kStrategies) ? nullptr : found;
}

std::string conv_policy_reason(const ConvStrategy& strategy, std::string_view policy) {
  return cudnn_policy_reason(strategy.name, strategy.make_at != nullptr, policy);
}

ConvRunner make_conv_runner(const ConvStrategy& strategy, const Context& context,
                            const ConvProblem& problem, std::string_view policy) {
  if (strategy.make_at == nullptr) return strategy.make(context, problem);
  return strategy.make_at(context, problem, cudnn_place(policy));
}

std::string conv_unsupported_reason(const ConvStrategy& strategy, const ConvProblem& problem,
                                    const DeviceInfo& device) {
  if (strategy.device != device.device.type) {
    return "it runs on " + std::string(strategy.device == cpu ? "the CPU" : "CUDA devices") +
           " only";
  }
  return is_empty(problem) ? "" : strategy.unsupported_reason(problem, device);
}

bool conv_takes_direct(const ConvProblem& problem, const DeviceInfo& device,
                       std::string_view automatic) {
  return automatic == kAutoUnverified ||
         proved_by(verified_strategies(), device, is_volume(problem))("direct");
}

std::string conv_direct_text(const ConvProblem& problem, const DeviceInfo& device) {
  const auto is_proved = proved_by(verified_strategies(), device, is_volume(problem));
  return own_kernel_text("direct", is_proved("direct"), device);
}

ConvChoice choose_conv_strategy(const ConvProblem& problem, const DeviceInfo& device,
                                std::string_view name, std::span<const VerifiedStrategy> verified,
                                const ConvVendorRefusal& refusal, const Tuning& tuning) {
  std::vector<StrategyRow<const ConvStrategy*, ConvProblem>> table;
  for (const ConvStrategy& one : kStrategies) {
    table.push_back({&one, one.device, one.is_vendors, one.why, one.is_expected_to_win});
  }
  return choose_strategy<const ConvStrategy*, ConvProblem>(
      {kConvName, device, name, proved_by(verified, device, is_volume(problem)), "", tuning,
       [&](std::string_view strategy, std::string_view policy) {
         return conv_policy_reason(*find_conv_strategy(strategy, device.device.type), policy);
       }},
      table, problem,
      [](const ConvStrategy* strategy, const ConvProblem& p, const DeviceInfo& on) {
        return conv_unsupported_reason(*strategy, p, on);
      },
      [&](const ConvStrategy* strategy, std::string_view policy) {
        return refusal(*strategy, policy);
      });
}

}  // namespace wide
