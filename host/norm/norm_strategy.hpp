// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which strategy runs a norm: all norms have the same two, and choose between them by the same
// pure function of device and what has been verified.
#pragma once

#include <string>
#include <string_view>

#include "wide/device.hpp"

namespace wide {

enum class NormStrategy : uint8_t { sequential, wide };

std::string_view strategy_name(NormStrategy strategy);

struct NormChoice {
  NormStrategy strategy = NormStrategy::sequential;
  std::string explain;
};

/// `wide_is_verified`: on this device's compute capability; of no matter on the CPU. Throws
/// invalid_argument for an unknown name.
NormChoice choose_norm_strategy(std::string_view primitive, const DeviceInfo& device,
                                std::string_view name, bool wide_is_verified);

}  // namespace wide
