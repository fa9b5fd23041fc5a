// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How workspaces are divided.
#pragma once

#include <cstdint>
#include <string>

#include "host/core/check.hpp"
#include "wide/context.hpp"

namespace wide {

/// Bytes up to where the next part of a workspace may begin. Throws invalid_argument if they do
/// not fit in 64 bits.
constexpr int64_t aligned_bytes(int64_t bytes) {
  if (bytes > INT64_MAX - kWorkspaceAlignment) {
    throw_invalid_argument("workspace: a part of " + std::to_string(bytes) +
                           " bytes does not fit in 64 bits");
  }
  return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

/// The end of a part at `offset`: the next one's begin, or the sum of all. Throws as above.
inline int64_t behind_part(int64_t offset, int64_t bytes) {
  int64_t end = 0;
  if (__builtin_add_overflow(offset, aligned_bytes(bytes), &end)) {
    throw_invalid_argument("workspace: parts of " + std::to_string(offset) + " and " +
                           std::to_string(bytes) + " bytes do not fit in 64 bits together");
  }
  return end;
}

}  // namespace wide
