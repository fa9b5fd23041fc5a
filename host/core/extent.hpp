// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How far an operand reaches, with overflow checks: where it fits, offsets into it need none.
#pragma once

#include <cstdint>
#include <span>

namespace wide {

/// One axis of an operand.
struct SteppedAxis {
  int64_t stride, extent;
};

/// As views' spans: elements have up to 8 bytes, and each of two strides may be checked alone.
inline constexpr int64_t kExtentBytes = 16;

/// Whether the bytes from the first element to the end of the last, of strides >= 0 with
/// `features` contiguous elements inside, count in 64 bits; true where there is none.
inline bool extent_fits(std::span<const SteppedAxis> axes, int64_t features,
                        int64_t element_bytes = kExtentBytes) {
  int64_t span = features, bytes = 0;
  bool is_empty = features == 0, overflows = false;
  for (const SteppedAxis& axis : axes) {
    int64_t steps = 0;
    is_empty = is_empty || axis.extent == 0;
    overflows = overflows || __builtin_mul_overflow(axis.extent - 1, axis.stride, &steps) ||
                __builtin_add_overflow(span, steps, &span);
  }
  return is_empty || (!overflows && !__builtin_mul_overflow(span, element_bytes, &bytes));
}

}  // namespace wide
