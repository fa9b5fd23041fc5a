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

#include "kernels/norm/norm_slice.cuh"
#include "kernels/norm/norm_sums.cuh"

namespace wide::kernels {

constexpr uint32_t kAtOnce = 4;          ///< chunks that a thread has under way
constexpr uint32_t kSliceThreads = 512;  ///< of a block, at most

/// The threads that work on one slice.
struct SliceTeam {
  uint32_t slice;  ///< its number
  uint32_t place;  ///< in the block
  uint32_t thread, threads;
};

__device__ inline SliceTeam slice_team(uint32_t slices_per_block) {
  const uint32_t threads = blockDim.x / slices_per_block, place = threadIdx.x / threads;
  return {blockIdx.x * slices_per_block + place, place, threadIdx.x - place * threads, threads};
}

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
  __device__ SliceReader(const NormSlice<T>& slice, const SliceTeam& team, uint4* shared)
      : slice_(slice),
        team_(team),
        kept_(reinterpret_cast<Vec16<T>*>(shared) +
              (is_kept ? team.place * slice.num_chunks() : 0)) {}

  __device__ SliceMoments moments(SumPlaces& places) const {
    const uint32_t end = slice_.num_chunks();
    const uint32_t sampled = is_kept ? end : min(end, kAtOnce * team_.threads);
    const int num_warps = static_cast<int>(team_.threads) / kWarp;
    float sum = 0.0f;
    const auto load = [&](uint32_t number) { return slice_.load(number); };
    for_each(sampled, load, [&](uint32_t number, const Vec16<T>& chunk) {
#pragma unroll
      for (int i = 0; i < Vec16<T>::kSize; ++i) sum += to_float(chunk.v[i]);
      if (is_kept) kept_[number] = chunk;
    });
    SliceMoments m;
    m.rough_mean =
        sum_over_warps(sum, places[0], num_warps) / static_cast<float>(slice_.num_values(sampled));

    float rest = 0.0f, squares = 0.0f;
    for_each_chunk([&](uint32_t number, const Vec16<T>& chunk) {
      const uint32_t exist = slice_.count_of(number);
#pragma unroll
      for (uint32_t i = 0; i < Vec16<T>::kSize; ++i) {
        const float d = i < exist ? to_float(chunk.v[i]) - m.rough_mean : 0.0f;
        rest += d;
        squares += d * d;
      }
    });
    m.count = static_cast<float>(slice_.num_values(end));
    m.mean = sum_over_warps(rest, places[1], num_warps) / m.count;
    const float variance =
        sum_over_warps(squares, places[2], num_warps) / m.count - m.mean * m.mean;
    m.variance = variance < 0.0f ? 0.0f : variance;
    return m;
  }

  /// Calls f(number, chunk) for this thread's chunks, once the moments were taken.
  template <class F>
  __device__ void for_each_chunk(const F& f) const {
    for_each(
        slice_.num_chunks(),
        [&](uint32_t number) { return is_kept ? kept_[number] : slice_.load(number); }, f);
  }

 private:
  /// kAtOnce chunks are fetched at a time.
  template <class Fetch, class F>
  __device__ void for_each(uint32_t end, const Fetch& fetch, const F& f) const {
    for (uint32_t first = team_.thread; first < end; first += kAtOnce * team_.threads) {
      Vec16<T> chunks[kAtOnce];
#pragma unroll
      for (uint32_t c = 0; c < kAtOnce; ++c) {
        const uint32_t number = first + c * team_.threads;
        if (number < end) chunks[c] = fetch(number);
      }
#pragma unroll
      for (uint32_t c = 0; c < kAtOnce; ++c) {
        const uint32_t number = first + c * team_.threads;
        if (number < end) f(number, chunks[c]);
      }
    }
  }

  const NormSlice<T>& slice_;
  SliceTeam team_;
  Vec16<T>* kept_;
};

/// Threads for so many chunks, each with kAtOnce of them: whole warps, a power of two.
inline unsigned slice_threads(int64_t chunks, uint32_t most) {
  const auto wanted = static_cast<uint64_t>((chunks + kAtOnce - 1) / kAtOnce);
  return static_cast<unsigned>(std::clamp<uint64_t>(std::bit_ceil(wanted), kWarp, most));
}

/// Starts kept(p, is_aligned, slices_per_block), or unkept where a block's shared memory, of which
/// a device has `shared_bytes_per_block`, cannot hold the chunks of a slice.
template <class T, class Params>
cudaError_t launch_slices(void (*kept)(Params, bool, uint32_t),
                          void (*unkept)(Params, bool, uint32_t), const Params& p, int64_t slices,
                          int64_t chunks, int64_t shared_bytes_per_block, cudaStream_t stream) {
  constexpr int64_t kBytesOfSums = 1024;  // and a little more
  const unsigned threads = slice_threads(chunks, kSliceThreads);
  const unsigned per_block = threads == kWarp ? 4 : 1;
  const int64_t blocks = (slices + per_block - 1) / per_block;
  if (slices > 0x7fffffff) return cudaErrorInvalidConfiguration;
  const bool is_kept = chunks <= (shared_bytes_per_block - kBytesOfSums) / 16;
  const int64_t bytes = is_kept ? chunks * 16 * per_block : 0;
  if (is_kept) {
    const cudaError_t status = cudaFuncSetAttribute(
        kept, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
    if (status != cudaSuccess) return status;
  }
  (is_kept ? kept : unkept)<<<static_cast<unsigned>(blocks), threads * per_block,
                              static_cast<size_t>(bytes), stream>>>(p, is_aligned16<T>(p),
                                                                    per_block);
  return cudaGetLastError();
}

}  // namespace wide::kernels
