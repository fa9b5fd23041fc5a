// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Four neighbouring elements at a time, fp32 on the near side: 16 bytes of fp32, 8 of a 16-bit
// type. Through the built-in vector types, because the compiler splits copies of structs of four
// into four instructions.
#pragma once

#include <type_traits>

#include "kernels/common/numeric.cuh"

namespace wide::kernels {

template <class T>
using FourBits = std::conditional_t<sizeof(T) == 4, uint4, uint2>;

/// `address` aligned to four elements.
template <class T>
__device__ inline void load_four(const T* address, float (&out)[4]) {
  const FourBits<T> bits = *reinterpret_cast<const FourBits<T>*>(address);
  const T* values = reinterpret_cast<const T*>(&bits);
#pragma unroll
  for (int i = 0; i < 4; ++i) out[i] = to_float(values[i]);
}

/// The first `left` of four; the others are 0.
template <class T>
__device__ inline void load_some(const T* address, int left, float (&out)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) out[i] = i < left ? to_float(address[i]) : 0.0f;
}

/// Rounds. `address` aligned to four elements.
template <class T>
__device__ inline void store_four(T* address, const float (&values)[4]) {
  FourBits<T> bits;
  T* rounded = reinterpret_cast<T*>(&bits);
#pragma unroll
  for (int i = 0; i < 4; ++i) rounded[i] = from_float<T>(values[i]);
  // An ordinary store in the compiler's eyes would be merged with the guarded ones of store_some,
  // element by element; the intrinsic is the same instruction and stays whole.
  __stwb(reinterpret_cast<FourBits<T>*>(address), bits);
}

template <class T>
__device__ inline void store_some(T* address, int left, const float (&values)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (i < left) address[i] = from_float<T>(values[i]);
  }
}

}  // namespace wide::kernels
