// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y[r, n, :] = exp(x[r, n, :] - max) / sum exp(x[r, n, :] - max), or its logarithm
//
// Plan: a row is read once, kept in the registers of a warp (up to 1024 features) or of a block of
// 256 threads (up to 8192), and written once. Rows are numbered (row, member), members fastest:
// neighbours in the packed x. Longer rows are read twice by a block of 512: once for the largest
// value and the sum together, each thread correcting its sum whenever its largest value grows, and
// once, from L2, to write. Which elements a thread owns, and so the order of the sum, depends on
// the number of features alone: whole vectors of 16 bytes where those divide it, moved one by one
// where addresses are not aligned; else every so many-th element, so that neighbouring lanes move
// neighbours whatever the alignment. Memory: two floats per warp. Source of the method: Milakov,
// Gimelshein, "Online normalizer calculation for softmax", 2018, arXiv:1805.02867.
#include "kernels/common/dispatch.hpp"
#include "kernels/common/numeric.cuh"
#include "kernels/pointwise/softmax_wide.hpp"

namespace wide::kernels {

namespace {

constexpr int kWarp = 32;

/// A type rather than a value, because nvcc 13.0's stubs cannot name a class-type template
/// argument.
template <int threads_per_row_, int threads_per_block_, int floats_per_thread_>
struct SoftmaxPolicy {
  static constexpr int threads_per_row = threads_per_row_;  ///< a warp, or a whole block
  static constexpr int threads_per_block = threads_per_block_;
  static constexpr int floats_per_thread = floats_per_thread_;  ///< kept in registers
  static constexpr int64_t max_features = int64_t{threads_per_row} * floats_per_thread;
};

using ShortRow = SoftmaxPolicy<32, 128, 8>;    // up to 256 features
using WarpRow = SoftmaxPolicy<32, 128, 32>;    // up to 1024
using BlockRow = SoftmaxPolicy<256, 256, 32>;  // up to 8192
constexpr int kLongRowThreads = 512;

/// How the elements of a row are moved: the same for all rows of a launch.
struct Access {
  bool is_strided = false;  ///< every so many-th element is a thread's
  bool is_aligned = false;  ///< whole vectors
};

/// A thread's share of a row, in chunks of a vector's elements.
template <class T, int threads>
struct Share {
  static constexpr int kSize = Vec16<T>::kSize;
  const SoftmaxParams& p;
  Access access;
  int thread;

  __device__ int64_t position(int64_t chunk, int e) const {
    return access.is_strided ? (chunk * kSize + e) * threads + thread
                             : (chunk * threads + thread) * kSize + e;
  }
  /// What lies behind the row's end is -infinity, whose exp is 0.
  __device__ void load(float (&values)[kSize], const T* row, int64_t chunk) const {
    if (access.is_aligned && position(chunk, 0) < p.features) {
      const Vec16<T> vector = load_vec16(row + position(chunk, 0));
#pragma unroll
      for (int e = 0; e < kSize; ++e) values[e] = to_float(vector.v[e]);
      return;
    }
#pragma unroll
    for (int e = 0; e < kSize; ++e) {
      const int64_t at = position(chunk, e);
      values[e] = at < p.features ? to_float(row[at]) : -INFINITY;
    }
  }
  __device__ void store(T* row, int64_t chunk, const float (&values)[kSize]) const {
    Vec16<T> out;
#pragma unroll
    for (int e = 0; e < kSize; ++e) out.v[e] = from_float<T>(values[e]);
    if (access.is_aligned) {
      if (position(chunk, 0) < p.features) store_vec16(row + position(chunk, 0), out);
      return;
    }
#pragma unroll
    for (int e = 0; e < kSize; ++e) {
      const int64_t at = position(chunk, e);
      if (at < p.features) row[at] = out.v[e];
    }
  }
};

/// The largest over the 32 lanes, in every lane; NaN only where all are.
__device__ float warp_max(float value) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

/// What `reduce` makes of the values of all threads of a row, in all of them. `shared` is used by
/// no other reduction.
template <int threads, class Reduce>
__device__ float reduce_row(float value, float nothing, float* shared, Reduce reduce) {
  value = reduce(value);
  if constexpr (threads > kWarp) {
    const int warp = static_cast<int>(threadIdx.x) / kWarp,
              lane = static_cast<int>(threadIdx.x) % kWarp;
    if (lane == 0) shared[warp] = value;
    __syncthreads();
    value = reduce(lane < threads / kWarp ? shared[lane] : nothing);
  }
  return value;
}
template <int threads>
__device__ float row_max(float value, float* shared) {
  return reduce_row<threads>(value, -INFINITY, shared, [](float v) { return warp_max(v); });
}
template <int threads>
__device__ float row_sum(float value, float* shared) {
  return reduce_row<threads>(value, 0.0f, shared, [](float v) { return warp_sum(v); });
}

/// Where a row's elements are; `index` numbers (row, member).
struct Place {
  int64_t x, y;

