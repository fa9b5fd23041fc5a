// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Policies of strategies whose library's heuristic offers several algorithms: "h0" is its best
// guess, "h1" the next. The list is the same for the same library, device and problem.
#pragma once

#include <algorithm>
#include <array>
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

/// Those of strategies that call cuDNN by a plan.
inline constexpr std::array<std::string_view, 8> kCudnnPolicies{"h0", "h1", "h2", "h3",
                                                                "h4", "h5", "h6", "h7"};

/// The place in cuDNN's list; of no policy its best guess's.
inline int cudnn_place(std::string_view policy) {
  return std::max(0, parse_heuristic_policy(policy, static_cast<int>(kCudnnPolicies.size())));
}

/// Why a strategy, which has cuDNN's policies or none, has no such policy; empty where it has, or
/// no policy is asked for.
inline std::string cudnn_policy_reason(std::string_view strategy, bool has_policies,
                                       std::string_view policy) {
  if (policy.empty()) return "";
  if (!has_policies) {
    return "policy \"" + std::string(policy) + "\", expected none: " + std::string(strategy) +
           " has none";
  }
  constexpr int kCount = static_cast<int>(kCudnnPolicies.size());
  return parse_heuristic_policy(policy, kCount) >= 0 ? ""
                                                     : unknown_heuristic_policy(policy, kCount);
}

/// Names the policy that the call of cuDNN's in a StrategyChoice has: the tuning cache's, which is
/// there already, or the one asked for.
template <class Choice>
void tell_cudnn_policy(Choice& choice, std::string_view asked) {
  choice.policy = heuristic_policy(cudnn_place(choice.policy.empty() ? asked : choice.policy));
  choice.explain += "; policy " + choice.policy;
}

}  // namespace wide
