// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Slices that are no multiples of sixteen bytes on their way through shared memory: their runs are
// brought and written sixteen bytes at a time wherever they begin (staged_runs.cuh). In between
// chunks hold what they always hold, so that no bit of a sum depends on the way: a chunk is put
// together from the two vectors that it lies across, and so is a vector of y from chunks.
#pragma once

#include "kernels/common/staged_runs.cuh"
#include "kernels/norm/norm_slice.cuh"
#include "kernels/norm/norm_sums.cuh"

namespace wide::kernels {

/// The threads that work on one slice: all of a block, or a warp.
struct SliceTeam {
  uint32_t slice;  ///< its number
  uint32_t place;  ///< in the block
  uint32_t thread, threads;

  __device__ void wait_for_all() const {
    if (threads == kWarp) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }
};

__device__ inline SliceTeam slice_team(uint32_t slices_per_block) {
  const uint32_t threads = blockDim.x / slices_per_block, place = threadIdx.x / threads;
  return {blockIdx.x * slices_per_block + place, place, threadIdx.x - place * threads, threads};
}

/// One side of that way: runs that lie one behind the other are moved as one.
struct StagedSide {
  bool is_joined = false;
  StagedRuns cut{};
};

/// How slices move: the same for all of a launch.
struct SliceAccess {
  bool is_aligned = false;   ///< each chunk is one access of sixteen bytes
  uint32_t num_brought = 0;  ///< vectors of a slice's x in shared memory; 0: it is not staged
  StagedSide x{}, y{};

  __device__ bool is_staged() const { return num_brought > 0; }
};

/// `count` elements from anywhere in shared memory, `element` of them behind `vectors`; what is
/// behind them is anything.
template <class T>
__device__ inline Vec16<T> vec16_across(const Vec16<T>* vectors, uint32_t element, uint32_t count) {
  constexpr uint32_t kSize = Vec16<T>::kSize;
  const uint32_t skipped = element % kSize, bytes = skipped * static_cast<uint32_t>(sizeof(T));
  const auto* from = reinterpret_cast<const uint4*>(vectors + element / kSize);
  const uint4 low = from[0];
  uint4 high{};
  if (skipped + count > kSize) high = from[1];
  uint32_t words[] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
  for (int w = 0; w < 6; ++w) words[w] = (bytes & 8) != 0 ? words[w + 2] : words[w];
#pragma unroll
  for (int w = 0; w < 5; ++w) words[w] = (bytes & 4) != 0 ? words[w + 1] : words[w];
  if constexpr (sizeof(T) < 4) {
#pragma unroll
    for (int w = 0; w < 4; ++w) words[w] = __funnelshift_r(words[w], words[w + 1], bytes % 4 * 8);
  }
  const uint4 bits{words[0], words[1], words[2], words[3]};
  return *reinterpret_cast<const Vec16<T>*>(&bits);
}

template <class T>
class StagedSlice {
 public:
  static constexpr uint32_t kSize = Vec16<T>::kSize;

  /// `kept`: room for the slice's chunks and the vectors that are brought.
  __device__ StagedSlice(const NormSlice<T>& slice, const SliceAccess& access,
                         const SliceTeam& team, Vec16<T>* kept)
      : slice_(slice),
        access_(access),
        team_(team),
        kept_(kept),
        brought_(kept + slice.num_chunks()) {}

  /// Brings x; the team may then ask for chunks.
  __device__ void bring() const {
    const auto from = [this](int run) { return slice_.x().first + run * slice_.x().run_stride; };
    const int runs = num_runs(access_.x), run_length = length(access_.x);
    bring_runs(brought_->v, access_.x.cut, runs, run_length, team(), from);
    // What a run leaves of its first vector, which is read as a whole.
    for (uint32_t i = team_.thread; i < static_cast<uint32_t>(runs) * kSize; i += team_.threads) {
      const auto run = static_cast<int>(i / kSize), place = static_cast<int>(i % kSize);
      const int phase = phase_of(from(run));
      if (phase > 0 && (place < phase || place >= phase + run_length)) {
        brought_->v[run * access_.x.cut.pitch + place] = from_float<T>(0.0f);
      }
    }
    arch::cp_async_wait<0>();
    team_.wait_for_all();
  }

