// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Reductions in sixteen lanes, one vector register or a few: their order does not depend on the
// instruction set.
#pragma once

#include <cstdint>

namespace wide::cpu {

class Lanes {
 public:
  static constexpr int64_t kCount = 16;

  explicit Lanes(float start) {
    for (float& lane : lanes_) lane = start;
  }
  float& operator[](int64_t lane) { return lanes_[lane]; }

  /// Calls f(i, i % 16) for i in [0, count).
  template <class F>
  static void for_each(int64_t count, const F& f) {
    int64_t i = 0;
    for (; i + kCount <= count; i += kCount) {
      for (int64_t lane = 0; lane < kCount; ++lane) f(i + lane, lane);
    }
    for (int64_t lane = 0; i + lane < count; ++lane) f(i + lane, lane);
  }

  /// Of all lanes, pairwise: lane l with l + 8, then with l + 4, l + 2, l + 1.
  template <class Join>
  float join(const Join& join) const {
    float eight[8], four[4];
    for (int l = 0; l < 8; ++l) eight[l] = join(lanes_[l], lanes_[l + 8]);
    for (int l = 0; l < 4; ++l) four[l] = join(eight[l], eight[l + 4]);
    return join(join(four[0], four[2]), join(four[1], four[3]));
  }
  float sum() const {
    return join([](float a, float b) { return a + b; });
  }

 private:
  float lanes_[kCount];
};

/// A sum of any number of terms: in fp32 within a chunk of a row (row_cpu.hpp), in fp64 from chunk
/// to chunk, so that the number of roundings does not grow with the number of terms.
class Sum {
 public:
  /// Adds term(i) for i in [0, count), count at most kRowChunk.
  template <class F>
  void add(int64_t count, const F& term) {
    Lanes lanes(0.0f);
    Lanes::for_each(count, [&](int64_t i, int64_t lane) { lanes[lane] += term(i); });
    total_ += static_cast<double>(lanes.sum());
  }
  float total() const { return static_cast<float>(total_); }
  float mean(int64_t count) const {
    return static_cast<float>(total_ / static_cast<double>(count));
  }

 private:
  double total_ = 0;
};

}  // namespace wide::cpu
