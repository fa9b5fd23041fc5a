// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The table that the build generated, or an empty one where it generated none.
#include "host/core/verified.hpp"

#include <algorithm>
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

}  // namespace wide
