// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Rows of features normalised on their own: layernorm, and rmsnorm, which takes no mean off.
//
// Plan: a row is read once, kept in the registers of a warp (up to 1024 features) or of a block
// (256 threads up to 8192, 512 up to 16384), and written once. Rows are numbered (row, member),
// members fastest: neighbours in the packed x; gamma and beta of a member come through L1. Longer
// rows are read two or three times by a block of 512: all but the first time from L2. Statistics,
// in fp32: a first mean m from the sum, then d = x - m in place of x, and from d both the
// correction of the mean and the variance. The common offset of a row is gone after the
// subtraction, which is exact where it is large, so it costs no accuracy. Without a mean, d is x
// and the variance the mean square. A thread owns the same elements whether it moves them 16 bytes
// at a time (all addresses and strides multiples of 16 bytes) or one by one: alignment does not
// change a bit. Memory: one float per warp for the sums. Source of the method: Chan, Golub,
// LeVeque, "Algorithms for Computing the Sample Variance", 1983 (the corrected two-pass algorithm).
#pragma once

#include "kernels/common/dispatch.hpp"
#include "kernels/norm/norm_sums.cuh"
#include "kernels/norm/row_norm.hpp"

namespace wide::kernels {

/// A type rather than a value, because nvcc 13.0's stubs cannot name a class-type template
/// argument.
template <int threads_per_row_, int threads_per_block_, int floats_per_thread_>
struct RowNormPolicy {
  static constexpr int threads_per_row = threads_per_row_;  ///< a warp, or a whole block
  static constexpr int threads_per_block = threads_per_block_;
  static constexpr int floats_per_thread = floats_per_thread_;  ///< kept in registers
  static constexpr int64_t max_features = int64_t{threads_per_row} * floats_per_thread;
};

/// The sum over the threads of a row, in all of them.
template <class Policy>
__device__ float row_sum(float value, float* place) {
  return sum_over_warps(value, place, Policy::threads_per_row / kWarp);
}

/// Elements [first, first + kSize) of a row; what lies behind its end is `fill`.
template <class T>
__device__ Vec16<T> load_chunk(const T* row, int64_t first, int64_t features, bool is_aligned) {
  if (is_aligned && first < features) return load_vec16(row + first);
  Vec16<T> chunk;
#pragma unroll
  for (int i = 0; i < Vec16<T>::kSize; ++i) {
    chunk.v[i] = first + i < features ? row[first + i] : from_float<T>(0.0f);
  }
  return chunk;
}

template <class T>
__device__ void store_chunk(T* row, int64_t first, int64_t features, bool is_aligned,
                            const Vec16<T>& chunk) {
  if (is_aligned) {
    if (first < features) store_vec16(row + first, chunk);
    return;
  }
#pragma unroll
  for (int i = 0; i < Vec16<T>::kSize; ++i) {
    if (first + i < features) row[first + i] = chunk.v[i];
  }
}

/// Scales, shifts and writes one chunk of centred values.
template <class T>
__device__ void write_chunk(const RowNormParams& p, T* y, int64_t member, int64_t first,
                            bool is_aligned, const float* centred, float mean, float scale) {
  const auto* gamma = static_cast<const T*>(p.gamma) + member * p.gamma_member_stride;
  const auto* beta = static_cast<const T*>(p.beta) + member * p.beta_member_stride;
  Vec16<T> weights, shifts, out;
  if (p.gamma != nullptr) weights = load_chunk(gamma, first, p.features, is_aligned);
  if (p.beta != nullptr) shifts = load_chunk(beta, first, p.features, is_aligned);
#pragma unroll
  for (int i = 0; i < Vec16<T>::kSize; ++i) {
    float value = (centred[i] - mean) * scale;
    if (p.gamma != nullptr) value *= to_float(weights.v[i]);
    if (p.beta != nullptr) value += to_float(shifts.v[i]);
    out.v[i] = from_float<T>(value);
  }
  store_chunk(y, first, p.features, is_aligned, out);
}

/// Of what rounding made of a variance; no number stays none.
__device__ inline float row_scale(float variance, float epsilon) {
  return 1.0f / sqrtf((variance < 0.0f ? 0.0f : variance) + epsilon);
}

template <class T, class Policy, bool is_centred>
__global__ void __launch_bounds__(Policy::threads_per_block)
    row_norm_kernel(const __grid_constant__ RowNormParams p, bool is_aligned) {
  constexpr int kSize = Vec16<T>::kSize;
  constexpr int kChunks = Policy::floats_per_thread / kSize;
  constexpr int kRowsPerBlock = Policy::threads_per_block / Policy::threads_per_row;
  __shared__ SumPlaces shared;
  const int64_t index =
      int64_t{blockIdx.x} * kRowsPerBlock + static_cast<int>(threadIdx.x) / Policy::threads_per_row;
  if (index >= p.rows * p.num_members)
    return;  // whole warps only: a block of one row never takes it
  const int64_t row = index / p.num_members, member = index - row * p.num_members;
  const T* x = static_cast<const T*>(p.x) + row * p.x_row_stride + member * p.x_member_stride;
  T* y = static_cast<T*>(p.y) + row * p.y_row_stride + member * p.y_member_stride;
  const int thread = static_cast<int>(threadIdx.x) % Policy::threads_per_row;
  const auto first_of = [&](int chunk) {
    return (int64_t{chunk} * Policy::threads_per_row + thread) * kSize;
  };

  // Read the row: all loads first, then the sum.
  float values[kChunks * kSize];
  Vec16<T> loaded[kChunks];
#pragma unroll
  for (int c = 0; c < kChunks; ++c) loaded[c] = load_chunk(x, first_of(c), p.features, is_aligned);
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < kChunks * kSize; ++j)
    sum += values[j] = to_float(loaded[j / kSize].v[j % kSize]);
  const auto inverse = 1.0f / static_cast<float>(p.features);
  const float rough_mean = is_centred ? row_sum<Policy>(sum, shared[0]) * inverse : 0.0f;

