// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which strategy runs a convolution: pure functions of problem, device and what was verified.
#pragma once

#include <span>
#include <string>

#include "host/conv/conv_run.hpp"
#include "host/core/verified.hpp"
#include "wide/device.hpp"

namespace wide {

struct ConvStrategy {
  std::string_view name;
  DeviceType device;
  bool is_vendors;  ///< needs no evidence of ours
  /// Why it cannot run the (completed, not empty) problem there; empty where it can.
  std::string (*unsupported_reason)(const ConvProblem& problem, const DeviceInfo& device);
  /// Whether "auto" takes it where it can run and is proved; `why` goes into the explanation.
  bool (*is_expected_to_win)(const ConvProblem& problem);
  std::string_view why;
  ConvRunner (*make)(const Context& context, const ConvProblem& problem);
};

/// All, in the order in which "auto" prefers them; `sequential` is the last of each device.
std::span<const ConvStrategy> conv_strategies();

/// Why the strategy cannot run the problem on the device; empty where it can.
std::string conv_unsupported_reason(const ConvStrategy& strategy, const ConvProblem& problem,
                                    const DeviceInfo& device);

struct ConvChoice {
  const ConvStrategy* strategy = nullptr;
  std::string explain;
};

/// The strategy of that name, or for "auto" the first that can run, is expected to win and is the
/// vendor's, the CPU's or in `verified` under conv1d and conv2d; else `sequential`. Throws
/// invalid_argument for an unknown name, unsupported with the reason for one that cannot run.
ConvChoice choose_conv_strategy(const ConvProblem& problem, const DeviceInfo& device,
                                std::string_view name, std::span<const VerifiedStrategy> verified);

}  // namespace wide
