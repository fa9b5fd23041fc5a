// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Enumerators by their names.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace wide {

/// The one of `all` that `name_of` gives this name; none if there is none.
template <class Enum, size_t kCount>
constexpr std::optional<Enum> parse_enumerator(std::string_view name,
                                               const std::array<Enum, kCount>& all,
                                               std::string_view (*name_of)(Enum)) {
  for (const Enum enumerator : all) {
    if (name_of(enumerator) == name) return enumerator;
  }
  return std::nullopt;
}

}  // namespace wide
