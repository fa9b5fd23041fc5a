// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What tests of random cases throw: the same numbers for a seed, on every machine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>

namespace wide::test {

/// Of WIDE_TEST_CASES and WIDE_TEST_SEED: how many cases, and which.
inline int64_t from_environment(const char* name, int64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoll(value);
}

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}

  int64_t between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_() % static_cast<uint64_t>(most - least + 1));
  }
  bool toss() { return between(0, 1) == 1; }
  /// One of a container that is not empty.
  template <class Container>
  const auto& one_of(const Container& container) {
    return container[static_cast<size_t>(between(0, std::ssize(container) - 1))];
  }
  /// A size from 1 to `most`, often at the edge of a tile or of 16 bytes.
  int64_t size(int64_t most) {
    const int64_t plain = between(1, most);
    switch (between(0, 3)) {
      case 0:
        return plain;
      case 1:
        return std::max<int64_t>(plain / 8 * 8, 1);
      case 2:
        return std::clamp<int64_t>(plain / 64 * 64 + between(0, 2), 1, most);
      default:
        return between(1, std::min<int64_t>(most, 20));
    }
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace wide::test
