// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the CPU device's pools of both layouts share: windows, and what becomes of their values.
#pragma once

#include <algorithm>
#include <bit>
#include <limits>

#include "host/core/independent.hpp"
#include "host/core/row_cpu.hpp"
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
  /// The weight of every window; 0 where they may differ.
  int64_t common_weight() const {
    if (is_adaptive_) return in_ % out_ == 0 ? in_ / out_ : 0;
    const Taps first = (*this)[0], last = (*this)[out_ - 1];
    const int64_t whole = first.end() - first.first;
    return weight(first) == whole && weight(last) == whole ? whole : 0;
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

/// out[i] = first[i], from[i], from[step + i], .. combined in this order; `first` may be `out`.
template <bool is_max, int num_steps>
void fold_few(const float* first, const float* from, int64_t step, int64_t count, float* out) {
  WIDE_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    float value = first[i];
    for (int tap = 0; tap < num_steps; ++tap) {
      value = combined<is_max>(value, from[tap * step + i]);
    }
    out[i] = value;
  }
}

/// out[i] = from[i], from[step + i], .. combined in this order, some before they are stored.
template <bool is_max>
void fold_steps(const float* from, int64_t step, int64_t num_taps, int64_t count, float* out) {
  if (num_taps == 2) return fold_few<is_max, 1>(from, from + step, step, count, out);
  if (num_taps == 1) std::copy_n(from, count, out);
  const float* first = from;
  int64_t tap = 1;
  for (; tap + 7 <= num_taps; tap += 7, first = out) {
    fold_few<is_max, 7>(first, from + tap * step, step, count, out);
  }
  for (; tap + 2 <= num_taps; tap += 2, first = out) {
    fold_few<is_max, 2>(first, from + tap * step, step, count, out);
  }
  if (tap < num_taps) fold_few<is_max, 1>(first, from + tap * step, step, count, out);
}

/// out[i] = at(0)[i], at(1)[i], .. combined in this order; at() may be null.
template <bool is_max, class At>
void fold(int64_t num_taps, int64_t count, float* out, const At& at) {
  const float* first = nullptr;
  for (int64_t tap = 0; tap < num_taps; ++tap) {
    const float* next = at(tap);
    if (next == nullptr) continue;
    if (first == nullptr) {
      std::copy_n(next, count, out);
    } else {
      fold_few<is_max, 1>(out, next, 0, count, out);
    }
    first = out;
  }
  if (first == nullptr) std::fill_n(out, count, kNothing<is_max>);
}

/// out[i] of the taps that exist, in this order: tap t is `count` elements at x + t * stride, t in
/// [0, extent). At most kMost elements.
template <bool is_max, int64_t kMost>
void fold_taps(Dtype dtype, const char* x, const Taps& taps, int64_t extent, int64_t stride,
               int64_t count, float* out) {
  if (dtype == Dtype::fp32 && taps.first >= 0 && taps.end() <= extent) {
    return fold_steps<is_max>(reinterpret_cast<const float*>(x) + taps.first * stride,
                              taps.dilation * stride, taps.count, count, out);
  }
  float decoded[kMost];
  fold<is_max>(taps.count, count, out, [&](int64_t tap) -> const float* {
    const int64_t at = taps.first + tap * taps.dilation;
    if (at < 0 || at >= extent) return nullptr;
    return cpu::chunk_of(dtype, x, at * stride, count, decoded);
  });
}

/// Sums to means.
inline void divide(float* values, int64_t count, int64_t weight) {
  const auto divisor = static_cast<float>(weight);
  if (std::has_single_bit(static_cast<uint64_t>(weight))) {
    const float factor = 1.0f / divisor;  // exact, as are products with it
    for (int64_t i = 0; i < count; ++i) values[i] *= factor;
  } else {
    for (int64_t i = 0; i < count; ++i) values[i] /= divisor;
  }
}

}  // namespace pooling_cpu

/// Of a problem with channels last that is not empty.
void run_pooling_cpu_last(const Context& context, const PoolingProblem& problem,
                          WideStrategy strategy, const PoolingArguments& arguments);

}  // namespace wide
