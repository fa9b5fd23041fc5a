// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which strategy runs a layernorm: a pure function of problem, device and what has been verified.
#pragma once

#include <string>

#include "wide/device.hpp"
#include "wide/layernorm.hpp"

namespace wide {

enum class LayernormStrategy : uint8_t { sequential, wide };

std::string_view strategy_name(LayernormStrategy strategy);

struct LayernormChoice {
  LayernormStrategy strategy = LayernormStrategy::sequential;
  std::string explain;
};

/// `wide_is_verified`: on this device's compute capability; of no matter on the CPU. Throws
/// invalid_argument for an unknown name.
LayernormChoice choose_layernorm_strategy(const LayernormProblem& problem, const DeviceInfo& device,
                                          std::string_view name, bool wide_is_verified);

}  // namespace wide