  // Centre it, and take both moments of what is left.
  float rest = 0.0f, squares = 0.0f;
#pragma unroll
  for (int j = 0; j < kChunks * kSize; ++j) {
    const bool exists = first_of(j / kSize) + j % kSize < p.features;
    values[j] = exists ? values[j] - rough_mean : 0.0f;
    rest += values[j];
    squares += values[j] * values[j];
  }
  const float mean = is_centred ? row_sum<Policy>(rest, shared[1]) * inverse : 0.0f;
  const float scale =
      row_scale(row_sum<Policy>(squares, shared[2]) * inverse - mean * mean, p.epsilon);

#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    write_chunk(p, y, member, first_of(c), is_aligned, values + c * kSize, mean, scale);
  }
}

/// Rows that no block can hold: read again for each pass.
template <class T, class Policy, bool is_centred>
__global__ void __launch_bounds__(Policy::threads_per_block)
    row_norm_long_kernel(const __grid_constant__ RowNormParams p, bool is_aligned) {
  constexpr int kSize = Vec16<T>::kSize;
  __shared__ SumPlaces shared;
  const int64_t index = blockIdx.x;
  const int64_t row = index / p.num_members, member = index - row * p.num_members;
  const T* x = static_cast<const T*>(p.x) + row * p.x_row_stride + member * p.x_member_stride;
  T* y = static_cast<T*>(p.y) + row * p.y_row_stride + member * p.y_member_stride;
  const int64_t step = int64_t{Policy::threads_per_row} * kSize,
                start = int64_t{threadIdx.x} * kSize;
  const auto inverse = 1.0f / static_cast<float>(p.features);

  float rough_mean = 0.0f;
  if constexpr (is_centred) {
    float sum = 0.0f;
    for (int64_t first = start; first < p.features; first += step) {
      const Vec16<T> chunk = load_chunk(x, first, p.features, is_aligned);
#pragma unroll
      for (int i = 0; i < kSize; ++i) sum += to_float(chunk.v[i]);
    }
    rough_mean = row_sum<Policy>(sum, shared[0]) * inverse;
  }
  float rest = 0.0f, squares = 0.0f;
  for (int64_t first = start; first < p.features; first += step) {
    const Vec16<T> chunk = load_chunk(x, first, p.features, is_aligned);
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      const float d = first + i < p.features ? to_float(chunk.v[i]) - rough_mean : 0.0f;
      rest += d;
      squares += d * d;
    }
  }
  const float mean = is_centred ? row_sum<Policy>(rest, shared[1]) * inverse : 0.0f;
  const float scale =
      row_scale(row_sum<Policy>(squares, shared[2]) * inverse - mean * mean, p.epsilon);
  for (int64_t first = start; first < p.features; first += step) {
    const Vec16<T> chunk = load_chunk(x, first, p.features, is_aligned);
    float centred[kSize];
#pragma unroll
    for (int i = 0; i < kSize; ++i) centred[i] = to_float(chunk.v[i]) - rough_mean;
    write_chunk(p, y, member, first, is_aligned, centred, mean, scale);
  }
}

