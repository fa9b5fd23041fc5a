// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Writing JSON: what is not finite or not known is null.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace wide::bench {

inline nlohmann::ordered_json json_number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? nlohmann::ordered_json(*value)
                                        : nlohmann::ordered_json(nullptr);
}

}  // namespace wide::bench
