// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the CPU device's pools of both layouts share: windows, and what becomes of their values.
#pragma once

#include <algorithm>
#include <limits>

#include "host/core/wide_strategy.hpp"
#include "wide/pooling.hpp"

namespace wide {

namespace pooling_cpu {

/// Positions first + t * dilation, t < count, of one axis; some may not exist.
struct Taps {
  int64_t first = 0, count = 0, dilation = 1;
  int64_t end() const { return first + (count - 1) * dilation + 1; }
};

class Axis {
 public:
  Axis(const PoolingProblem& p, const PoolingWindow& window, int64_t in, int64_t out)
      : window_(window),
        is_adaptive_(p.mode == PoolingMode::adaptive_average),
        low_(p.counts_padding ? -window.padding : 0),
        high_(p.counts_padding ? in + window.padding : in),
        in_(in),
        out_(out) {}

  Taps operator[](int64_t output) const {
    if (!is_adaptive_) {
      return {output * window_.stride - window_.padding, window_.kernel, window_.dilation};
    }
    const int64_t first = output * in_ / out_;
    return {first, ((output + 1) * in_ + out_ - 1) / out_ - first, 1};
  }
  /// What a mean divides by.
  int64_t weight(const Taps& taps) const {
    return std::max<int64_t>(0, std::min(taps.end(), high_) - std::max(taps.first, low_));
  }

 private:
  PoolingWindow window_;
  bool is_adaptive_;
  int64_t low_, high_, in_, out_;
};

/// What changes no value: a sum of nothing is -0, +0 would change that one.
template <bool is_max>
constexpr float kNothing = is_max ? -std::numeric_limits<float>::infinity() : -0.0f;

template <bool is_max>
inline float combined(float a, float b) {
  if constexpr (!is_max) return a + b;
  const float larger = b > a ? b : a;  // a, too, where one of them is no number
  return b != b ? b : larger;
}

}  // namespace pooling_cpu

/// Of a problem with channels last that is not empty.
void run_pooling_cpu_last(const Context& context, const PoolingProblem& problem,
                          WideStrategy strategy, const PoolingArguments& arguments);

}  // namespace wide
