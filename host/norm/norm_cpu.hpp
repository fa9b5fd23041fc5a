// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Shared by the CPU device's norms: moments of values that are decoded to floats on the stack, a
// chunk at a time.
#pragma once

#include <cstdint>

#include "host/core/lanes_cpu.hpp"
#include "host/core/row_cpu.hpp"
#include "host/core/slices.hpp"

namespace wide {

constexpr int64_t kChunk = cpu::kRowChunk;

/// Both moments of values minus a rough mean. NaN where a value is NaN.
class Moments {
 public:
  void add(const float* values, int64_t count, float rough_mean) {
    rest_.add(count, [&](int64_t i) { return values[i] - rough_mean; });
    squares_.add(count, [&](int64_t i) {
      const float d = values[i] - rough_mean;
      return d * d;
    });
  }
  float mean(int64_t count) const { return rest_.mean(count); }
  /// The mean square about the rough mean, moved to one about the rough mean plus `about`: the
  /// variance where `about` is mean().
  float square(int64_t count, float about) const {
    const float square = squares_.mean(count) - about * about;
    return square < 0.0f ? 0.0f : square;
  }

 private:
  cpu::Sum rest_, squares_;
};

}  // namespace wide
