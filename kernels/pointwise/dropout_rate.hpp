// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Dropout of one element, in code shared by CPU and CUDA.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/common/philox.hpp"

namespace wide::kernels {

/// A member's probability in the form that its elements need.
struct DropoutRate {
  uint64_t threshold;  ///< random words below it drop their element
  float scale;         ///< of elements that stay
};

/// A word below p 2^32, which is exact, has probability p, in steps of 2^-32.
constexpr DropoutRate dropout_rate(float probability) {
  if (!(probability >= 0.0f && probability <= 1.0f)) {
    return {0, std::numeric_limits<float>::quiet_NaN()};
  }
  const float words = probability * 0x1p32f;
  const auto whole = static_cast<uint64_t>(words);
  const uint64_t threshold = whole + (static_cast<float>(whole) < words ? 1 : 0);
  return {threshold, probability < 1.0f ? 1.0f / (1.0f - probability) : 0.0f};
}

constexpr float drop(float x, uint32_t word, const DropoutRate& rate) {
  return word < rate.threshold ? 0.0f : x * rate.scale;
}

/// The words of elements 4 block to 4 block + 3 of a member.
constexpr PhiloxWords dropout_words(int64_t seed, int64_t sequence, int64_t block) {
  return philox4x32(static_cast<uint64_t>(seed), static_cast<uint64_t>(block),
                    static_cast<uint64_t>(sequence));
}

}  // namespace wide::kernels
