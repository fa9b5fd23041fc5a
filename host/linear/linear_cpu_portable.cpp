// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The block kernel for every processor, and the choice among the versions. Sixteen floats as four
// short vectors, the registers of SSE2 and NEON.
#include <cstring>

#include "host/linear/linear_cpu_block.hpp"
#include "host/linear/linear_cpu_tile.hpp"
#include "wide/convert.hpp"

namespace wide::cpu {

namespace {

struct Portable {
  static constexpr int kTileRows = 1, kTileColumns = 2;
  using Quarter = float __attribute__((vector_size(16)));
  Quarter v[4];

  static Portable zero() { return {}; }
  static Portable load(const float* from) {
    Portable out;
    std::memcpy(out.v, from, sizeof(out.v));
    return out;
  }
  static Portable fma(const Portable& a, const Portable& b, const Portable& sum) {
    Portable out;
    for (int i = 0; i < 4; ++i) out.v[i] = a.v[i] * b.v[i] + sum.v[i];
    return out;
  }
  void store(float* to) const { std::memcpy(to, v, sizeof(v)); }
  float sum() const {
    const Quarter four = (v[0] + v[2]) + (v[1] + v[3]);
    return (four[0] + four[2]) + (four[1] + four[3]);
  }
  static void decode_fp16(const uint16_t* from, float* to) {
    decode_row(Dtype::fp16, from, to, kLanes);
  }
  static void decode_bf16(const uint16_t* from, float* to) {
    decode_row(Dtype::bf16, from, to, kLanes);
  }
};

}  // namespace

void linear_block_portable(const LinearBlock& block) {
  compute_block<Portable>(block);
}

LinearBlockKernel best_linear_block() {
#if defined(__x86_64__) && !defined(__clang__)  // clang lacks the other versions
  static const LinearBlockKernel best = [] {
    __builtin_cpu_init();
    if (linear_block_avx512 != nullptr && __builtin_cpu_supports("avx512f")) {
      return linear_block_avx512;
    }
    if (linear_block_avx2 != nullptr && __builtin_cpu_supports("avx2") &&
        __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) {
      return linear_block_avx2;
    }
    return LinearBlockKernel{linear_block_portable};
  }();
  return best;
#else
  return linear_block_portable;
#endif
}

}  // namespace wide::cpu
