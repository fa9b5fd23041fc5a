// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Mean and variance of a slice by a team of threads: all of a block, or one or a few warps. A
// block's teams take its slices in rounds.
//
// A slice is read once into shared memory, each thread to places of its own, so that only the sums
// need barriers; one that no block can hold is read three times, at first only a part of it, and
// short aligned ones stay in registers (norm_held.cuh).
// Statistics, in fp32: a first mean m from the kept slice, or from a sample of s of its M values;
// then d = x - m, and from d both the correction of the mean and the variance. |m - mean|^2 is at
// most M / s variances, since the sample's part of the sum of squares is at most all of it: the
// subtraction removes a common offset. Source of the method: Chan, Golub, LeVeque, "Algorithms for
// Computing the Sample Variance", 1983.
#pragma once

#include "kernels/norm/norm_staged.cuh"

namespace wide::kernels {

constexpr uint32_t kAtOnce = 4;          ///< chunks in flight per thread
constexpr uint32_t kSliceThreads = 512;  ///< per block, at most

struct SliceMoments {
  float rough_mean = 0;
  float mean = 0;      ///< of what remains after subtracting the rough one
  float variance = 0;  ///< biased; NaN where a value is NaN
  float count = 0;
};

/// The threads that work on one slice.
struct SliceTeam {
  uint32_t thread, threads;
};

/// A slice, its team, and the memory in which the block keeps it.
template <class T, bool is_kept>
class SliceReader {
 public:
  /// `place`: the slice's index in the block. Where the block has no such slice the team takes part
  /// in the sums, but adds nothing.
  __device__ SliceReader(const NormSlice<T>& slice, bool exists, uint32_t place,
                         const SliceTeam& team, Vec16<T>* kept, const StagedSlices<T>& staged)
      : slice_(slice),
        num_chunks_(exists ? slice.num_chunks() : 0),
        place_(place),
        team_(team),
        kept_(kept),
        staged_(staged) {}

  __device__ SliceMoments moments(SumPlaces& places) const {
    const uint32_t end = num_chunks_;
    const uint32_t sampled = is_kept ? end : min(end, kAtOnce * team_.threads);
    float sum = 0.0f;
    const auto add = [&](uint32_t number, const Vec16<T>& chunk) {
#pragma unroll
      for (int i = 0; i < Vec16<T>::kSize; ++i) sum += to_float(chunk.v[i]);
      if (is_kept) kept_[number] = chunk;
    };
    if (is_kept && staged_.is_used()) {
      for_each(
          sampled,
          [&](Vec16<T>(&chunks)[kAtOnce], uint32_t first) {
#pragma unroll
            for (uint32_t c = 0; c < kAtOnce; ++c)
              chunks[c] = staged_.chunk(place_, first + c * team_.threads);
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
    m.rough_mean = sum_over_team(sum, places[0], team_.threads) /
                   static_cast<float>(slice_.num_values(sampled));

    // As in row_norm.cuh, long slices are summed in stretches: a single sum would drift.
    constexpr uint32_t kStretch = 4096 / Vec16<T>::kSize;  // chunks per thread
    float rest = 0.0f, squares = 0.0f, rest_before = 0.0f, squares_before = 0.0f;
    [[maybe_unused]] uint32_t chunks_added = 0;
    for_each_chunk([&](uint32_t number, const Vec16<T>& chunk) {
      if constexpr (!is_kept) {
        if (++chunks_added % kStretch == 0) {
          rest_before += rest, squares_before += squares;
          rest = squares = 0.0f;
        }
      }
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
    rest += rest_before, squares += squares_before;
    m.count = static_cast<float>(slice_.num_values(end));
    m.mean = sum_over_team(rest, places[1], team_.threads) / m.count;
    const float variance =
        sum_over_team(squares, places[2], team_.threads) / m.count - m.mean * m.mean;
    m.variance = variance < 0.0f ? 0.0f : variance;
    return m;
  }

  /// Once the moments are known, writes f(number, chunk) of the slice's chunks to y; where slices
  /// are staged, to shared memory, from where StagedSlices writes it.
  template <class F>
  __device__ void write(const F& f) const {
    if (is_kept && staged_.is_used()) {
      for_each_chunk(
          [&](uint32_t number, const Vec16<T>& chunk) { kept_[number] = f(number, chunk); });
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
          if (number < num_chunks_) chunks[c] = kept_[number];
        }
      } else {
        slice_.load(chunks, first, team_.threads);
      }
    };
    for_each(num_chunks_, fetch, f);
  }

  /// Fetches kAtOnce chunks at a time.
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
  uint32_t num_chunks_, place_;
  SliceTeam team_;
  Vec16<T>* kept_;
  const StagedSlices<T>& staged_;
};

/// A whole block. slice_of(number): a slice; function_of(number, slice, moments, is_first):
/// f(number of a chunk, chunk), which maps its chunks of x to those of y; is_first: for one of the
/// threads that work on the slice.
template <class T, bool is_kept, class SliceOf, class FunctionOf>
__device__ inline void normalize_slices(const SliceAccess& access, const SliceOf& slice_of,
                                        const FunctionOf& function_of) {
  extern __shared__ uint4 shared[];
  __shared__ SumPlaces places;
  auto* kept = reinterpret_cast<Vec16<T>*>(shared);
  const SliceGroup group(access);
  const NormSlice<T> first = slice_of(group.first);
  const StagedSlices<T> staged(first, group.count, access, kept);
  if (is_kept && staged.is_used()) staged.bring();
  const uint32_t teams = blockDim.x / access.threads_per_slice;
  const uint32_t team_place = threadIdx.x / access.threads_per_slice;
  const SliceTeam team{threadIdx.x - team_place * access.threads_per_slice,
                       access.threads_per_slice};
#pragma unroll 1
  for (uint32_t round = 0; round < group.count; round += teams) {
    const uint32_t place = round + team_place, number = group.first + place;
    const NormSlice<T> slice = slice_of(number);
    const bool exists = place < group.count;
    const SliceReader<T, is_kept> reader(slice, exists, place, team,
                                         kept + place * access.slice_pitch, staged);
    const SliceMoments m = reader.moments(places);
    if (exists) reader.write(function_of(number, slice, m, team.thread == 0));
  }
  if (is_kept && staged.is_used()) staged.write();
}

}  // namespace wide::kernels
