// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the plans of all primitives have in common.
#pragma once

#include <cstdint>
#include <string>

namespace wide {

struct PlanOptions {
  /// A strategy's name (`wbench list strategies`), or "auto". A strategy asked for by name runs or
  /// throws unsupported with the reason; there is no silent fallback.
  std::string strategy = "auto";
};

/// Strides, in elements, of an operand that kernels see as [rows, members, features] with the
/// features contiguous. Both 0 in a problem means packed.
struct RowStrides {
  int64_t row = 0;
  int64_t member = 0;
  friend constexpr bool operator==(const RowStrides&, const RowStrides&) = default;
};

}  // namespace wide