  /// Of x; zeros where nothing exists.
  __device__ Vec16<T> chunk(uint32_t number) const {
    const uint32_t count = slice_.count_of(number);
    if (count == 0) return {};
    const auto& x = slice_.x();
    const uint32_t run = slice_.run_of(number);
    const uint32_t brought_run = access_.x.is_joined ? 0 : run;
    const uint32_t first = (number - run * slice_.chunks_per_run()) * kSize +
                           (run - brought_run) * slice_.length() +
                           brought_run * static_cast<uint32_t>(access_.x.cut.pitch) +
                           static_cast<uint32_t>(phase_of(x.first + brought_run * x.run_stride));
    Vec16<T> values = vec16_across(brought_, first, count);
    if (count < kSize) {
#pragma unroll
      for (uint32_t i = 0; i < kSize; ++i) {
        if (i >= count) values.v[i] = from_float<T>(0.0f);
      }
    }
    return values;
  }

  /// Writes y, of which each thread has laid its chunks where they are kept.
  __device__ void write() const {
    team_.wait_for_all();
    const auto& y = slice_.y();
    const uint32_t pitch = slice_.chunks_per_run() * kSize, run_length = slice_.length();
    write_runs_of<T>(
        access_.y.cut, num_runs(access_.y), length(access_.y), team(),
        [&](int run) { return y.first + run * y.run_stride; },
        [&](int run, int, int element) { return kept_->v[place_of(run, element)]; },
        [&](int run, int, int element) {
          const auto first = static_cast<uint32_t>(element) / run_length;
          const uint32_t position = static_cast<uint32_t>(element) - first * run_length;
          uint32_t place = (static_cast<uint32_t>(run) + first) * pitch + position;
          if (position + kSize <= run_length) return vec16_across(kept_, place, kSize);
          Vec16<T> values;
          uint32_t left = run_length - position;
#pragma unroll
          for (uint32_t i = 0; i < kSize; ++i) {
            values.v[i] = kept_->v[place++];
            if (--left > 0) continue;
            left = run_length;
            place += pitch - run_length;
          }
          return values;
        });
  }

 private:
  __device__ StagingTeam team() const {
    return {static_cast<int>(team_.thread), static_cast<int>(team_.threads)};
  }
  __device__ int num_runs(const StagedSide& side) const {
    return side.is_joined ? 1 : static_cast<int>(slice_.runs());
  }
  __device__ int length(const StagedSide& side) const {
    return static_cast<int>(slice_.length() * (side.is_joined ? slice_.runs() : 1));
  }
  /// Of an element of a run of y, in chunks.
  __device__ uint32_t place_of(int run, int element) const {
    const auto first = static_cast<uint32_t>(element) / slice_.length();
    return (static_cast<uint32_t>(run) + first) * slice_.chunks_per_run() * kSize +
           static_cast<uint32_t>(element) - first * slice_.length();
  }

  const NormSlice<T>& slice_;
  const SliceAccess& access_;
  SliceTeam team_;
  Vec16<T>*kept_, *brought_;
};

/// What of the parameters is a slice: how many there are, of how many runs, how far apart.
struct SliceRuns {
  int64_t slices, runs, x_stride, y_stride;
};

/// For teams of which each may take `most_bytes` of shared memory.
template <class T>
SliceAccess slice_access(const ChannelNormParams& p, const SliceRuns& slice, int64_t most_bytes) {
  constexpr int64_t kSize = Vec16<T>::kSize;
  SliceAccess access;
  access.is_aligned = is_aligned16<T>(p);
  const bool has_gaps = p.height > 1 && (p.x_strides.row != p.width || p.y_strides.row != p.width);
  if (access.is_aligned || has_gaps) return access;
  const int64_t length = p.height * p.width;
  const auto side_of = [&](int64_t stride, int64_t& vectors) {
    const bool is_joined = slice.runs == 1 || stride == length;
    const int64_t pitch = staged_pitch(is_joined ? slice.runs * length : length, kSize);
    vectors = pitch / kSize * (is_joined ? 1 : slice.runs);
    const bool fits = (chunks_of<T>(p, slice.runs) + vectors) * 16 <= most_bytes;
    return fits ? StagedSide{is_joined, staged_runs(pitch, kSize)} : StagedSide{};
  };
  int64_t x_vectors, y_vectors;
  access.x = side_of(slice.x_stride, x_vectors);
  access.y = side_of(slice.y_stride, y_vectors);
  if (access.x.cut.pitch > 0 && access.y.cut.pitch > 0) {
    access.num_brought = static_cast<uint32_t>(x_vectors);
  }
  return access;
}

}  // namespace wide::kernels
