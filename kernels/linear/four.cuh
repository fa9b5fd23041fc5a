// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Four neighbouring elements at a time (or two), as fp32 in registers: 16 bytes of fp32, 8 of a
// 16-bit type. Through the built-in vector types, because the compiler splits copies of structs of
// four into four instructions.
#pragma once

#include <cstdint>

#include "kernels/common/numeric.cuh"

namespace wide::kernels {

/// The bits of `kSize` elements, as the vector type of that size.
template <int kBytes>
struct GroupBits;
template <>
struct GroupBits<4> {
  using Type = uint32_t;
};
template <>
struct GroupBits<8> {
  using Type = uint2;
};
template <>
struct GroupBits<16> {
  using Type = uint4;
};
template <class T, int kSize>
using BitsOf = typename GroupBits<static_cast<int>(sizeof(T)) * kSize>::Type;

/// Two or four elements; `address` aligned to that many.
template <class T, int kSize>
__device__ inline void load_group(const T* address, float (&out)[kSize]) {
  const auto bits = *reinterpret_cast<const BitsOf<T, kSize>*>(address);
  const T* values = reinterpret_cast<const T*>(&bits);
#pragma unroll
  for (int i = 0; i < kSize; ++i) out[i] = to_float(values[i]);
}
template <class T>
__device__ inline void load_four(const T* address, float (&out)[4]) {
  load_group(address, out);
}

/// The first `left` elements; the others are 0.
template <class T, int kSize>
__device__ inline void load_some(const T* address, int left, float (&out)[kSize]) {
#pragma unroll
  for (int i = 0; i < kSize; ++i) out[i] = i < left ? to_float(address[i]) : 0.0f;
}

/// Rounds and stores. `address` aligned to four elements.
template <class T>
__device__ inline void store_four(T* address, const float (&values)[4]) {
  BitsOf<T, 4> bits;
  T* rounded = reinterpret_cast<T*>(&bits);
#pragma unroll
  for (int i = 0; i < 4; ++i) rounded[i] = from_float<T>(values[i]);
  // The compiler would merge an ordinary store with the guarded ones of store_some, element by
  // element; the intrinsic is the same instruction and stays whole.
  __stwb(reinterpret_cast<BitsOf<T, 4>*>(address), bits);
}

template <class T>
__device__ inline void store_some(T* address, int left, const float (&values)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (i < left) address[i] = from_float<T>(values[i]);
  }
}

}  // namespace wide::kernels