  __device__ Place(const SoftmaxParams& p, const Divisor& by_members, int64_t index) {
    int64_t member;
    const int64_t row = by_members.divide(index, member);
    x = row * p.x_row_stride + member * p.x_member_stride;
    y = row * p.y_row_stride + member * p.y_member_stride;
  }
};

template <class T, class Policy>
__global__ void __launch_bounds__(Policy::threads_per_block)
    softmax_kernel(const __grid_constant__ SoftmaxParams p,
                   const __grid_constant__ Divisor by_members, Access access) {
  constexpr int kThreads = Policy::threads_per_row;
  constexpr int kRowsPerBlock = Policy::threads_per_block / kThreads;
  constexpr int kSize = Vec16<T>::kSize;
  constexpr int kChunks = Policy::floats_per_thread / kSize;
  __shared__ float shared[2][kWarp];
  const int64_t index =
      int64_t{blockIdx.x} * kRowsPerBlock + static_cast<int>(threadIdx.x) / kThreads;
  if (index >= p.rows * p.num_members)
    return;  // whole warps only: a block of one row never takes it
  const Place place(p, by_members, index);
  const Share<T, kThreads> share{p, access, static_cast<int>(threadIdx.x) % kThreads};

  // Read the row: all loads first.
  float values[kChunks][kSize];
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    share.load(values[c], static_cast<const T*>(p.x) + place.x, c);
  }
  float largest = -INFINITY;
#pragma unroll
  for (int j = 0; j < kChunks * kSize; ++j) {
    largest = fmaxf(largest, values[j / kSize][j % kSize]);
  }
  largest = row_max<kThreads>(largest, shared[0]);

  // The logarithm needs the differences, softmax itself their exponentials.
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < kChunks * kSize; ++j) {
    float& value = values[j / kSize][j % kSize];
    const float difference = value - largest;
    const float power = expf(difference);
    sum += power;
    value = p.is_log ? difference : power;
  }
  sum = row_sum<kThreads>(sum, shared[1]);
  const float factor = p.is_log ? 1.0f : 1.0f / sum, shift = p.is_log ? logf(sum) : 0.0f;
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
#pragma unroll
    for (int e = 0; e < kSize; ++e) values[c][e] = (values[c][e] - shift) * factor;
    share.store(static_cast<T*>(p.y) + place.y, c, values[c]);
  }
}

