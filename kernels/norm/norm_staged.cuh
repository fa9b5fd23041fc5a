// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Stages slices that are not multiples of sixteen bytes in shared memory: contiguous parts of a
// block's slices are loaded and written as one run, sixteen bytes at a time wherever it begins
// (staged_runs.cuh), so that sectors shared by slices are requested once. Chunks hold the same
// elements as without staging, so that no bit of a sum depends on it: a chunk is assembled from the
// two vectors that it straddles, and a vector of y from chunks.
#pragma once

#include "kernels/common/staged_runs.cuh"
#include "kernels/norm/norm_slice.cuh"
#include "kernels/norm/norm_sums.cuh"

namespace wide::kernels {

/// One side, x or y: contiguous runs of one slice are moved as one.
struct StagedSide {
  bool is_joined = false;
  StagedRuns cut{};
};

/// How slices move and what a block has to do: uniform over a launch.
struct SliceAccess {
  bool is_aligned = false;         ///< each chunk is a single access of sixteen bytes
  uint32_t threads_per_slice = 0;  ///< whole warps
  uint32_t slices_per_row = 0;     ///< contiguous slices, where they are staged
  uint32_t slices_per_block = 1;   ///< at most, and of one row
  uint32_t slice_pitch = 0;        ///< chunks between slices; 0: they are not kept
  uint32_t num_brought = 0;        ///< vectors of x in shared memory; 0: slices are not staged
  Divisor32 by_run{};              ///< divides a slice's chunks by those of a run
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

/// `count` elements at any offset in shared memory, from `element` elements after `vectors` on;
/// what follows them is unspecified.
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

/// bring_runs() by the whole block, which may then read whole vectors: zeros in the rest of a run's
/// first one.
template <class T, class AddressOf>
__device__ inline void bring_whole_runs(T* brought, const StagedRuns& cut, int runs, int length,
                                        const AddressOf& address_of) {
  constexpr uint32_t kSize = Vec16<T>::kSize;
  bring_runs(brought, cut, runs, length,
             {static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x)}, address_of);
  for (uint32_t i = threadIdx.x; i < static_cast<uint32_t>(runs) * kSize; i += blockDim.x) {
    const auto run = static_cast<int>(i / kSize), place = static_cast<int>(i % kSize);
    const int phase = phase_of(address_of(run));
    if (phase > 0 && (place < phase || place >= phase + length)) {
      brought[run * cut.pitch + place] = from_float<T>(0.0f);
    }
  }
  arch::cp_async_wait<0>();
  __syncthreads();
}

/// A block's slices, beginning with `first`.
template <class T>
class StagedSlices {
 public:
  static constexpr uint32_t kSize = Vec16<T>::kSize;

  /// `kept`: room for the slices' chunks and the vectors that are loaded.
  __device__ StagedSlices(const NormSlice<T>& first, uint32_t count, const SliceAccess& access,
                          Vec16<T>* kept)
      : first_(first),
        count_(count),
        access_(access),
        kept_(kept),
        brought_(kept + access.slices_per_block * access.slice_pitch) {}

  __device__ bool is_used() const { return access_.num_brought > 0; }

  /// Loads x; the whole block may then call chunk().
  __device__ void bring() const {
    const auto from = [this](int run) { return first_.x().first + run * first_.x().run_stride; };
    const int runs = num_runs(access_.x), run_length = length(access_.x);
    bring_whole_runs(brought_->v, access_.x.cut, runs, run_length, from);
  }

  /// A chunk of x of the block's slice `slice`; zeros where nothing exists.
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

  /// Writes y from the chunks that the threads have stored where they are kept.
  __device__ void write() const {
    __syncthreads();
    const auto& y = first_.y();
    const uint32_t run_length = first_.length();
    const uint32_t run_pitch = first_.chunks_per_run() * kSize;
    const uint32_t image_pitch = access_.y.is_joined ? run_pitch : access_.slice_pitch * kSize;
    // The place of an element of a run of y among the chunks.
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
