// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Vectors of 2 to 16 bytes.
#pragma once

#include <cstdint>
#include <type_traits>

namespace wide::kernels {

/// What one instruction moves.
template <int kBytes>
using Word = std::conditional_t<
    kBytes == 16, uint4,
    std::conditional_t<kBytes == 8, uint2, std::conditional_t<kBytes == 4, uint32_t, uint16_t>>>;

/// kCount elements that one instruction moves: through the type of as many bytes, like
/// load_vec16().
template <class T, int kCount>
struct alignas(kCount * sizeof(T)) Vector {
  using Bits = Word<kCount* static_cast<int>(sizeof(T))>;
  T v[kCount];

  __device__ static Vector load(const T* address) {
    const Bits bits = *reinterpret_cast<const Bits*>(address);
    return *reinterpret_cast<const Vector*>(&bits);
  }
  __device__ void store(T* address) const {
    *reinterpret_cast<Bits*>(address) = *reinterpret_cast<const Bits*>(this);
  }
};

}  // namespace wide::kernels
