// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Functions of two numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "wide/parse_enumerator.hpp"

namespace wide {

enum class BinaryFunction : uint8_t {
  add,       ///< x + other
  subtract,  ///< x - other
  multiply,  ///< x * other
  divide,    ///< x / other
};

constexpr std::string_view binary_function_name(BinaryFunction function) {
  switch (function) {
    case BinaryFunction::add:
      return "add";
    case BinaryFunction::subtract:
      return "subtract";
    case BinaryFunction::multiply:
      return "multiply";
    case BinaryFunction::divide:
      return "divide";
  }
  return "?";
}

inline constexpr auto kAllBinaryFunctions = enumerators<BinaryFunction, binary_function_name>();

constexpr std::optional<BinaryFunction> parse_binary_function(std::string_view name) {
  return parse_enumerator(name, kAllBinaryFunctions, binary_function_name);
}

}  // namespace wide
