// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The tile's kernel with AVX-512: sixteen floats take one register, sixteen sums half of the
// registers.
#include "host/conv/conv_cpu_tile.hpp"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f")
#include "host/conv/conv_cpu_multiply.hpp"

namespace wide::cpu {

namespace {

struct Avx512 {
  static constexpr int kTileRows = 8;
  __m512 v;

  static Avx512 load(const float* from) { return {_mm512_loadu_ps(from)}; }
  static Avx512 broadcast(float value) { return {_mm512_set1_ps(value)}; }
  static Avx512 fma(const Avx512& a, const Avx512& b, const Avx512& sum) {
    return {_mm512_fmadd_ps(a.v, b.v, sum.v)};
  }
  void store(float* to) const { _mm512_storeu_ps(to, v); }
};

}  // namespace

const ConvTileKernel conv_tile_avx512 = multiply_tile<Avx512>;

}  // namespace wide::cpu
#pragma GCC pop_options
#else
namespace wide::cpu {
const ConvTileKernel conv_tile_avx512 = nullptr;
}  // namespace wide::cpu
#endif
