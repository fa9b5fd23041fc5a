// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operations on elements that all families use: conversion to and from fp32, 16-byte accesses, sums
// over a warp.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

namespace wide::kernels {

__device__ inline float to_float(float value) {
  return value;
}
__device__ inline float to_float(__half value) {
  return __half2float(value);
}
__device__ inline float to_float(__nv_bfloat16 value) {
  return __bfloat162float(value);
}

__device__ inline float to_float(__nv_fp8_e4m3 value) {
  return static_cast<float>(value);
}
__device__ inline float to_float(__nv_fp8_e5m2 value) {
  return static_cast<float>(value);
}

/// Rounds to nearest even.
template <class T>
__device__ inline T from_float(float value);
template <>
__device__ inline float from_float<float>(float value) {
  return value;
}
template <>
__device__ inline __half from_float<__half>(float value) {
  return __float2half_rn(value);
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}

/// Sixteen bytes of elements: one load or store instruction per thread.
template <class T>
struct alignas(16) Vec16 {
  static constexpr int kSize = static_cast<int>(16 / sizeof(T));
  T v[kSize];
};

/// `address` must be aligned to 16 bytes. Through uint4, because the compiler splits the copy of
/// an array of halves into pieces.
template <class T>
__device__ inline Vec16<T> load_vec16(const T* address) {
  const uint4 bits = *reinterpret_cast<const uint4*>(address);
  return *reinterpret_cast<const Vec16<T>*>(&bits);
}

/// The compiler may merge an ordinary store with the guarded one of single elements on the other
/// branch, and then emits single-element stores; the intrinsic is the same instruction and stays
/// whole.
template <class T>
__device__ inline void store_vec16(T* address, const Vec16<T>& value) {
  __stwb(reinterpret_cast<uint4*>(address), *reinterpret_cast<const uint4*>(&value));
}

/// The sum over the 32 lanes, in every lane, in a fixed order. All lanes take part.
__device__ inline float warp_sum(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  return value;
}

}  // namespace wide::kernels
