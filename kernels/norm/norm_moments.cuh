// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Mean and variance of a slice by the threads of a block, or of four slices by a warp each.
//
// A slice is read once into shared memory, each thread to places of its own, so that only the sums
// need barriers; one that no block can hold is read three times, the first time a part of it only.
// Statistics, in fp32: a first mean m from the kept slice, or from a sample of s of its M values;
// then d = x - m, and from d both the correction of the mean and the variance. |m - mean|^2 is at
// most M / s variances, since the sample's part of the sum of squares is no more than all of it: a
// common offset is gone after the subtraction. Source of the method: Chan, Golub, LeVeque,
// "Algorithms for Computing the Sample Variance", 1983.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/norm/norm_staged.cuh"

namespace wide::kernels {

constexpr uint32_t kAtOnce = 4;          ///< chunks that a thread has under way
constexpr uint32_t kSliceThreads = 512;  ///< of a block, at most

struct SliceMoments {
  float rough_mean = 0;
  float mean = 0;      ///< of what is left without the rough one
  float variance = 0;  ///< biased; no number where a value is none
  float count = 0;
};

/// A slice, its team, and the team's part of the block's dynamic shared memory.
template <class T, bool is_kept>
class SliceReader {
 public:
  __device__ SliceReader(const NormSlice<T>& slice, const SliceAccess& access,
                         const SliceTeam& team, uint4* shared)
      : slice_(slice),
        team_(team),
        is_staged_(is_kept && access.is_staged()),
        kept_(reinterpret_cast<Vec16<T>*>(shared) +
              (is_kept ? team.place * (slice.num_chunks() + access.num_brought) : 0)),
        staged_(slice, access, team, kept_) {}

  __device__ SliceMoments moments(SumPlaces& places) const {
    const uint32_t end = slice_.num_chunks();
    const uint32_t sampled = is_kept ? end : min(end, kAtOnce * team_.threads);
    const int num_warps = static_cast<int>(team_.threads) / kWarp;
    float sum = 0.0f;
    const auto add = [&](uint32_t number, const Vec16<T>& chunk) {
#pragma unroll
      for (int i = 0; i < Vec16<T>::kSize; ++i) sum += to_float(chunk.v[i]);
      if (is_kept) kept_[number] = chunk;
    };
    if (is_staged_) {
      staged_.bring();
      for_each(
          sampled,
          [&](Vec16<T>(&chunks)[kAtOnce], uint32_t first) {
#pragma unroll
            for (uint32_t c = 0; c < kAtOnce; ++c)
              chunks[c] = staged_.chunk(first + c * team_.threads);
          },
          add);
    } else {
      for_each(
          sampled,
          [&](Vec16<T>(&chunks)[kAtOnce], uint32_t first) {
            slice_.load(chunks, first, team_.threads);
          },
          add);
    }
    SliceMoments m;
    m.rough_mean =
        sum_over_warps(sum, places[0], num_warps) / static_cast<float>(slice_.num_values(sampled));

    float rest = 0.0f, squares = 0.0f;
    for_each_chunk([&](uint32_t number, const Vec16<T>& chunk) {
      const auto count = static_cast<int>(slice_.count_of(number));
      const auto add_one = [&](T value) {
        const float d = to_float(value) - m.rough_mean;
        rest += d;
        squares += d * d;
      };
      if (count == Vec16<T>::kSize) {
#pragma unroll
        for (const T& value : chunk.v) add_one(value);
      } else {
#pragma unroll
        for (int i = 0; i < Vec16<T>::kSize; ++i) {
          if (i < count) add_one(chunk.v[i]);
        }
      }
    });
    m.count = static_cast<float>(slice_.num_values(end));
    m.mean = sum_over_warps(rest, places[1], num_warps) / m.count;
    const float variance =
        sum_over_warps(squares, places[2], num_warps) / m.count - m.mean * m.mean;
    m.variance = variance < 0.0f ? 0.0f : variance;
    return m;
  }

