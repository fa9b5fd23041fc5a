// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Enumerators by their names, and all of them.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace wide {

/// All enumerators from 0 on, in order, as a std::array. `kNameOf` is a switch without a default,
/// so that compilers tell of one that it lacks; the first number that it calls "?" ends them.
template <class Enum, std::string_view (*kNameOf)(Enum)>
constexpr auto enumerators() {
  constexpr size_t kCount = [] {
    size_t count = 0;
    while (kNameOf(static_cast<Enum>(count)) != "?") ++count;
    return count;
  }();
  std::array<Enum, kCount> all{};
  for (size_t i = 0; i < kCount; ++i) all[i] = static_cast<Enum>(i);
  return all;
}

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
