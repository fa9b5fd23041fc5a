// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The block kernel with AVX2, FMA and F16C: sixteen floats take two registers, six dot products
// twelve of the sixteen.
#include "host/linear/linear_cpu_block.hpp"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#include "host/linear/linear_cpu_tile.hpp"

namespace wide::cpu {

namespace {

struct Avx2 {
  static constexpr int kTileRows = 2, kTileColumns = 3;
  __m256 low, high;

  static Avx2 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static Avx2 load(const float* from) { return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)}; }
  static Avx2 fma(const Avx2& a, const Avx2& b, const Avx2& sum) {
    return {_mm256_fmadd_ps(a.low, b.low, sum.low), _mm256_fmadd_ps(a.high, b.high, sum.high)};
  }
  void store(float* to) const {
    _mm256_storeu_ps(to, low);
    _mm256_storeu_ps(to + 8, high);
  }
  float sum() const {
    const __m256 eight = low + high;
    const __m128 four = _mm256_castps256_ps128(eight) + _mm256_extractf128_ps(eight, 1);
    const __m128 two = four + _mm_movehl_ps(four, four);
    return two[0] + two[1];
  }
  static __m128i load_eight(const uint16_t* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }
  static void decode_fp16(const uint16_t* from, float* to) {
    Avx2{_mm256_cvtph_ps(load_eight(from)), _mm256_cvtph_ps(load_eight(from + 8))}.store(to);
  }
  static __m256 widen_bf16(__m128i codes) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(codes), 16));
  }
  static void decode_bf16(const uint16_t* from, float* to) {
    Avx2{widen_bf16(load_eight(from)), widen_bf16(load_eight(from + 8))}.store(to);
  }
};

void run_block(const LinearBlock& block) {
  compute_block<Avx2>(block);
}

}  // namespace

const LinearBlockKernel linear_block_avx2 = run_block;

}  // namespace wide::cpu
#pragma GCC pop_options
#else
namespace wide::cpu {
const LinearBlockKernel linear_block_avx2 = nullptr;
}  // namespace wide::cpu
#endif
