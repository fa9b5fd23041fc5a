// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The block kernel with AVX-512: sixteen floats take one register, sixteen dot products half of
// the registers.
#include "host/linear/linear_cpu_block.hpp"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f")
#include "host/linear/linear_cpu_tile.hpp"

namespace wide::cpu {

namespace {

struct Avx512 {
  static constexpr int kTileRows = 4, kTileColumns = 4;
  __m512 v;

  static Avx512 zero() { return {_mm512_setzero_ps()}; }
  static Avx512 load(const float* from) { return {_mm512_loadu_ps(from)}; }
  static Avx512 fma(const Avx512& a, const Avx512& b, const Avx512& sum) {
    return {_mm512_fmadd_ps(a.v, b.v, sum.v)};
  }
  void store(float* to) const { _mm512_storeu_ps(to, v); }
  float sum() const {
    const __m512 upper = _mm512_shuffle_f32x4(v, v, 0xee);
    const __m256 eight = _mm512_castps512_ps256(v) + _mm512_castps512_ps256(upper);
    const __m128 four = _mm256_castps256_ps128(eight) + _mm256_extractf128_ps(eight, 1);
    const __m128 two = four + _mm_movehl_ps(four, four);
    return two[0] + two[1];
  }
  static __m256i load_codes(const uint16_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static void decode_fp16(const uint16_t* from, float* to) {
    _mm512_storeu_ps(to, _mm512_cvtph_ps(load_codes(from)));
  }
  static void decode_bf16(const uint16_t* from, float* to) {
    const __m512i codes = _mm512_cvtepu16_epi32(load_codes(from));
    _mm512_storeu_ps(to, _mm512_castsi512_ps(_mm512_slli_epi32(codes, 16)));
  }
};

void run_block(const LinearBlock& block) {
  compute_block<Avx512>(block);
}

}  // namespace

const LinearBlockKernel linear_block_avx512 = run_block;

}  // namespace wide::cpu
#pragma GCC pop_options
#else
namespace wide::cpu {
const LinearBlockKernel linear_block_avx512 = nullptr;
}  // namespace wide::cpu
#endif
