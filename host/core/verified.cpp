// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The tables that the build generated, or empty ones where it generated none.
#include "host/core/verified.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace wide {

std::span<const VerifiedStrategy> verified_strategies() {
  static const std::vector<VerifiedStrategy> table = {
#if __has_include("wide_verified_table.inc")
#include "wide_verified_table.inc"
#endif
  };
  return table;
}

bool is_verified_in(std::span<const VerifiedStrategy> table, std::string_view op,
                    std::string_view strategy, int compute_capability) {
  return std::any_of(table.begin(), table.end(), [&](const VerifiedStrategy& entry) {
    return entry.op == op && entry.strategy == strategy &&
           entry.compute_capability == compute_capability;
  });
}

bool is_verified(std::string_view op, std::string_view strategy, int compute_capability) {
  return is_verified_in(verified_strategies(), op, strategy, compute_capability);
}

std::string_view kernel_hash(std::string_view op) {
  static const std::vector<std::pair<std::string_view, std::string_view>> hashes = {
#if __has_include("wide_kernel_hashes.inc")
#include "wide_kernel_hashes.inc"
#endif
  };
  for (const auto& [name, hash] : hashes) {
    if (name == op) return hash;
  }
  return "";
}

}  // namespace wide
