// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Rows of features normalised on their own: layernorm; rmsnorm, which takes no mean off; and
// chains, which first add up what they normalise, or do nothing more than that.
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
// change a bit. A chain's sum is rounded as it would be stored before it is normalised, whether or
// not it is: what comes out is bit for bit what the norm by itself makes of a stored sum. Memory:
// one float per warp for the sums. Source of the method: Chan, Golub, LeVeque, "Algorithms for
// Computing the Sample Variance", 1983 (the corrected two-pass algorithm).
#pragma once

#include "kernels/common/dispatch.hpp"
#include "kernels/norm/norm_sums.cuh"
#include "kernels/norm/row_norm.hpp"
#include "kernels/pointwise/pointwise_function.cuh"

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

enum class RowKind : uint8_t { layernorm, rmsnorm, chain };

/// Where a row of a member lies.
template <class T>
struct RowPlace {
  const T *x, *residual;
  T *y, *sum;
  int64_t member;

  __device__ RowPlace(const RowNormParams& p, int64_t index) {
    const int64_t row = index / p.num_members;
    member = index - row * p.num_members;
    x = static_cast<const T*>(p.x) + row * p.x_row_stride + member * p.x_member_stride;
    y = static_cast<T*>(p.y) + row * p.y_row_stride + member * p.y_member_stride;
    residual = static_cast<const T*>(p.residual) + row * p.residual_row_stride +
               member * p.residual_member_stride;
    sum = static_cast<T*>(p.sum) + row * p.sum_row_stride + member * p.sum_member_stride;
  }
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

/// What a chain adds up, of one chunk: residual + activation(x + bias), rounded.
template <class T>
__device__ void add_up(const RowNormParams& p, int64_t member, int64_t first, bool is_aligned,
                       const Vec16<T>& x, const Vec16<T>& residual, float* values) {
  constexpr int kSize = Vec16<T>::kSize;
#pragma unroll
  for (int i = 0; i < kSize; ++i) values[i] = to_float(x.v[i]);
  if (p.bias != nullptr) {
    const auto* bias = static_cast<const T*>(p.bias) + member * p.bias_member_stride;
    const Vec16<T> shifts = load_chunk(bias, first, p.features, is_aligned);
#pragma unroll
    for (int i = 0; i < kSize; ++i) values[i] += to_float(shifts.v[i]);
  }
  if (p.activation == Activation::relu) {
#pragma unroll
    for (int i = 0; i < kSize; ++i) values[i] = activate<Activation::relu>(values[i]);
  } else if (p.activation == Activation::gelu) {
#pragma unroll
    for (int i = 0; i < kSize; ++i) values[i] = gelu(values[i]);
  } else if (p.activation == Activation::silu) {
#pragma unroll
    for (int i = 0; i < kSize; ++i) values[i] = silu(values[i]);
  }
  if (p.residual != nullptr) {
#pragma unroll
    for (int i = 0; i < kSize; ++i) values[i] += to_float(residual.v[i]);
  }
#pragma unroll
  for (int i = 0; i < kSize; ++i) values[i] = to_float(from_float<T>(values[i]));
}

/// Values that are of the type already.
template <class T>
__device__ void write_values(const RowNormParams& p, T* row, int64_t first, bool is_aligned,
                             const float* values) {
  Vec16<T> out;
#pragma unroll
  for (int i = 0; i < Vec16<T>::kSize; ++i) out.v[i] = from_float<T>(values[i]);
  store_chunk(row, first, p.features, is_aligned, out);
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

template <class T, class Policy, RowKind kKind>
__global__ void __launch_bounds__(Policy::threads_per_block)
    row_norm_kernel(const __grid_constant__ RowNormParams p, bool is_aligned) {
  constexpr int kSize = Vec16<T>::kSize;
  constexpr int kChunks = Policy::floats_per_thread / kSize;
  constexpr int kRowsPerBlock = Policy::threads_per_block / Policy::threads_per_row;
  constexpr bool kIsChain = kKind == RowKind::chain;
  const bool is_centred = kIsChain ? p.norm == ChainNorm::layernorm : kKind == RowKind::layernorm;
  __shared__ SumPlaces shared;
  const int64_t index =
      int64_t{blockIdx.x} * kRowsPerBlock + static_cast<int>(threadIdx.x) / Policy::threads_per_row;
  if (index >= p.rows * p.num_members)
    return;  // whole warps only: a block of one row never takes it
  const RowPlace<T> at(p, index);
  const int thread = static_cast<int>(threadIdx.x) % Policy::threads_per_row;
  const auto first_of = [&](int chunk) {
    return (int64_t{chunk} * Policy::threads_per_row + thread) * kSize;
  };

  // Read the row: all loads first, then the sum.
  float values[kChunks * kSize];
  Vec16<T> loaded[kChunks];
#pragma unroll
  for (int c = 0; c < kChunks; ++c)
    loaded[c] = load_chunk(at.x, first_of(c), p.features, is_aligned);
  if constexpr (kIsChain) {
    Vec16<T> added[kChunks] = {};
    if (p.residual != nullptr) {
#pragma unroll
      for (int c = 0; c < kChunks; ++c)
        added[c] = load_chunk(at.residual, first_of(c), p.features, is_aligned);
    }
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      float* chunk = values + c * kSize;
      add_up(p, at.member, first_of(c), is_aligned, loaded[c], added[c], chunk);
      if (p.sum != nullptr) write_values(p, at.sum, first_of(c), is_aligned, chunk);
      if (p.norm == ChainNorm::none) write_values(p, at.y, first_of(c), is_aligned, chunk);
    }
    if (p.norm == ChainNorm::none) return;
  } else {
#pragma unroll
    for (int j = 0; j < kChunks * kSize; ++j) values[j] = to_float(loaded[j / kSize].v[j % kSize]);
  }
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < kChunks * kSize; ++j) sum += values[j];
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
    write_chunk(p, at.y, at.member, first_of(c), is_aligned, values + c * kSize, mean, scale);
  }
}

