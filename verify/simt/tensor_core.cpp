// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/simt/tensor_core.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "verify/simt/fragments.hpp"

// Rounding is an instruction of later x86-64s, and a call before.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define WIDE_SIMT_VECTOR __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define WIDE_SIMT_VECTOR
#endif

namespace wide::simt {

namespace {

constexpr size_t kColumns = 8;  // side by side, in vector registers
using Columns = std::array<double, kColumns>;

float least_power(MatrixType type) {
  switch (type) {
    case MatrixType::f16:
    case MatrixType::e5m2:
      return 0x1p-14f;
    case MatrixType::e4m3:
      return 0x1p-6f;
    case MatrixType::bf16:
    case MatrixType::tf32:
      return 0x1p-126f;
  }
  return 0x1p-126f;
}

/// 2 to the exponent as the operand's format has it: a subnormal's is the least. 0 of 0.
float power_of(float value, float least) {
  const float power = std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0x7f800000u);
  return value == 0 ? 0 : std::max(power, least);
}

float toward_zero(double value) {
  const auto nearest = static_cast<float>(value);
  if (std::fabs(value) >= 0x1p128 || std::fabs(static_cast<double>(nearest)) <= std::fabs(value))
    return nearest;
  return std::nextafter(nearest, 0.0f);
}

/// Of eight columns: the largest power of two among the terms, and the sum in double.
struct Reach {
  Columns power, plain;
};

WIDE_SIMT_VECTOR void find_reach(const float* a, const float* a_powers, const float* b,
                                 const float* b_powers, int k, int n, Reach& reach) {
  for (int i = 0; i < k; ++i) {
    const double x = a[i], x_power = a_powers[i];
    const float *from = b + int64_t{i} * n, *powers = b_powers + int64_t{i} * n;
    for (size_t j = 0; j < kColumns; ++j) {
      reach.plain[j] += x * from[j];
      const double power = x_power * powers[j];
      reach.power[j] = reach.power[j] > power ? reach.power[j] : power;
    }
  }
}

WIDE_SIMT_VECTOR void add_terms(const float* a, const float* b, int k, int n,
                                const Columns& per_unit, Columns& sums) {
  for (int i = 0; i < k; ++i) {
    const double x = a[i];
    const float* from = b + int64_t{i} * n;
    for (size_t j = 0; j < kColumns; ++j) sums[j] += std::trunc(x * from[j] * per_unit[j]);
  }
}

void add_row(const TensorCore& core, const float* a, const float* a_powers, const float* b,
             const float* b_powers, int k, int n, float* d) {
  Reach reach;
  for (size_t j = 0; j < kColumns; ++j) {
    reach.plain[j] = d[j];
    reach.power[j] = power_of(d[j], 0x1p-126f);
  }
  find_reach(a, a_powers, b, b_powers, k, n, reach);
  Columns per_unit, sums;
  for (size_t j = 0; j < kColumns; ++j) {
    const bool has_unit = reach.power[j] > 0 && std::isfinite(reach.plain[j]);
    per_unit[j] = has_unit ? std::ldexp(1 / reach.power[j], core.fraction_bits) : 0;
    sums[j] = has_unit ? std::trunc(d[j] * per_unit[j]) : 0;
  }
  add_terms(a, b, k, n, per_unit, sums);
  for (size_t j = 0; j < kColumns; ++j) {
    if (!std::isfinite(reach.plain[j])) {
      d[j] = static_cast<float>(reach.plain[j]);
      continue;
    }
    d[j] = per_unit[j] > 0 ? toward_zero(sums[j] / per_unit[j]) : 0.0f;
    if (core.is_short) d[j] = std::bit_cast<float>(std::bit_cast<uint32_t>(d[j]) & ~0x3ffu);
  }
}

}  // namespace

TensorCore TensorCore::of_wgmma(MatrixType type) {
  return element_bytes(type) == 1 ? TensorCore{13, true} : TensorCore{};
}

void multiply_add(const TensorCore& core, MatrixType type_a, const float* a, MatrixType type_b,
                  const float* b, int k, int n, float* d) {
  std::array<float, kFragmentRows * kMaxK> a_powers;
  std::array<float, kMaxK * 256> b_powers;
  const float least_a = least_power(type_a), least_b = least_power(type_b);
  for (int row = 0; row < kFragmentRows; ++row) {
    for (int i = 0; i < k; ++i) {
      const auto place = static_cast<size_t>(row * kMaxK + i);
      a_powers[place] = power_of(a[place], least_a);
    }
  }
  for (size_t i = 0; i < static_cast<size_t>(k * n); ++i) b_powers[i] = power_of(b[i], least_b);
  for (int row = 0; row < kFragmentRows; ++row) {
    const int64_t of_row = int64_t{row} * kMaxK;
    for (int column = 0; column < n; column += static_cast<int>(kColumns)) {
      add_row(core, a + of_row, a_powers.data() + of_row, b + column, b_powers.data() + column, k,
              n, d + int64_t{row} * n + column);
    }
  }
}

}  // namespace wide::simt
