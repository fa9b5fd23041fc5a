// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How operands lie in memory.
#pragma once

#include <cstdint>

namespace wide {

/// Strides, in elements, of an operand that kernels see as [rows, members, features] with the
/// features contiguous. Both 0 in a problem means packed.
struct RowStrides {
  int64_t row = 0;
  int64_t member = 0;
  friend constexpr bool operator==(const RowStrides&, const RowStrides&) = default;
};

/// Strides, in elements, of sequences [batch, steps, members, features], features contiguous. All 0
/// in a problem means packed.
struct RecurrentStrides {
  int64_t batch = 0;
  int64_t step = 0;
  int64_t member = 0;
  friend constexpr bool operator==(const RecurrentStrides&, const RecurrentStrides&) = default;
};

/// Strides, in elements, of what is added to scores; 0: the same for all of an axis.
struct ScoreBiasStrides {
  int64_t member = 0, batch = 0, head = 0, query = 0;
  friend bool operator==(const ScoreBiasStrides&, const ScoreBiasStrides&) = default;
};

/// Strides, in elements, of a conv weight as kernels see it, [members, out_channels, in_channels /
/// groups, kernel height, width].
struct ConvWeightStrides {
  int64_t member = 0;
  int64_t out_channel = 0;
  int64_t in_channel = 0;
  int64_t row = 0;
  int64_t column = 0;
  friend constexpr bool operator==(const ConvWeightStrides&, const ConvWeightStrides&) = default;
};

}  // namespace wide
