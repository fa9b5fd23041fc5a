// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Loads of sixteen bytes of elements, several of which are to be in flight at once.
#pragma once

#include "kernels/arch/load.cuh"
#include "kernels/common/numeric.cuh"

namespace wide::kernels {

/// Like load_vec16(), all sixteen bytes in one load.
template <class T>
__device__ inline Vec16<T> load_vec16_here(const T* address) {
  const uint4 bits = arch::load(reinterpret_cast<const uint4*>(address));
  return *reinterpret_cast<const Vec16<T>*>(&bits);
}

/// Like load_vec16() if `exists`, else `fill`.
template <class T>
__device__ inline Vec16<T> load_vec16_if(const T* address, bool exists, const Vec16<T>& fill = {}) {
  uint4 bits = *reinterpret_cast<const uint4*>(&fill);
  arch::load_16_if(bits, address, exists);
  return *reinterpret_cast<const Vec16<T>*>(&bits);
}

}  // namespace wide::kernels
