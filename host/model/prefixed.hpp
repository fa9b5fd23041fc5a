// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// One member's parameters among others, told by the beginning of their names.
#pragma once

#include <functional>
#include <iterator>
#include <string>
#include <string_view>

#include "host/core/check.hpp"
#include "host/core/text.hpp"
#include "wide/graph.hpp"

namespace wide {

/// The views of those whose names begin with `prefix`, by the rest of these. Throws where there is
/// none, unless the prefix is empty. `name` is a member of an entry.
template <class Entries, class Name, class View>
MemberParameters prefixed(const Entries& entries, Name name, const View& view_of,
                          std::string_view prefix) {
  MemberParameters found;
  for (const auto& entry : entries) {
    const std::string& full = std::invoke(name, entry);
    if (full.starts_with(prefix)) found.emplace(full.substr(prefix.size()), view_of(entry));
  }
  WIDE_REQUIRE(
      !found.empty() || prefix.empty(),
      "parameters: prefix is \"" + std::string(prefix) + "\", expected the beginning of one of " +
          counted(std::ssize(entries), "name") +
          (std::empty(entries) ? ""
                               : ", such as \"" + std::invoke(name, *std::begin(entries)) + "\""));
  return found;
}

}  // namespace wide
