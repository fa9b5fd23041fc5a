// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The block kernel with AVX-512: sixteen floats are one register, sixteen dot products half of
// those there are.
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
  static __m256i load_codes(const uint16_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  // The masked forms with all lanes on: GCC 12 warns about its own unmasked ones.
  static constexpr __mmask16 kAll = 0xffff;
  static void decode_fp16(const uint16_t* from, float* to) {
    _mm512_storeu_ps(to, _mm512_maskz_cvtph_ps(kAll, load_codes(from)));
  }
  static void decode_bf16(const uint16_t* from, float* to) {
    const __m512i codes = _mm512_maskz_cvtepu16_epi32(kAll, load_codes(from));
    _mm512_storeu_ps(to, _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAll, codes, 16)));
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
