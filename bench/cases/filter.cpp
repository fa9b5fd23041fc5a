// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/cases/filter.hpp"

#include <algorithm>

#include "host/core/check.hpp"

namespace wide::bench {

namespace {

constexpr size_t kLongestFilter = 1000;
constexpr int64_t kDeepestFilter = 50;  // of groups: more is generated, not handwritten

/// At least as deep as groups are nested: parentheses in brackets are counted, too.
int64_t depth_of_groups(const std::string& text) {
  int64_t depth = 0, deepest = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '(') {
      deepest = std::max(deepest, ++depth);
    } else if (text[i] == ')' && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

std::regex parse_filter(const std::string& text) {
  if (text.size() > kLongestFilter) {
    throw_invalid_argument("--filter: it has " + std::to_string(text.size()) +
                           " characters, expected at most " + std::to_string(kLongestFilter));
  }
  const int64_t depth = depth_of_groups(text);
  if (depth > kDeepestFilter) {
    throw_invalid_argument("--filter: its groups are nested " + std::to_string(depth) +
                           " deep, expected at most " + std::to_string(kDeepestFilter));
  }
  try {
    return std::regex(text);
  } catch (const std::regex_error& error) {
    throw_invalid_argument("--filter: \"" + text + "\" is no regular expression: " + error.what());
  }
}

}  // namespace wide::bench
