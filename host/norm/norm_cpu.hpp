// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Shared by the CPU device's norms: sums in independent lanes, over values that are decoded to
// floats on the stack, a chunk at a time.
#pragma once

#include <cstdint>

#include "host/core/lanes_cpu.hpp"
#include "host/core/row_cpu.hpp"
#include "host/core/slices.hpp"

namespace wide {

constexpr int64_t kChunk = cpu::kRowChunk;

/// A sum of chunks: in fp32 within one, in fp64 from chunk to chunk, so that the number of
/// roundings does not grow with the number of values.
class Sum {
 public:
  /// Adds term(i) for i in [0, count), count at most kChunk.
  template <class F>
  void add(int64_t count, const F& term) {
    cpu::Lanes lanes(0.0f);
    cpu::Lanes::for_each(count, [&](int64_t i, int64_t lane) { lanes[lane] += term(i); });
    total_ += static_cast<double>(lanes.sum());
  }
  float mean(int64_t count) const {
    return static_cast<float>(total_ / static_cast<double>(count));
  }

 private:
  double total_ = 0;
};

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
  Sum rest_, squares_;
};

}  // namespace wide
