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

  /// lane i % 16 = join(lane, term(i)) for i in [0, count).
  template <class Join, class Term>
  void add(int64_t count, const Join& join, const Term& term) {
    int64_t i = 0;
    for (; i + kCount <= count; i += kCount) {
      for (int64_t l = 0; l < kCount; ++l) lanes_[l] = join(lanes_[l], term(i + l));
    }
    for (int64_t l = 0; i + l < count; ++l) lanes_[l] = join(lanes_[l], term(i + l));
  }

  /// Of all lanes, pairwise: lane l with l + 8, then with l + 4, l + 2, l + 1.
  template <class Join>
  float join(const Join& join) {
    for (int64_t width = kCount / 2; width > 0; width /= 2) {
      for (int64_t l = 0; l < width; ++l) lanes_[l] = join(lanes_[l], lanes_[l + width]);
    }
    return lanes_[0];
  }

 private:
  float lanes_[kCount];
};

}  // namespace wide::cpu
