// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The choice of primitives that have one kernel: `wide` runs it for all members at once,
// `sequential` member by member, and where cuDNN has the primitive, `cudnn` is its call. A pure
// function of the device and of what has been verified.
#pragma once

#include <string>
#include <string_view>

#include "wide/device.hpp"

namespace wide {

enum class WideStrategy : uint8_t { sequential, wide, cudnn };

std::string_view strategy_name(WideStrategy strategy);

struct WideChoice {
  WideStrategy strategy = WideStrategy::sequential;
  std::string explain;
};

/// `wide_is_verified`: on this device's compute capability; of no matter on the CPU. `has_cudnn`:
/// whether there is such a strategy on CUDA; it runs when it is asked for by name. Throws
/// invalid_argument for an unknown name.
WideChoice choose_wide_strategy(std::string_view primitive, const DeviceInfo& device,
                                std::string_view name, bool wide_is_verified,
                                bool has_cudnn = false);

}  // namespace wide