using ShortRow = RowNormPolicy<32, 128, 8>;    // up to 256 features
using WarpRow = RowNormPolicy<32, 128, 32>;    // up to 1024
using BlockRow = RowNormPolicy<256, 256, 32>;  // up to 8192
using WideRow = RowNormPolicy<512, 512, 32>;   // up to 16384

template <class T>
bool is_aligned16(const RowNormParams& p) {
  const int64_t strides = p.features | p.x_row_stride | p.x_member_stride | p.y_row_stride |
                          p.y_member_stride | p.gamma_member_stride | p.beta_member_stride;
  const auto addresses = reinterpret_cast<uintptr_t>(p.x) | reinterpret_cast<uintptr_t>(p.y) |
                         reinterpret_cast<uintptr_t>(p.gamma) | reinterpret_cast<uintptr_t>(p.beta);
  return strides % Vec16<T>::kSize == 0 && addresses % 16 == 0;
}

template <class T, class Policy, bool is_centred>
cudaError_t launch_rows(const RowNormParams& p, cudaStream_t stream) {
  constexpr int64_t rows_per_block = Policy::threads_per_block / Policy::threads_per_row;
  const int64_t blocks = (p.rows * p.num_members + rows_per_block - 1) / rows_per_block;
  if (blocks > 0x7fffffff) return cudaErrorInvalidConfiguration;
  const auto grid = static_cast<unsigned>(blocks);
  if (p.features > Policy::max_features) {
    row_norm_long_kernel<T, WideRow, is_centred>
        <<<grid, WideRow::threads_per_block, 0, stream>>>(p, is_aligned16<T>(p));
  } else {
    row_norm_kernel<T, Policy, is_centred>
        <<<grid, Policy::threads_per_block, 0, stream>>>(p, is_aligned16<T>(p));
  }
  return cudaGetLastError();
}

template <bool is_centred>
cudaError_t launch_row_norm(Dtype dtype, const RowNormParams& p, cudaStream_t stream) {
  if (p.num_members * p.rows * p.features == 0) return cudaSuccess;
  return dispatch_float(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if (p.features <= ShortRow::max_features)
      return launch_rows<T, ShortRow, is_centred>(p, stream);
    if (p.features <= WarpRow::max_features) return launch_rows<T, WarpRow, is_centred>(p, stream);
    if (p.features <= BlockRow::max_features)
      return launch_rows<T, BlockRow, is_centred>(p, stream);
    return launch_rows<T, WideRow, is_centred>(p, stream);
  });
}

}  // namespace wide::kernels
