// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How operands with channels first lie in memory.
#pragma once

#include <cstdint>

namespace wide {

/// Strides, in elements, of an operand that kernels see as [batch, members, channels, height,
/// width] with the width contiguous. All 0 in a problem means packed.
struct ChannelStrides {
  int64_t batch = 0;
  int64_t member = 0;
  int64_t channel = 0;
  int64_t row = 0;
  friend constexpr bool operator==(const ChannelStrides&, const ChannelStrides&) = default;
};

}  // namespace wide
