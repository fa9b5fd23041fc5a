// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/simt/tensor_core.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

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

// As vectors by name, since compilers unroll so short a loop before they would vectorise it.
constexpr size_t kVector = 4, kVectors = kColumns / kVector;
using Doubles [[gnu::vector_size(kVector * sizeof(double))]] = double;
using Integers [[gnu::vector_size(kVector * sizeof(int32_t))]] = int32_t;
using Vectors = std::array<Doubles, kVectors>;

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

/// A row of A: values, and the powers of two that they reach.
struct Row {
  std::array<double, kMaxK> value, power;
};
/// The same of eight columns of B, row by row.
struct EightColumns {
  std::array<Vectors, kMaxK> value, power;
};

/// Of eight columns: the largest power of two among the terms, and the sum in double.
struct Reach {
  Vectors power, plain;
};

WIDE_SIMT_VECTOR void find_reach(const Row& a, const EightColumns& b, size_t k, Reach& reach) {
  Vectors power = reach.power, plain = reach.plain;
  for (size_t i = 0; i < k; ++i) {
    for (size_t v = 0; v < kVectors; ++v) {
      plain[v] += a.value[i] * b.value[i][v];
      const Doubles of_term = a.power[i] * b.power[i][v];
      power[v] = power[v] > of_term ? power[v] : of_term;
    }
  }
  reach = {power, plain};
}

/// Every term is less than four times the largest power in units, so that 32 bits hold it; columns
/// that have no unit are not looked at afterwards.
WIDE_SIMT_VECTOR void add_terms(const Row& a, const EightColumns& b, size_t k,
                                const Vectors& per_unit, Vectors& sums) {
  Vectors sum = sums;
  const Vectors units = per_unit;
  for (size_t i = 0; i < k; ++i) {
    for (size_t v = 0; v < kVectors; ++v) {
      const Doubles term = a.value[i] * b.value[i][v] * units[v];
      sum[v] += __builtin_convertvector(__builtin_convertvector(term, Integers), Doubles);
    }
  }
  sums = sum;
}

void add_row(const TensorCore& core, const Row& a, const EightColumns& b, size_t k, float* d) {
  Reach reach;
  for (size_t j = 0; j < kColumns; ++j) {
    reach.plain[j / kVector][j % kVector] = d[j];
    reach.power[j / kVector][j % kVector] = power_of(d[j], 0x1p-126f);
  }
  find_reach(a, b, k, reach);
  const auto power = std::bit_cast<Columns>(reach.power),
             plain = std::bit_cast<Columns>(reach.plain);
  Columns per_unit, sums;
  const auto units = static_cast<double>(int64_t{1} << core.fraction_bits);
  for (size_t j = 0; j < kColumns; ++j) {
    const bool has_unit = power[j] > 0 && std::isfinite(plain[j]);
    per_unit[j] = has_unit ? units / power[j] : 0;
    sums[j] = has_unit ? std::trunc(d[j] * per_unit[j]) : 0;
  }
  auto totals = std::bit_cast<Vectors>(sums);
  add_terms(a, b, k, std::bit_cast<Vectors>(per_unit), totals);
  sums = std::bit_cast<Columns>(totals);
  for (size_t j = 0; j < kColumns; ++j) {
    if (!std::isfinite(plain[j])) {
      d[j] = static_cast<float>(plain[j]);
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
  const float least_a = least_power(type_a), least_b = least_power(type_b);
  const auto depth = static_cast<size_t>(k), width = static_cast<size_t>(n);
  std::array<Row, kFragmentRows> rows;
  for (size_t row = 0; row < kFragmentRows; ++row) {
    for (size_t i = 0; i < depth; ++i) {
      const float value = a[row * kMaxK + i];
      rows[row].value[i] = value;
      rows[row].power[i] = power_of(value, least_a);
    }
  }
  EightColumns columns;
  for (size_t column = 0; column < width; column += kColumns) {
    for (size_t i = 0; i < depth; ++i) {
      for (size_t j = 0; j < kColumns; ++j) {
        const float value = b[i * width + column + j];
        columns.value[i][j / kVector][j % kVector] = value;
        columns.power[i][j / kVector][j % kVector] = power_of(value, least_b);
      }
    }
    for (size_t row = 0; row < kFragmentRows; ++row) {
      add_row(core, rows[row], columns, depth, d + row * width + column);
    }
  }
}

}  // namespace wide::simt
