// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Policies of strategies whose library's heuristic offers several algorithms: "h0" is its best
// guess, "h1" the next. The list is the same for the same library, device and problem.
#pragma once

#include <charconv>
#include <string>
#include <string_view>

namespace wide {

inline std::string heuristic_policy(int place) {
  return "h" + std::to_string(place);
}

/// The place; -1 for anything but the names of places below `count`.
inline int parse_heuristic_policy(std::string_view policy, int count) {
  int place = -1;
  if (!policy.starts_with('h')) return -1;
  const char* const last = policy.data() + policy.size();
  const auto [end, error] = std::from_chars(policy.data() + 1, last, place);
  const bool is_place = error == std::errc() && end == last && place >= 0 && place < count;
  return is_place && heuristic_policy(place) == policy ? place : -1;
}

/// "policy "m16" is unknown, expected h0 to h7"
inline std::string unknown_heuristic_policy(std::string_view policy, int count) {
  return "policy \"" + std::string(policy) + "\" is unknown, expected h0 to " +
         heuristic_policy(count - 1);
}

}  // namespace wide
