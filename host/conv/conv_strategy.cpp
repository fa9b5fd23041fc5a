// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The one list of conv's strategies, and the choice among them.
#include "host/conv/conv_strategy.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "host/conv/conv_implicit_gemm.hpp"
#include "host/conv/conv_problem.hpp"
#include "host/conv/conv_wgmma.hpp"
#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"

namespace wide {

namespace {

using enum DeviceType;

std::string runs_anything(const ConvProblem&, const DeviceInfo&) {
  return "";
}
bool always(const ConvProblem&, const DeviceInfo&) {
  return true;
}

/// cuDNN's kernels of many groups can be slower than as many calls of one: worth it where a member
/// alone, in tiles of a middling size, leaves multiprocessors idle.
bool leaves_multiprocessors_idle(const ConvProblem& problem, const DeviceInfo& device) {
  constexpr double kPixels = 128, kChannels = 64;
  const PerAxis size = conv_output_size(problem);
  const double pixels = static_cast<double>(problem.batch) * static_cast<double>(size.height) *
                        static_cast<double>(size.width);
  const double tiles = std::ceil(pixels / kPixels) *
                       std::ceil(static_cast<double>(problem.out_channels) / kChannels);
  return problem.num_members > 1 && tiles < device.num_multiprocessors;
}

/// So few channels that no matrix unit is worth filling; images, whose first layer sums over many
/// taps of three, are another matter.
bool is_narrow(const ConvProblem& problem, const DeviceInfo& device) {
  constexpr int64_t kNarrow = 8;
  const bool fills_matrices = conv_implicit_gemm_unsupported_reason(problem, device).empty() &&
                              conv_implicit_gemm_is_expected_to_win(problem, device);
  return problem.in_channels / problem.groups < kNarrow && !fills_matrices;
}

constexpr std::string_view kOneCall = "one call of cuDNN's for all members";

constexpr ConvStrategy kStrategies[] = {
    {"wgmma", cuda, false, conv_wgmma_unsupported_reason, conv_wgmma_is_expected_to_win,
     "one launch; taps are boxes of x that tensor memory copies bring; verified", make_conv_wgmma},
    {"pointwise", cuda, false, conv_pointwise_unsupported_reason, always,
     "a matrix product for all members, epilogue fused; verified", make_conv_pointwise},
    {"direct", cuda, false, conv_direct_unsupported_reason, is_narrow,
     "few channels a group, one launch; verified", make_conv_direct},
    {"implicit_gemm", cuda, false, conv_implicit_gemm_unsupported_reason,
     conv_implicit_gemm_is_expected_to_win, "one launch fills tiles on tensor cores",
     make_conv_implicit_gemm},
    {"grouped", cuda, true, conv_grouped_unsupported_reason, leaves_multiprocessors_idle, kOneCall,
     make_conv_grouped},
    {"channels_last", cuda, true, conv_channels_last_unsupported_reason,
     leaves_multiprocessors_idle, kOneCall, make_conv_grouped},
    {"sequential", cuda, false, conv_direct_unsupported_reason, always, "member after member",
     make_conv_sequential},
    {"wide", cpu, false, runs_anything, always, "the tiles of all members share the threads",
     make_conv_cpu_wide},
    {"sequential", cpu, false, runs_anything, always, "member after member",
     make_conv_cpu_sequential},
};

/// conv1d and conv2d run the same kernels: each proves what the other does not.
bool is_proved(const ConvStrategy& strategy, const DeviceInfo& device,
               std::span<const VerifiedStrategy> verified) {
  if (strategy.device == cpu || strategy.is_vendors) return true;
  return is_verified_in(verified, "conv1d", strategy.name, device.compute_capability) &&
         is_verified_in(verified, "conv2d", strategy.name, device.compute_capability);
}

/// What "auto" would have looked at, had a device proved it.
std::string unverified_text(const DeviceInfo& device, const std::string& unproved) {
  if (unproved.empty()) return "";
  return "; unverified on compute capability " + std::to_string(device.compute_capability) + ": " +
         unproved;
}

ConvChoice choose_automatically(const ConvProblem& problem, const DeviceInfo& device,
                                std::span<const VerifiedStrategy> verified,
                                const ConvVendorRefusal& refusal) {
  std::string unproved, reasons, refusals;
  std::vector<const ConvStrategy*> slower;  // for want of another
  const auto is_refused = [&](const ConvStrategy& strategy) {
    const std::string reason = strategy.is_vendors ? refusal(strategy) : "";
    if (!reason.empty()) refusals += "; " + std::string(strategy.name) + ": " + reason;
    return !reason.empty();
  };
  for (const ConvStrategy& strategy : kStrategies) {
    if (strategy.device != device.device.type) continue;
    const std::string reason = conv_unsupported_reason(strategy, problem, device);
    if (!reason.empty()) {
      reasons += "; " + std::string(strategy.name) + ": " + reason;
    } else if (strategy.name != "sequential" && !is_proved(strategy, device, verified)) {
      unproved += (unproved.empty() ? "" : ", ") + std::string(strategy.name);
    } else if (!strategy.is_expected_to_win(problem, device)) {
      slower.push_back(&strategy);
    } else if (!is_refused(strategy)) {
      return {&strategy, std::string(strategy.name) + ": " + std::string(strategy.why) +
                             unverified_text(device, unproved) + refusals};
    }
  }
  for (const ConvStrategy* strategy : slower) {
    if (is_refused(*strategy)) continue;
    return {strategy, std::string(strategy->name) + ": others cannot run this problem" +
                          unverified_text(device, unproved) + reasons + refusals};
  }
  throw_unsupported("conv: no strategy for \"auto\"" + unverified_text(device, unproved) + reasons +
                    refusals);
}

}  // namespace

std::span<const ConvStrategy> conv_strategies() {
  return kStrategies;
}

std::string conv_unsupported_reason(const ConvStrategy& strategy, const ConvProblem& problem,
                                    const DeviceInfo& device) {
  if (strategy.device != device.device.type) {
    return "it runs on " + std::string(strategy.device == cpu ? "the CPU" : "CUDA devices") +
           " only";
  }
  return is_empty(problem) ? "" : strategy.unsupported_reason(problem, device);
}

ConvChoice choose_conv_strategy(const ConvProblem& problem, const DeviceInfo& device,
                                std::string_view name, std::span<const VerifiedStrategy> verified,
                                const ConvVendorRefusal& refusal) {
  std::vector<std::string_view> known{"auto"};
  for (const ConvStrategy& strategy : kStrategies) {
    if (strategy.device == device.device.type) known.push_back(strategy.name);
  }
  require_known_strategy("conv", name, known);
  if (name == "auto") return choose_automatically(problem, device, verified, refusal);
  const auto* strategy = std::find_if(
      std::begin(kStrategies), std::end(kStrategies), [&](const ConvStrategy& candidate) {
        return candidate.name == name && candidate.device == device.device.type;
      });
  const std::string reason = conv_unsupported_reason(*strategy, problem, device);
  if (!reason.empty()) {
    throw_unsupported("conv: strategy " + std::string(name) +
                      " cannot run this problem: " + reason);
  }
  return {strategy, std::string(name) + ": asked for by name"};
}

}  // namespace wide
