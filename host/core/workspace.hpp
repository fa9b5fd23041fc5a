// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How workspaces are divided.
#pragma once

#include <cstdint>

#include "wide/context.hpp"

namespace wide {

/// Bytes up to where the next part of a workspace may begin.
constexpr int64_t aligned_bytes(int64_t bytes) {
  return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

}  // namespace wide