  /// Writes to y what f(number, chunk) makes of the slice's chunks, once the moments were taken.
  template <class F>
  __device__ void write(const F& f) const {
    if (is_staged_) {
      for_each_chunk(
          [&](uint32_t number, const Vec16<T>& chunk) { kept_[number] = f(number, chunk); });
      staged_.write();
    } else {
      for_each_chunk(
          [&](uint32_t number, const Vec16<T>& chunk) { slice_.store(number, f(number, chunk)); });
    }
  }

 private:
  /// Calls f(number, chunk) for this thread's chunks.
  template <class F>
  __device__ void for_each_chunk(const F& f) const {
    const auto fetch = [&](Vec16<T>(&chunks)[kAtOnce], uint32_t first) {
      if constexpr (is_kept) {
#pragma unroll
        for (uint32_t c = 0; c < kAtOnce; ++c) {
          const uint32_t number = first + c * team_.threads;
          if (number < slice_.num_chunks()) chunks[c] = kept_[number];
        }
      } else {
        slice_.load(chunks, first, team_.threads);
      }
    };
    for_each(slice_.num_chunks(), fetch, f);
  }

  /// kAtOnce chunks are fetched at a time.
  template <class Fetch, class F>
  __device__ void for_each(uint32_t end, const Fetch& fetch, const F& f) const {
    for (uint32_t first = team_.thread; first < end; first += kAtOnce * team_.threads) {
      Vec16<T> chunks[kAtOnce];
      fetch(chunks, first);
#pragma unroll
      for (uint32_t c = 0; c < kAtOnce; ++c) {
        const uint32_t number = first + c * team_.threads;
        if (number < end) f(number, chunks[c]);
      }
    }
  }

  const NormSlice<T>& slice_;
  SliceTeam team_;
  bool is_staged_;
  Vec16<T>* kept_;
  StagedSlice<T> staged_;
};

/// Threads for so many chunks, each with kAtOnce of them: whole warps, a power of two.
inline unsigned slice_threads(int64_t chunks, uint32_t most) {
  const auto wanted = static_cast<uint64_t>((chunks + kAtOnce - 1) / kAtOnce);
  return static_cast<unsigned>(std::clamp<uint64_t>(std::bit_ceil(wanted), kWarp, most));
}

/// Starts kept(p, access, slices_per_block), or unkept where a block's shared memory, of which a
/// device has `shared_bytes_per_block`, cannot hold the chunks of a slice.
template <class T, class Params>
cudaError_t launch_slices(void (*kept)(Params, SliceAccess, uint32_t),
                          void (*unkept)(Params, SliceAccess, uint32_t), const Params& p,
                          const SliceRuns& slice, int64_t shared_bytes_per_block,
                          cudaStream_t stream) {
  constexpr int64_t kBytesOfSums = 1024;  // and a little more
  const int64_t chunks = chunks_of<T>(p, slice.runs);
  const unsigned threads = slice_threads(chunks, kSliceThreads);
  const unsigned per_block = threads == kWarp ? 4 : 1;
  const int64_t blocks = (slice.slices + per_block - 1) / per_block;
  if (slice.slices > 0x7fffffff) return cudaErrorInvalidConfiguration;
  const int64_t most_bytes = shared_bytes_per_block - kBytesOfSums;
  const SliceAccess access = slice_access<T>(p, slice, most_bytes / per_block);
  const bool is_kept = chunks * 16 <= most_bytes;
  const int64_t bytes = is_kept ? (chunks + access.num_brought) * 16 * per_block : 0;
  if (is_kept) {
    const cudaError_t status = cudaFuncSetAttribute(
        kept, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
    if (status != cudaSuccess) return status;
  }
  (is_kept ? kept : unkept)<<<static_cast<unsigned>(blocks), threads * per_block,
                              static_cast<size_t>(bytes), stream>>>(p, access, per_block);
  return cudaGetLastError();
}

}  // namespace wide::kernels
