// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The tile's kernel for every processor, and the choice among the versions. Sixteen floats as four
// short vectors, the registers of SSE2 and NEON.
#include <cstring>

#include "host/conv/conv_cpu_multiply.hpp"

namespace wide::cpu {

namespace {

struct Portable {
  static constexpr int kTileRows = 1;
  using Quarter = float __attribute__((vector_size(16)));
  Quarter v[4];

  static Portable load(const float* from) {
    Portable out;
    std::memcpy(out.v, from, sizeof(out.v));
    return out;
  }
  static Portable broadcast(float value) {
    const Quarter all{value, value, value, value};
    return {{all, all, all, all}};
  }
  static Portable fma(const Portable& a, const Portable& b, const Portable& sum) {
    Portable out;
    for (int i = 0; i < 4; ++i) out.v[i] = a.v[i] * b.v[i] + sum.v[i];
    return out;
  }
  void store(float* to) const { std::memcpy(to, v, sizeof(v)); }
};

}  // namespace

void conv_tile_portable(const ConvTile& tile) {
  multiply_tile<Portable>(tile);
}

ConvTileKernel best_conv_tile() {
#if defined(__x86_64__) && !defined(__clang__)  // clang lacks the other versions
  static const ConvTileKernel best = [] {
    __builtin_cpu_init();
    if (conv_tile_avx512 != nullptr && __builtin_cpu_supports("avx512f")) return conv_tile_avx512;
    if (conv_tile_avx2 != nullptr && __builtin_cpu_supports("avx2") &&
        __builtin_cpu_supports("fma")) {
      return conv_tile_avx2;
    }
    return ConvTileKernel{conv_tile_portable};
  }();
  return best;
#else
  return conv_tile_portable;
#endif
}

}  // namespace wide::cpu