/// Rows that no block can hold.
template <class T>
__global__ void __launch_bounds__(kLongRowThreads)
    softmax_long_kernel(const __grid_constant__ SoftmaxParams p,
                        const __grid_constant__ Divisor by_members, Access access) {
  constexpr int kThreads = kLongRowThreads;
  constexpr int kSize = Vec16<T>::kSize;
  constexpr int kStep = kThreads * kSize;
  __shared__ float shared[2][kWarp];
  const Place place(p, by_members, blockIdx.x);
  const Share<T, kThreads> share{p, access, static_cast<int>(threadIdx.x)};
  const T* x = static_cast<const T*>(p.x) + place.x;
  const auto chunks = (p.features + kStep - 1) / kStep;

  // A thread's largest value so far, and the sum of exp(value - largest).
  float largest = -INFINITY, sum = 0.0f, values[kSize];
#pragma unroll 4
  for (int64_t c = 0; c < chunks; ++c) {
    share.load(values, x, c);
    float next = largest;
#pragma unroll
    for (int e = 0; e < kSize; ++e) next = fmaxf(next, values[e]);
    // Not exp(-infinity + infinity): until the first finite value there is nothing to correct, and
    // -infinity adds nothing. NaN differs from everything, so it is added.
    sum *= next == largest ? 1.0f : expf(largest - next);
#pragma unroll
    for (int e = 0; e < kSize; ++e) {
      sum += values[e] == -INFINITY ? 0.0f : expf(values[e] - next);
    }
    largest = next;
  }
  const float top = row_max<kThreads>(largest, shared[0]);
  sum = row_sum<kThreads>(largest == top ? sum : sum * expf(largest - top), shared[1]);
  const float factor = p.is_log ? 1.0f : 1.0f / sum, shift = p.is_log ? logf(sum) : 0.0f;
#pragma unroll 4
  for (int64_t c = 0; c < chunks; ++c) {
    share.load(values, x, c);
#pragma unroll
    for (int e = 0; e < kSize; ++e) {
      const float difference = values[e] - top;
      values[e] = p.is_log ? difference - shift : expf(difference) * factor;
    }
    share.store(static_cast<T*>(p.y) + place.y, c, values);
  }
}

template <class T>
Access access_of(const SoftmaxParams& p) {
  const int64_t strides = p.x_row_stride | p.x_member_stride | p.y_row_stride | p.y_member_stride;
  const auto addresses = reinterpret_cast<uintptr_t>(p.x) | reinterpret_cast<uintptr_t>(p.y);
  const bool is_strided = p.features % Vec16<T>::kSize != 0;
  return {is_strided, !is_strided && strides % Vec16<T>::kSize == 0 && addresses % 16 == 0};
}

/// `kernel` with so many blocks as rows need.
template <class T, class Kernel>
cudaError_t launch(Kernel* kernel, int64_t rows_per_block, int threads, const SoftmaxParams& p,
                   cudaStream_t stream) {
  const int64_t blocks = (p.rows * p.num_members + rows_per_block - 1) / rows_per_block;
  if (blocks > 0x7fffffff) return cudaErrorInvalidConfiguration;
  kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), 0, stream>>>(
      p, Divisor(p.num_members), access_of<T>(p));
  return cudaGetLastError();
}

template <class T, class Policy>
cudaError_t launch_policy(const SoftmaxParams& p, cudaStream_t stream) {
  return launch<T>(softmax_kernel<T, Policy>, Policy::threads_per_block / Policy::threads_per_row,
                   Policy::threads_per_block, p, stream);
}

}  // namespace

cudaError_t launch_softmax_wide(Dtype dtype, const SoftmaxParams& p, cudaStream_t stream) {
  if (p.num_members * p.rows * p.features == 0) return cudaSuccess;
  return dispatch_float(dtype, [&]<class T>(std::type_identity<T>) {
    if (p.features <= ShortRow::max_features) return launch_policy<T, ShortRow>(p, stream);
    if (p.features <= WarpRow::max_features) return launch_policy<T, WarpRow>(p, stream);
    if (p.features <= BlockRow::max_features) return launch_policy<T, BlockRow>(p, stream);
    return launch<T>(softmax_long_kernel<T>, 1, kLongRowThreads, p, stream);
  });
}

}  // namespace wide::kernels