/// Rows that no block can hold: read again for each pass.
template <class T, class Policy, RowKind kKind>
__global__ void __launch_bounds__(Policy::threads_per_block)
    row_norm_long_kernel(const __grid_constant__ RowNormParams p, bool is_aligned) {
  constexpr int kSize = Vec16<T>::kSize;
  constexpr bool kIsChain = kKind == RowKind::chain;
  const bool is_centred = kIsChain ? p.norm == ChainNorm::layernorm : kKind == RowKind::layernorm;
  __shared__ SumPlaces shared;
  const RowPlace<T> at(p, blockIdx.x);
  const int64_t step = int64_t{Policy::threads_per_row} * kSize,
                start = int64_t{threadIdx.x} * kSize;
  const auto inverse = 1.0f / static_cast<float>(p.features);
  const auto for_each_chunk = [&](const auto& f) {
    for (int64_t first = start; first < p.features; first += step) {
      const Vec16<T> chunk = load_chunk(at.x, first, p.features, is_aligned);
      float values[kSize];
      if constexpr (kIsChain) {
        Vec16<T> added = {};
        if (p.residual != nullptr) added = load_chunk(at.residual, first, p.features, is_aligned);
        add_up(p, at.member, first, is_aligned, chunk, added, values);
      } else {
#pragma unroll
        for (int i = 0; i < kSize; ++i) values[i] = to_float(chunk.v[i]);
      }
      f(first, values);
    }
  };

  float rough_mean = 0.0f;
  if (is_centred) {
    float sum = 0.0f;
    for_each_chunk([&](int64_t, const float* values) {
#pragma unroll
      for (int i = 0; i < kSize; ++i) sum += values[i];
    });
    rough_mean = row_sum<Policy>(sum, shared[0]) * inverse;
  }
  float rest = 0.0f, squares = 0.0f;
  if (!kIsChain || p.norm != ChainNorm::none) {
    for_each_chunk([&](int64_t first, const float* values) {
#pragma unroll
      for (int i = 0; i < kSize; ++i) {
        const float d = first + i < p.features ? values[i] - rough_mean : 0.0f;
        rest += d;
        squares += d * d;
      }
    });
  }
  const float mean = is_centred ? row_sum<Policy>(rest, shared[1]) * inverse : 0.0f;
  const float scale =
      row_scale(row_sum<Policy>(squares, shared[2]) * inverse - mean * mean, p.epsilon);
  // What is written may lie where the row was read: nobody reads it after this.
  for_each_chunk([&](int64_t first, const float* values) {
    if (kIsChain && p.sum != nullptr) write_values(p, at.sum, first, is_aligned, values);
    if (kIsChain && p.norm == ChainNorm::none) {
      return write_values(p, at.y, first, is_aligned, values);
    }
    float centred[kSize];
#pragma unroll
    for (int i = 0; i < kSize; ++i) centred[i] = values[i] - rough_mean;
    write_chunk(p, at.y, at.member, first, is_aligned, centred, mean, scale);
  });
}

