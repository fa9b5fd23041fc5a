// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Rows of elements as the CPU device computes with them: a chunk of floats at a time, decoded to
// the stack unless they are floats already.
#pragma once

#include <algorithm>
#include <cstdint>

#include "host/core/independent.hpp"
#include "wide/convert.hpp"
#include "wide/strides.hpp"

namespace wide {

/// Where a row of a member begins.
inline const char* row_at(const void* data, const RowStrides& strides, int64_t row, int64_t member,
                          Dtype dtype) {
  return static_cast<const char*>(data) +
         (row * strides.row + member * strides.member) * dtype_bytes(dtype);
}
inline char* row_at(void* data, const RowStrides& strides, int64_t row, int64_t member,
                    Dtype dtype) {
  return static_cast<char*>(data) +
         (row * strides.row + member * strides.member) * dtype_bytes(dtype);
}

namespace cpu {

constexpr int64_t kRowChunk = 512;

/// Elements [first, first + count) of a row as floats: themselves, or decoded into `buffer`.
inline const float* chunk_of(Dtype dtype, const void* row, int64_t first, int64_t count,
                             float* buffer) {
  if (dtype == Dtype::fp32) return static_cast<const float*>(row) + first;
  decode_row(dtype, static_cast<const char*>(row) + first * dtype_bytes(dtype), buffer, count);
  return buffer;
}

/// Calls f(values, first, count) for the chunks of a row.
template <class F>
void for_each_chunk(Dtype dtype, const void* row, int64_t features, const F& f) {
  float buffer[kRowChunk];
  for (int64_t first = 0; first < features; first += kRowChunk) {
    const int64_t count = std::min(kRowChunk, features - first);
    f(chunk_of(dtype, row, first, count, buffer), first, count);
  }
}

/// Calls f(values, out, first, count) for the chunks of row x; the outs form row y. `out` may
/// be `values`.
template <class F>
void transform_row(Dtype dtype, const void* x, void* y, int64_t features, const F& f) {
  float results[kRowChunk];
  for_each_chunk(dtype, x, features, [&](const float* values, int64_t first, int64_t count) {
    if (dtype == Dtype::fp32) return f(values, static_cast<float*>(y) + first, first, count);
    f(values, results, first, count);
    encode_row(dtype, results, static_cast<char*>(y) + first * dtype_bytes(dtype), count);
  });
}

/// out[i] = f(values[i]); `out` may be `values`.
template <class F>
void map(const float* values, float* out, int64_t count, const F& f) {
  WIDE_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) out[i] = f(values[i]);
}

/// out[i] = f(values[i], others[i]); `out` may be either.
template <class F>
void map(const float* values, const float* others, float* out, int64_t count, const F& f) {
  WIDE_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) out[i] = f(values[i], others[i]);
}

}  // namespace cpu
}  // namespace wide
