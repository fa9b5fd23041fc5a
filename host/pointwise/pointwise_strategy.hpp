// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which strategy runs a primitive of this family: a pure function of the device and of what has
// been verified, the same for all of them.
#pragma once

#include <string>

#include "wide/device.hpp"

namespace wide {

enum class PointwiseStrategy : uint8_t { sequential, wide };

std::string_view strategy_name(PointwiseStrategy strategy);

struct PointwiseChoice {
  PointwiseStrategy strategy = PointwiseStrategy::sequential;
  std::string explain;
};

/// `wide_is_verified`: the primitive's, on this device's compute capability; of no matter on the
/// CPU. Throws invalid_argument for an unknown name.
PointwiseChoice choose_pointwise_strategy(std::string_view primitive, const DeviceInfo& device,
                                          std::string_view name, bool wide_is_verified);

}  // namespace wide
