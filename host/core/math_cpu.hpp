// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Elementary functions of the CPU device, without branches, so that loops over them become vector
// instructions (vectorised.hpp). Polynomials are fitted to the least largest relative error.
// Infinities and NaN give what the functions of these names in <cmath> do.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace wide::cpu {

/// exp(x) = 2^n (1 + rest), n as the number to add to the bits of a float to multiply it by 2^n.
struct PowerOfE {
  float rest;
  uint32_t exponent;
};

/// For x in [-128, 128].
inline PowerOfE power_of_e(float x) {
  constexpr float kMagic = 0x1.8p23f;  // added, leaves the nearest integer in the last bits
  const float shifted = x * 1.44269504f + kMagic;
  const float n = shifted - kMagic;
  const float r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;  // ln 2 in two parts
  float p = 0x1.6da82ap-10f * r + 0x1.123e2p-7f;
  p = p * r + 0x1.55547p-5f;
  p = p * r + 0x1.55547cp-3f;
  p = p * r + 0.5f;
  return {r * r * p + r, std::bit_cast<uint32_t>(shifted) << 23};
}

inline float times_two_to(float value, uint32_t exponent) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) + exponent);
}

/// Within 2 ulp; 0 below 2^-126, infinity above 2^127.5.
inline float exp(float x) {
  const float low = x < -88.0f ? -88.0f : x;  // at the ends the factor is 0 and infinity
  const PowerOfE power = power_of_e(low > 89.0f ? 89.0f : low);
  return (power.rest + 1.0f) * times_two_to(1.0f, power.exponent);
}

/// For x <= 0: within 2 ulp, subnormal results within one of theirs.
inline float exp_of_negative(float x) {
  const PowerOfE power = power_of_e(x < -104.0f ? -104.0f : x);
  return (power.rest + 1.0f) * times_two_to(0x1p24f, power.exponent) * 0x1p-24f;
}

/// For x <= 0: within 2 ulp.
inline float expm1_of_negative(float x) {
  const PowerOfE power = power_of_e(x < -64.0f ? -64.0f : x);
  const float scale = times_two_to(1.0f, power.exponent);
  return power.rest * scale + (scale - 1.0f);
}

/// Within 4 ulp.
inline float tanh(float x) {
  const float power = expm1_of_negative(-2.0f * std::fabs(x));
  return std::copysign(power / (power + 2.0f), x);
}

/// log((1 + s) / (1 - s)) for s in [-1/3, 1/3]: within 2 ulp.
inline float log_ratio(float s) {
  const float q = s * s;
  float p = 0.281915463f * q + 0.27957666f;
  p = p * q + 0.400251143f;
  p = p * q + 0.666663101f;
  return s * q * p + 2.0f * s;
}

/// log(1 + x) for x in [0, 1]: within 4 ulp.
inline float log1p_of_fraction(float x) {
  return log_ratio(x / (x + 2.0f));
}

/// The logarithm of a positive normal number: within 2 ulp, near 1 within 2^-24 of 0 besides. NaN
/// stays NaN.
inline float log_of_normal(float x) {
  constexpr int32_t kRootHalf = 0x3f3504f3;  // mantissas lie between it and twice that
  const int32_t exponent = (std::bit_cast<int32_t>(x) - kRootHalf) >> 23;
  const float m = std::bit_cast<float>(std::bit_cast<int32_t>(x) - (exponent << 23));
  const float log = log_ratio((m - 1.0f) / (m + 1.0f));
  return x != x ? x : static_cast<float>(exponent) * 0.693147181f + log;
}

/// x times the normal distribution function: within 7 ulp plus the effect on exp(-z) of rounding
/// z = x^2 / 2, z ulp. -0 at -infinity.
inline float gelu(float x) {
  const float a = std::fabs(x);
  const float t = 1.0f / (0.3f * a + 1.0f);
  float p = 0.0354237132f * t + -0.156158363f;  // the tail / exp(-a^2 / 2), of t
  p = p * t + 0.204556652f;
  p = p * t + -0.0520339071f;
  p = p * t + 0.12769172f;
  p = p * t + 0.100175961f;
  p = p * t + 0.120712134f;
  p = p * t + 0.119632007f;
  const float tail = p * t * exp(-0.5f * a * a);
  // Bounded where the other factor has vanished.
  return x < 0.0f ? (x < -128.0f ? -128.0f : x) * tail : x * (1.0f - tail);
}

/// x / (1 + exp(-z)), whose limit where both fall without end is -0.
inline float times_logistic(float x, float z) {
  return (x < -128.0f ? -128.0f : x) / (1.0f + exp(-z));
}

inline float silu(float x) {
  return times_logistic(x, x);
}

/// x/2 * (1 + tanh(z / 2)), without cancellation far below zero.
inline float gelu_tanh(float x) {
  return times_logistic(x, 1.5957691216057308f * (x + 0.044715f * x * x * x));
}

inline float relu(float x) {
  return !(x <= 0.0f) ? x : 0.0f;  // NaN stays
}

}  // namespace wide::cpu
