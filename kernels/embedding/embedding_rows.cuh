// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Rows of tables for the kernels of this folder: where a row is, and loading, decoding and storing
// a unit of it, 16 bytes of y where possible. y is written with a streaming hint, since the tables
// should stay in L2.
#pragma once

#include <cuda_runtime_api.h>

#include <type_traits>

#include "kernels/arch/load.cuh"
#include "kernels/common/numeric.cuh"
#include "kernels/embedding/embedding_params.hpp"

namespace wide::kernels {

__device__ inline int64_t load_id(const EmbeddingParams& p, const void* ids, int64_t index) {
  return p.id_bytes == 8 ? arch::load(static_cast<const int64_t*>(ids) + index)
                         : arch::load(static_cast<const int32_t*>(ids) + index);
}

/// Null where the id is out of range.
__device__ inline const char* table_row(const EmbeddingParams& p, int64_t member, int64_t id) {
  if (id < 0 || id >= p.vocab) return nullptr;
  return p.table + (member * p.table_member_stride + id * p.table_row_stride) * p.table_bytes;
}

template <class Unit>
__device__ inline Unit all_ones() {
  Unit unit;
  memset(&unit, 0xff, sizeof(unit));
  return unit;
}

/// The value of a code, without its row's scale.
template <WeightFormat kFormat>
__device__ inline float value_of(uint8_t code) {
  if constexpr (kFormat == WeightFormat::int8) {
    return static_cast<float>(code) - 128.0f;
  } else {
    return to_float(*reinterpret_cast<const __nv_fp8_e4m3*>(&code));
  }
}

/// The codes of a unit of 16 bytes of T.
template <class T>
using CodeUnit = std::conditional_t<sizeof(T) == 4, uint32_t, unsigned long long>;

__device__ inline const __nv_bfloat16* scale_of(const EmbeddingParams& p, const char* row) {
  return reinterpret_cast<const __nv_bfloat16*>(row + quantized_row_bytes(p.dim)) - 1;
}

/// In fp32, what rounds to 16 bytes of T.
template <class T>
struct FloatUnit {
  float v[Vec16<T>::kSize];
};

template <WeightFormat kFormat, class T>
__device__ inline FloatUnit<T> decoded(CodeUnit<T> codes, float scale) {
  FloatUnit<T> values;
#pragma unroll
  for (int e = 0; e < Vec16<T>::kSize; ++e) {
    values.v[e] = scale * value_of<kFormat>(static_cast<uint8_t>(codes >> (8 * e)));
  }
  return values;
}

template <class T>
__device__ inline Vec16<T> rounded(const FloatUnit<T>& values) {
  Vec16<T> out;
#pragma unroll
  for (int e = 0; e < Vec16<T>::kSize; ++e) out.v[e] = from_float<T>(values.v[e]);
  return out;
}

/// Unit `unit` of a row of y, except for elements past the row's end.
template <class T>
__device__ inline void store_unit(char* row, int64_t unit, int64_t dim, bool is_aligned,
                                  const Vec16<T>& values) {
  T* to = reinterpret_cast<T*>(row) + unit * Vec16<T>::kSize;
  const int64_t left = dim - unit * Vec16<T>::kSize;
  if (is_aligned && left >= Vec16<T>::kSize) {
    __stcs(reinterpret_cast<uint4*>(to), *reinterpret_cast<const uint4*>(&values));
    return;
  }
#pragma unroll
  for (int e = 0; e < Vec16<T>::kSize; ++e) {
    if (e < left) to[e] = values.v[e];
  }
}

/// Whether all rows of y begin at multiples of 16 bytes.
inline bool is_y_aligned16(const EmbeddingParams& p) {
  const int64_t strides = (p.y_row_stride | p.y_member_stride) * p.element_bytes;
  return strides % 16 == 0 && reinterpret_cast<uintptr_t>(p.y) % 16 == 0;
}

/// Calls f.template operator()<kFormat>() for a quantised format.
template <class F>
cudaError_t dispatch_quantized(WeightFormat format, F f) {
  switch (format) {
    case WeightFormat::fp8_e4m3:
      return f.template operator()<WeightFormat::fp8_e4m3>();
    case WeightFormat::int8:
      return f.template operator()<WeightFormat::int8>();
    default:
      return cudaErrorInvalidValue;
  }
}

/// Lanes for a row of `units` units, as a power of two up to a warp.
inline int lanes_log2_for(int64_t units) {
  int lanes_log2 = 0;
  while (lanes_log2 < 5 && (int64_t{1} << lanes_log2) < units) ++lanes_log2;
  return lanes_log2;
}

}  // namespace wide::kernels
