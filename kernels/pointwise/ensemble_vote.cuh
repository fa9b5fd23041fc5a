// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y[r, d] = share of the counting members n whose largest x[r, n, :] is at d
//
// Plan: a warp, or fewer lanes where rows are short, finds the largest feature of one row of one
// member, 16 bytes a load, four loads in flight, whatever the row's first address: only its ends
// are loaded singly. A lane compares the largest of 16 bytes with the largest before them; only
// what remains in the end is searched for its place. Winners stay in shared memory; a block has all
// members of its rows, so that it counts them there, some thousand features at a time, and writes
// shares. Memory: 4 bytes a member and row of the block, 8 KiB of counts, and the shares to be
// written.
#pragma once

#include <algorithm>
#include <type_traits>

#include "kernels/arch/grid.cuh"
#include "kernels/arch/maximum.cuh"
#include "kernels/common/divisor.hpp"
#include "kernels/common/grid_blocks.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/common/staged_runs.cuh"
#include "kernels/common/vector_load.cuh"
#include "kernels/pointwise/ensemble_blocks.hpp"
#include "kernels/pointwise/ensemble_wide.hpp"

namespace wide::kernels {

/// How blocks are cut; uniform over a launch.
struct VoteCut {
  int lanes = 32;  ///< per row
  int rows = 1;    ///< per block: more than one only where all their features are counted at once
  Divisor32 by_members{};
  StagedRuns runs{};
};

/// The largest of 16 bytes of elements. NaN is larger than all.
template <class T>
__device__ float largest_in(const Vec16<T>& vector) {
  if constexpr (sizeof(T) == 4) {
    return arch::max_keeping_nan(arch::max_keeping_nan(vector.v[0], vector.v[1]),
                                 arch::max_keeping_nan(vector.v[2], vector.v[3]));
  } else {
    using Pair = std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162>;
    const auto* pairs = reinterpret_cast<const Pair*>(vector.v);
    const Pair largest =
        __hmax2_nan(__hmax2_nan(pairs[0], pairs[1]), __hmax2_nan(pairs[2], pairs[3]));
    return arch::max_keeping_nan(to_float(largest.x), to_float(largest.y));
  }
}

/// The largest value so far, and the first 16 bytes of elements that have it: where in these is
/// looked for once, at the end.
template <class T>
struct Largest {
  static constexpr int kNowhere = 0x7fffffff;
  float value = -INFINITY;
  int begin = kNowhere;  ///< the position of `kept`
  Vec16<T> kept;

  /// Takes elements of later positions.
  __device__ void take(const Vec16<T>& vector, int at) {
    const float candidate = largest_in(vector);
    if (value != value || candidate <= value) return;
    value = candidate;
    begin = at;
    kept = vector;
  }
  __device__ void take_one(T element, int at) {
    Vec16<T> same;
#pragma unroll
    for (T& copy : same.v) copy = element;
    take(same, at);
  }
  /// The first position of the team's largest value. Whole warps call it.
  __device__ int first_of_team(int lanes) const {
    float largest = value;
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
      largest = arch::max_keeping_nan(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
    }
    int first = kNowhere;
    if (begin != kNowhere && (value == largest || value != value)) {
#pragma unroll
      for (int e = Vec16<T>::kSize - 1; e >= 0; --e) {
        const float element = to_float(kept.v[e]);
        if (element == value || element != element) first = begin + e;
      }
    }
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
      first = min(first, __shfl_xor_sync(0xffffffffu, first, distance));
    }
    return first;
  }
};

/// The index of a row's largest feature, in all its lanes; 0 without features. Whole warps call it.
template <class T>
__device__ int largest_of(const T* row, int features, int lane, int lanes) {
  constexpr int kSize = Vec16<T>::kSize, kAtOnce = 4;
  const int head = min((kSize - phase_of(row)) % kSize, features);
  const int vectors = (features - head) / kSize, tail = head + vectors * kSize;
  Vec16<T> nothing;
#pragma unroll
  for (T& value : nothing.v) value = from_float<T>(-INFINITY);  // is never taken
  Largest<T> largest;
  for (int i = lane; i < head; i += lanes) largest.take_one(row[i], i);
  for (int first = lane; first < vectors; first += kAtOnce * lanes) {
    Vec16<T> loaded[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const int vector = first + u * lanes;
      loaded[u] = load_vec16_if(row + head + int64_t{vector} * kSize, vector < vectors, nothing);
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      if (first - lane + u * lanes >= vectors) break;
      largest.take(loaded[u], head + (first + u * lanes) * kSize);
    }
  }
  for (int i = tail + lane; i < features; i += lanes) largest.take_one(row[i], i);
  const int index = largest.first_of_team(lanes);
  return index == Largest<T>::kNowhere ? 0 : index;  // all are -infinity
}

/// How many of the first `count` members vote. Whole warps call it.
__device__ inline int members_that_count(const EnsembleParams& p, int64_t count) {
  if (p.mask == nullptr) return static_cast<int>(count);
  int sum = 0;
  for (int64_t base = 0; base < count; base += 32) {
    const int64_t n = base + threadIdx.x % 32;
    sum += __popc(__ballot_sync(0xffffffffu, n < count && p.mask[n] != 0));
  }
  return sum;
}

