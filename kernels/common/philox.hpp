// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Philox4x32-10: 128 random bits as a function of a key and a counter alone, so that any thread
// computes any of them without state. Plain constexpr arithmetic: CPU and CUDA agree.
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11,
// section 3.3; multipliers and Weyl constants as in its library Random123.
#pragma once

#include <cstdint>

namespace wide::kernels {

struct PhiloxWords {
  uint32_t word[4];
};

/// Key and counter are split into 32-bit words, low halves first.
constexpr PhiloxWords philox4x32(uint64_t key, uint64_t counter_low, uint64_t counter_high) {
  constexpr int kRounds = 10;
  auto key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  PhiloxWords c{{static_cast<uint32_t>(counter_low), static_cast<uint32_t>(counter_low >> 32),
                 static_cast<uint32_t>(counter_high), static_cast<uint32_t>(counter_high >> 32)}};
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = uint64_t{0xd2511f53u} * c.word[0];
    const uint64_t product1 = uint64_t{0xcd9e8d57u} * c.word[2];
    c = {{static_cast<uint32_t>(product1 >> 32) ^ c.word[1] ^ key0, static_cast<uint32_t>(product1),
          static_cast<uint32_t>(product0 >> 32) ^ c.word[3] ^ key1,
          static_cast<uint32_t>(product0)}};
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
  return c;
}

}  // namespace wide::kernels