using ShortRow = RowNormPolicy<32, 128, 8>;    // up to 256 features
using WarpRow = RowNormPolicy<32, 128, 32>;    // up to 1024
using BlockRow = RowNormPolicy<256, 256, 32>;  // up to 8192
using WideRow = RowNormPolicy<512, 512, 32>;   // up to 16384

template <class T>
bool is_aligned16(const RowNormParams& p) {
  const int64_t strides = p.features | p.x_row_stride | p.x_member_stride | p.y_row_stride |
                          p.y_member_stride | p.residual_row_stride | p.residual_member_stride |
                          p.sum_row_stride | p.sum_member_stride | p.bias_member_stride |
                          p.gamma_member_stride | p.beta_member_stride;
  uintptr_t addresses = 0;
  for (const void* address : {p.x, p.bias, p.residual, p.gamma, p.beta,
                              static_cast<const void*>(p.y), static_cast<const void*>(p.sum)}) {
    addresses |= reinterpret_cast<uintptr_t>(address);
  }
  return strides % Vec16<T>::kSize == 0 && addresses % 16 == 0;
}

template <class T, class Policy, RowKind kKind>
cudaError_t launch_rows(const RowNormParams& p, cudaStream_t stream) {
  constexpr int64_t rows_per_block = Policy::threads_per_block / Policy::threads_per_row;
  const int64_t blocks = (p.rows * p.num_members + rows_per_block - 1) / rows_per_block;
  if (blocks > 0x7fffffff) return cudaErrorInvalidConfiguration;
  const auto grid = static_cast<unsigned>(blocks);
  if (p.features > Policy::max_features) {
    row_norm_long_kernel<T, WideRow, kKind>
        <<<grid, WideRow::threads_per_block, 0, stream>>>(p, is_aligned16<T>(p));
  } else {
    row_norm_kernel<T, Policy, kKind>
        <<<grid, Policy::threads_per_block, 0, stream>>>(p, is_aligned16<T>(p));
  }
  return cudaGetLastError();
}

template <RowKind kKind>
cudaError_t launch_row_norm(Dtype dtype, const RowNormParams& p, cudaStream_t stream) {
  if (p.num_members * p.rows * p.features == 0) return cudaSuccess;
  return dispatch_float(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if (p.features <= ShortRow::max_features) return launch_rows<T, ShortRow, kKind>(p, stream);
    if (p.features <= WarpRow::max_features) return launch_rows<T, WarpRow, kKind>(p, stream);
    if (p.features <= BlockRow::max_features) return launch_rows<T, BlockRow, kKind>(p, stream);
    return launch_rows<T, WideRow, kKind>(p, stream);
  });
}

}  // namespace wide::kernels