/// winners[row, member] of the block's rows and the launch's members; -1: does not count.
template <class T>
__device__ void find_winners(const EnsembleParams& p, const VoteCut& cut, int64_t first_row,
                             int rows, int* winners) {
  const int lane = static_cast<int>(threadIdx.x) % cut.lanes;
  const int teams = static_cast<int>(blockDim.x) / cut.lanes;
  const int members = static_cast<int>(p.last - p.first), pairs = rows * members;
  const int team = static_cast<int>(threadIdx.x) / cut.lanes;
  const int teams_before = static_cast<int>(threadIdx.x) / 32 * (32 / cut.lanes);  // of its warp
  for (int first = 0; first + teams_before < pairs; first += teams) {
    const int i = first + team;
    int member;
    const int64_t row = first_row + cut.by_members.divide(i, member), n = p.first + member;
    const bool counts = i < pairs && (p.mask == nullptr || p.mask[n] != 0);
    const int winner =
        largest_of(static_cast<const T*>(p.x) + row * p.x_row_stride + n * p.x_member_stride,
                   counts ? static_cast<int>(p.features) : 0, lane, cut.lanes);
    if (lane == 0 && i < pairs) winners[i] = counts ? winner : -1;
  }
}

template <class T>
__global__ void __launch_bounds__(kVoteThreads)
    ensemble_vote_kernel(const __grid_constant__ EnsembleParams p,
                         const __grid_constant__ VoteCut cut) {
  extern __shared__ uint4 staged[];
  __shared__ int counts[kVoteCounts];
  auto* shares = reinterpret_cast<T*>(staged);
  auto* winners = reinterpret_cast<int*>(shares + cut.rows * cut.runs.pitch);
  const int64_t first_row = int64_t{blockIdx.x} * cut.rows;
  const int rows = static_cast<int>(min(int64_t{cut.rows}, p.rows - first_row));
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int votes = rows * static_cast<int>(p.last - p.first);
  const bool is_last = p.last == p.num_members;
  arch::follow_grid();
  find_winners<T>(p, cut, first_row, rows, winners);
  const auto voters = static_cast<float>(is_last ? members_that_count(p, p.last) : 0);

  const int length = static_cast<int>(min(p.features, int64_t{kVoteCounts}));  // per pass
  for (int64_t first = 0; first < p.features; first += length) {
    const int count = static_cast<int>(min(int64_t{length}, p.features - first));
    int* state = static_cast<int*>(p.state) + first_row * p.features + first;
    for (int i = thread; i < rows * count; i += threads) counts[i] = p.first > 0 ? state[i] : 0;
    __syncthreads();
    for (int i = thread; i < votes; i += threads) {
      const int64_t place = winners[i] - first;
      int member;
      const int row = cut.by_members.divide(i, member);
      if (place >= 0 && place < count) atomicAdd(&counts[row * count + place], 1);
    }
    __syncthreads();
    const auto y_of = [&](int row) {
      return static_cast<T*>(p.y) + (first_row + row) * p.y_row_stride + first;
    };
    if (is_last) {
      for (int row = thread / 32; row < rows; row += threads / 32) {
        T* to = shares + row * cut.runs.pitch + phase_of(y_of(row));
        for (int d = thread % 32; d < count; d += 32) {
          to[d] = from_float<T>(static_cast<float>(counts[row * count + d]) / voters);
        }
      }
      __syncthreads();
      write_runs(shares, cut.runs, rows, count, StagingTeam{thread, threads}, y_of);
    } else {
      for (int i = thread; i < rows * count; i += threads) state[i] = counts[i];
    }
    // No barrier: only the next writers still read counts; shares are two barriers away.
  }
}

template <class T>
cudaError_t launch_votes(const EnsembleParams& p, cudaStream_t stream) {
  constexpr int64_t kSize = Vec16<T>::kSize;
  const int64_t members = p.last - p.first;
  if (p.num_members > kMaxVoters || p.features > 0x7fffffff) return cudaErrorInvalidValue;
  VoteCut cut;
  cut.lanes = vote_lanes(p.features, kSize);
  cut.rows = vote_rows(members, p.features, kSize);
  cut.by_members = Divisor32(static_cast<int>(members));
  const int64_t length = std::min<int64_t>(p.features, kVoteCounts);
  // Whole vectors need no room for a phase: then the rows' chunks are contiguous.
  const bool is_whole =
      length % kSize == 0 && is_aligned(p.y, p.y_row_stride, 0, kSize, int64_t{sizeof(T)});
  const int64_t pitch = is_whole ? length : staged_pitch(length, kSize);
  cut.runs = staged_runs(pitch, kSize);
  const int64_t warps = (cut.rows * members * cut.lanes + 31) / 32;
  const auto threads = static_cast<unsigned>(std::min<int64_t>(warps * 32, kVoteThreads));
  const int64_t blocks = vote_blocks(members, p.rows, p.features, kSize);
  if (blocks > kMaxGridBlocks) return cudaErrorInvalidConfiguration;
  const int64_t bytes = cut.rows * (pitch * static_cast<int64_t>(sizeof(T)) +
                                    members * static_cast<int64_t>(sizeof(int)));
  return launch_kernel(ensemble_vote_kernel<T>, static_cast<unsigned>(blocks), threads,
                       static_cast<size_t>(bytes), stream, p, cut);
}

}  // namespace wide::kernels
