// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y[r, n, :] = exp(x[r, n, :] - max) / sum exp(x[r, n, :] - max), or its logarithm
//
// Plan: a row is read once, kept in the registers of 4 to 32 lanes (up to 1024 features) or of a
// block of 2 to 16 warps (up to 16384), and written once (rows.cuh). Rows are numbered (row,
// member), members fastest: neighbours in the packed x. Longer rows are read twice by a block of
// 1024 threads: once for the largest value and the sum together, each thread rescaling its sum
// whenever its largest value grows, and once, from L2, to write. Memory: two floats per warp, and a
// block's rows where they are not whole vectors of 16 bytes. Source of the method: Milakov,
// Gimelshein, "Online normalizer calculation for softmax", 2018, arXiv:1805.02867.
#include "kernels/arch/grid.cuh"
#include "kernels/arch/math.cuh"
#include "kernels/common/dispatch.hpp"
#include "kernels/common/rows.cuh"
#include "kernels/pointwise/softmax_wide.hpp"

namespace wide::kernels {

namespace {

/// NaN only where all values are.
template <class Policy>
__device__ float row_max(float value, float (*shared)[kWarp]) {
  float values[]{value};
  over_row<Policy>(values, -INFINITY, shared, [](float a, float b) { return fmaxf(a, b); });
  return values[0];
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

/// exp(difference), which is not positive.
__device__ inline float power_of(float difference) {
  return arch::exp2_gradually(kLog2E * difference);
}

/// Blocks of short rows a multiprocessor: as many as registers hold without spills. 0: no minimum.
template <class Policy>
constexpr int kResidentBlocks = Policy::is_block            ? 0
                                : Policy::kept_floats == 16 ? 10
                                                            : 8;

template <class T, class Policy>
__global__ void __launch_bounds__(Policy::max_block, kResidentBlocks<Policy>)
    softmax_kernel(const __grid_constant__ SoftmaxParams p,
                   const __grid_constant__ Divisor by_members,
                   const __grid_constant__ RowAccess access) {
  constexpr int kSize = Vec16<T>::kSize;
  constexpr int kChunks = Policy::kept_floats / kSize;
  extern __shared__ uint4 staged[];
  __shared__ float shared[2][kWarp];
  auto* kept = reinterpret_cast<T*>(staged);
  const RowTile<T, Policy> tile(access, p.features, p.rows * p.num_members);
  const auto share = tile.share();
  const auto x_of = [&](int64_t index) {
    return static_cast<const T*>(p.x) + Place(p, by_members, index).x;
  };
  const auto y_of = [&](int64_t index) {
    return static_cast<T*>(p.y) + Place(p, by_members, index).y;
  };
  const Place mine(p, by_members, tile.index());
  arch::follow_grid();

  // Read the row: all loads first.
  Vec16<T> chunks[kChunks];
  if (access.is_staged) {
    tile.bring(kept, x_of);
    arch::cp_async_wait<0>();
    __syncthreads();
  }
  share.load(chunks, tile.place(kept, static_cast<const T*>(p.x) + mine.x, x_of), -INFINITY);
  if (access.is_staged) __syncthreads();  // y may have another offset
  float values[Policy::kept_floats], largest = -INFINITY;
  for_values(access, values, [&](float& value, int i) {
    value = to_float(chunks[i / kSize].v[i % kSize]);
    largest = fmaxf(largest, value);
  });
  largest = row_max<Policy>(largest, shared);

  // The logarithm needs the differences, softmax itself their exponentials.
  float sum = 0.0f;
  for_values(access, values, [&](float& value, int) {
    const float difference = value - largest;
    const float power = power_of(difference);
    sum += power;
    value = p.is_log ? difference : power;
  });
  sum = row_sum<Policy>(sum, shared + 1);
  const float factor = p.is_log ? 1.0f : 1.0f / sum, shift = p.is_log ? -logf(sum) : 0.0f;
  const auto y = tile.place(kept, static_cast<T*>(p.y) + mine.y, y_of);
  for_kept<Policy::kept_floats>(access, [&](int first) {
#pragma unroll
    for (int c = first / kSize; c < (first + kRowPiece) / kSize; ++c) {
      Vec16<T> out;
#pragma unroll
      for (int e = 0; e < kSize; ++e) {
        out.v[e] = from_float<T>(fmaf(values[c * kSize + e], factor, shift));
      }
      share.store(y, c, out);
    }
  });
  if (!access.is_staged) return;
  __syncthreads();
  tile.write(kept, y_of);
}

/// A large block: the logits of a vocabulary are often those of few rows.
using LongSoftmaxRow = LongRow<1024>;

/// Rows that no block can hold.
template <class T>
__global__ void __launch_bounds__(LongSoftmaxRow::max_block)
    softmax_long_kernel(const __grid_constant__ SoftmaxParams p,
                        const __grid_constant__ Divisor by_members,
                        const __grid_constant__ RowAccess access) {
  constexpr int kSize = Vec16<T>::kSize;
  constexpr int kStep = LongSoftmaxRow::max_block * kSize;
  __shared__ float shared[2][kWarp];
  const Place place(p, by_members, blockIdx.x);
  const RowShare<T, LongSoftmaxRow> share(access, true);
  const T* x = static_cast<const T*>(p.x) + place.x;
  T* y = static_cast<T*>(p.y) + place.y;
  const auto chunks = static_cast<int>((p.features + kStep - 1) / kStep);
  arch::follow_grid();

  // f(chunk, its values), the loads of several before the first.
  const auto for_each_chunk = [&](const auto& f) {
    constexpr int kAtOnce = 4;
    for (int first = 0; first < chunks; first += kAtOnce) {
      Vec16<T> loaded[kAtOnce];
      share.load(loaded, {x, x}, -INFINITY, first);
#pragma unroll
      for (int c = 0; c < kAtOnce; ++c) {
        float values[kSize];
#pragma unroll
        for (int e = 0; e < kSize; ++e) values[e] = to_float(loaded[c].v[e]);
        f(first + c, values);
      }
    }
  };

  // A thread's largest value so far, and the sum of exp(value - largest): kStretch chunks at a
  // time, as a single sum would drift, and stagnate at about 2^24.
  constexpr int kStretch = 4096 / kSize;
  float largest = -INFINITY, sum = 0.0f, sum_before = 0.0f;
  for_each_chunk([&](int c, const float(&values)[kSize]) {
    if (c % kStretch == 0) {
      sum_before += sum;
      sum = 0.0f;
    }
    float next = largest;
#pragma unroll
    for (int e = 0; e < kSize; ++e) next = fmaxf(next, values[e]);
    const float correction = next == largest ? 1.0f : power_of(largest - next);
    sum_before *= correction;
    sum *= correction;
    // Not exp(-infinity + infinity), before the first finite value: -infinity adds nothing.
    const float base = next == -INFINITY ? 0.0f : next;
#pragma unroll
    for (int e = 0; e < kSize; ++e) sum += power_of(values[e] - base);
    largest = next;
  });
  sum += sum_before;
  const float top = row_max<LongSoftmaxRow>(largest, shared);
  sum = row_sum<LongSoftmaxRow>(largest == top ? sum : sum * power_of(largest - top), shared + 1);
  const float factor = p.is_log ? 1.0f : 1.0f / sum, shift = p.is_log ? logf(sum) : 0.0f;
  for_each_chunk([&](int c, const float(&values)[kSize]) {
    Vec16<T> out;
#pragma unroll
    for (int e = 0; e < kSize; ++e) {
      const float difference = values[e] - top;
      out.v[e] = from_float<T>(p.is_log ? difference - shift : power_of(difference) * factor);
    }
    share.store({y, y}, c, out);
  });
}

template <class T>
bool is_aligned16(const SoftmaxParams& p) {
  const int64_t strides = p.x_row_stride | p.x_member_stride | p.y_row_stride | p.y_member_stride;
  const auto addresses = reinterpret_cast<uintptr_t>(p.x) | reinterpret_cast<uintptr_t>(p.y);
  return strides % Vec16<T>::kSize == 0 && addresses % 16 == 0;
}

template <class T, class Policy>
RowLaunch launch_of(const SoftmaxParams& p) {
  const auto is_packed = [&](int64_t row_stride, int64_t member_stride) {
    return has_packed_rows(p.features, p.num_members, p.rows, row_stride, member_stride);
  };
  return row_launch<T, Policy>(
      p.rows, p.num_members, p.features, is_aligned16<T>(p),
      is_packed(p.x_row_stride, p.x_member_stride) && is_packed(p.y_row_stride, p.y_member_stride),
      1);
}

}  // namespace

cudaError_t launch_softmax_wide(Dtype dtype, const SoftmaxParams& p, cudaStream_t stream) {
  if (p.num_members * p.rows * p.features == 0) return cudaSuccess;
  return dispatch_float(dtype, [&]<class T>(std::type_identity<T>) {
    const auto launch = [&](auto* kernel, const RowLaunch& rows) {
      return launch_rows(kernel, rows, stream, p, Divisor(p.num_members));
    };
    if (p.features <= ShortRow<16>::max_features) {
      return launch(softmax_kernel<T, ShortRow<16>>, launch_of<T, ShortRow<16>>(p));
    }
    if (p.features <= ShortRow<32>::max_features) {
      return launch(softmax_kernel<T, ShortRow<32>>, launch_of<T, ShortRow<32>>(p));
    }
    if (p.features <= BlockRow::max_features) {
      return launch(softmax_kernel<T, BlockRow>, launch_of<T, BlockRow>(p));
    }
    return launch(softmax_long_kernel<T>, launch_of<T, LongSoftmaxRow>(p));
  });
}

}  // namespace wide::kernels
