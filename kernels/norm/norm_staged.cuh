// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Slices that are no multiples of sixteen bytes on their way through shared memory: what lies side
// by side of a block's slices is brought and written as one run, sixteen bytes at a time wherever
// it begins (staged_runs.cuh), so that sectors that slices have in common are asked for once. In
// between chunks hold what they always hold, so that no bit of a sum depends on the way: a chunk
// is put together from the two vectors that it lies across, and so is a vector of y from chunks.
#pragma once

#include "kernels/common/staged_runs.cuh"
#include "kernels/norm/norm_slice.cuh"
#include "kernels/norm/norm_sums.cuh"

namespace wide::kernels {

/// One side of that way: runs of one slice that lie one behind the other are moved as one.
struct StagedSide {
  bool is_joined = false;
  StagedRuns cut{};
};

/// How slices move and what a block has to do: the same for all of a launch.
struct SliceAccess {
  bool is_aligned = false;         ///< each chunk is one access of sixteen bytes
  uint32_t threads_per_slice = 0;  ///< whole warps
  uint32_t slices_per_row = 0;     ///< one behind the other, where they are staged
  uint32_t slices_per_block = 1;   ///< at most, and of one row
  uint32_t slice_pitch = 0;        ///< chunks from a slice to the next; 0: they are not kept
  uint32_t num_brought = 0;        ///< vectors of x in shared memory; 0: slices are not staged
  StagedSide x{}, y{};

  __host__ __device__ uint32_t blocks_per_row() const {
    return (slices_per_row + slices_per_block - 1) / slices_per_block;
  }
  int64_t shared_bytes() const {
    return 16 * (int64_t{slices_per_block} * slice_pitch + num_brought);
  }
};

/// The slices of a block.
struct SliceGroup {
  uint32_t first;  ///< its number
  uint32_t count;

  __device__ explicit SliceGroup(const SliceAccess& access) {
    const uint32_t blocks = access.blocks_per_row(), row = blockIdx.x / blocks;
    const uint32_t in_row = (blockIdx.x - row * blocks) * access.slices_per_block;
    first = row * access.slices_per_row + in_row;
    count = min(access.slices_per_block, access.slices_per_row - in_row);
  }
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

/// A block's slices, of which `first` is the first.
template <class T>
class StagedSlices {
 public:
  static constexpr uint32_t kSize = Vec16<T>::kSize;

  /// `kept`: room for the slices' chunks and the vectors that are brought.
  __device__ StagedSlices(const NormSlice<T>& first, uint32_t count, const SliceAccess& access,
                          Vec16<T>* kept)
      : first_(first),
        count_(count),
        access_(access),
        kept_(kept),
        brought_(kept + access.slices_per_block * access.slice_pitch) {}

  __device__ bool is_used() const { return access_.num_brought > 0; }

  /// Brings x; all of the block may then ask for chunks.
  __device__ void bring() const {
    const auto from = [this](int run) { return first_.x().first + run * first_.x().run_stride; };
    const int runs = num_runs(access_.x), run_length = length(access_.x);
    bring_runs(brought_->v, access_.x.cut, runs, run_length, team(), from);
    // What a run leaves of its first vector, which is read as a whole.
    for (uint32_t i = threadIdx.x; i < static_cast<uint32_t>(runs) * kSize; i += blockDim.x) {
      const auto run = static_cast<int>(i / kSize), place = static_cast<int>(i % kSize);
      const int phase = phase_of(from(run));
      if (phase > 0 && (place < phase || place >= phase + run_length)) {
        brought_->v[run * access_.x.cut.pitch + place] = from_float<T>(0.0f);
      }
    }
    arch::cp_async_wait<0>();
    __syncthreads();
  }

  /// Of x of the block's slice `slice`; zeros where nothing exists.
  __device__ Vec16<T> chunk(uint32_t slice, uint32_t number) const {
    const uint32_t count = first_.count_of(number);
    if (count == 0) return {};
    const auto& x = first_.x();
    const uint32_t run = first_.run_of(number);
    const uint32_t brought_run = access_.x.is_joined ? 0 : run;
    const uint32_t image = access_.x.is_joined ? slice * first_.runs() + run : slice;
    const uint32_t first = (number - run * first_.chunks_per_run()) * kSize +
                           image * first_.length() +
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
    __syncthreads();
    const auto& y = first_.y();
    const uint32_t run_length = first_.length();
    const uint32_t run_pitch = first_.chunks_per_run() * kSize;
    const uint32_t image_pitch = access_.y.is_joined ? run_pitch : access_.slice_pitch * kSize;
    // Of an element of a run of y, in chunks.
    const auto place_of = [&](int run, int element, uint32_t& position) {
      const uint32_t image = static_cast<uint32_t>(element) / run_length;
      position = static_cast<uint32_t>(element) - image * run_length;
      return static_cast<uint32_t>(run) * run_pitch + image * image_pitch + position;
    };
    write_runs_of<T>(
        access_.y.cut, num_runs(access_.y), length(access_.y), team(),
        [&](int run) { return y.first + run * y.run_stride; },
        [&](int run, int, int element) {
          uint32_t position;
          return kept_->v[place_of(run, element, position)];
        },
        [&](int run, int, int element) {
          uint32_t position, place = place_of(run, element, position);
          if (position + kSize <= run_length) return vec16_across(kept_, place, kSize);
          Vec16<T> values;
          uint32_t left = run_length - position;
#pragma unroll
          for (uint32_t i = 0; i < kSize; ++i) {
            values.v[i] = kept_->v[place++];
            if (--left > 0) continue;
            left = run_length;
            place += image_pitch - run_length;
          }
          return values;
        });
  }

 private:
  __device__ static StagingTeam team() {
    return {static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x)};
  }
  __device__ int num_runs(const StagedSide& side) const {
    return side.is_joined ? 1 : static_cast<int>(first_.runs());
  }
  __device__ int length(const StagedSide& side) const {
    return static_cast<int>(count_ * first_.length() * (side.is_joined ? first_.runs() : 1));
  }

  const NormSlice<T>& first_;
  uint32_t count_;
  const SliceAccess& access_;
  Vec16<T>*kept_, *brought_;
};

}  // namespace wide::kernels
