// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Writing JSON: values that are not finite or unknown become null, and text that is no UTF-8 is
// replaced.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace wide::bench {

inline nlohmann::ordered_json json_number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? nlohmann::ordered_json(*value)
                                        : nlohmann::ordered_json(nullptr);
}
inline nlohmann::ordered_json json_number(double value) {
  return json_number(std::optional(value));
}
/// For integers and booleans: a missing value becomes null.
template <class Value>
nlohmann::ordered_json json_or_null(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}
/// For quantities that cannot be zero: zero stands for "unknown".
inline nlohmann::ordered_json json_known(double value) {
  return value > 0 ? json_number(value) : nlohmann::ordered_json(nullptr);
}
inline nlohmann::ordered_json json_known(int64_t value) {
  return value > 0 ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}
inline nlohmann::ordered_json json_text(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

/// The document as text; an indentation of -1: on one line.
inline std::string dumped(const nlohmann::ordered_json& document, int indent = 1) {
  return document.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace wide::bench
