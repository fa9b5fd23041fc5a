// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How operands with channels and positions lie in memory.
#pragma once

#include <cstdint>

namespace wide {

enum class ChannelLayout : uint8_t {
  channels_first,  ///< [B, N*C, H, W]
  channels_last,   ///< [B, H, W, N*C]
};

/// Strides, in elements, of an operand that kernels see as [batch, members, channels, height,
/// width]. All 0 in a problem means packed. The last axis, width or channels, has stride 1.
struct ChannelStrides {
  int64_t batch = 0;
  int64_t member = 0;
  int64_t channel = 0;
  int64_t row = 0;
  int64_t column = 0;
  friend constexpr bool operator==(const ChannelStrides&, const ChannelStrides&) = default;
};

}  // namespace wide
