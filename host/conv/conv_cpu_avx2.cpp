// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The tile's kernel with AVX2 and FMA: sixteen floats take two registers, six sums twelve of the
// sixteen.
#include "host/conv/conv_cpu_tile.hpp"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "host/conv/conv_cpu_multiply.hpp"

namespace wide::cpu {

namespace {

struct Avx2 {
  static constexpr int kTileRows = 3;
  __m256 low, high;

  static Avx2 load(const float* from) { return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)}; }
  static Avx2 broadcast(float value) { return {_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
  static Avx2 fma(const Avx2& a, const Avx2& b, const Avx2& sum) {
    return {_mm256_fmadd_ps(a.low, b.low, sum.low), _mm256_fmadd_ps(a.high, b.high, sum.high)};
  }
  void store(float* to) const {
    _mm256_storeu_ps(to, low);
    _mm256_storeu_ps(to + 8, high);
  }
};

}  // namespace

const ConvTileKernel conv_tile_avx2 = multiply_tile<Avx2>;

}  // namespace wide::cpu
#pragma GCC pop_options
#else
namespace wide::cpu {
const ConvTileKernel conv_tile_avx2 = nullptr;
}  // namespace wide::cpu
#endif
