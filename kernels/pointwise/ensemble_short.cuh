// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// ensemble_wide.cu's sums where rows are short: a few outputs of many members.
//
// Plan: a block stages some rows of as many members as shared memory holds, those of a row as one
// run where they lie side by side and all count (staged_runs.cuh), and a thread has one element of
// y, whose members it then adds in their order. So many threads move what few add up, and a thread
// has one addition for each member, where ensemble_kernel's would have a vector's and wait for
// memory every fourth of them.
#pragma once

#include <algorithm>

#include "kernels/arch/grid.cuh"
#include "kernels/common/grid_blocks.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/common/staged_runs.cuh"
#include "kernels/pointwise/ensemble_blocks.hpp"
#include "kernels/pointwise/ensemble_sums.cuh"
#include "kernels/pointwise/ensemble_wide.hpp"

namespace wide::kernels {

/// How blocks are cut; uniform over a launch.
struct ShortCut {
  int rows = 1;     ///< per block
  int members = 1;  ///< staged at a time: whole 32s where there are more
  int threads = kShortThreads;
  bool is_joined = false;  ///< members of a row are one run
  StagedRuns runs{};

  __host__ __device__ int num_runs() const { return rows * (is_joined ? 1 : members); }
};

/// A block's rows.
template <class T>
class ShortTile {
 public:
  __device__ ShortTile(const EnsembleParams& p, const ShortCut& cut, T* kept)
      : p_(p),
        cut_(cut),
        kept_(kept),
        first_row_(int64_t{blockIdx.x} * cut.rows),
        rows_(static_cast<int>(min(int64_t{cut.rows}, p.rows - first_row_))),
        features_(static_cast<int>(p.features)),
        row_(static_cast<int>(threadIdx.x) / features_),
        feature_(static_cast<int>(threadIdx.x) - row_ * features_) {}

  /// Whether this thread has an element of y, and where.
  __device__ bool exists() const { return row_ < rows_; }
  __device__ T* y() const {
    return static_cast<T*>(p_.y) + (first_row_ + row_) * p_.y_row_stride + feature_;
  }

  /// Stages `count` members from `first` on.
  __device__ void bring(int64_t first, int count) const {
    const StagingTeam team{static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x)};
    if (cut_.is_joined) {
      bring_runs(kept_, cut_.runs, rows_, count * features_, team,
                 [&](int row) { return x(row, first); });
    } else {
      bring_runs(kept_, cut_.runs, rows_ * cut_.members, features_, team, [&](int run) {
        const int row = run / cut_.members, i = run - row * cut_.members;
        const bool counts = i < count && (p_.mask == nullptr || p_.mask[first + i] != 0);
        return counts ? x(row, first + i) : nullptr;
      });
    }
    arch::cp_async_wait<0>();
    __syncthreads();
  }
  /// This thread's element of the i-th of them.
  __device__ float value(int64_t first, int i) const {
    const T* run =
        cut_.is_joined
            ? kept_ + row_ * cut_.runs.pitch + phase_of(x(row_, first)) + i * features_
            : kept_ + (row_ * cut_.members + i) * cut_.runs.pitch + phase_of(x(row_, first + i));
    return to_float(run[feature_]);
  }

 private:
  __device__ const T* x(int row, int64_t member) const {
    return static_cast<const T*>(p_.x) + (first_row_ + row) * p_.x_row_stride +
           member * p_.x_member_stride;
  }

  const EnsembleParams& p_;
  const ShortCut& cut_;
  T* kept_;
  int64_t first_row_;
  int rows_, features_;
  int row_, feature_;  ///< of this thread
};

template <class T, EnsembleFunction kFunction>
__global__ void __launch_bounds__(kShortThreads)
    ensemble_short_kernel(const __grid_constant__ EnsembleParams p,
                          const __grid_constant__ ShortCut cut) {
  extern __shared__ uint4 staged[];
  const ShortTile<T> tile(p, cut, reinterpret_cast<T*>(staged));
  arch::follow_grid();
  EnsembleSum<kFunction> sum;
  int k = 0;
  for (int64_t first = 0; first < p.num_members; first += cut.members) {
    const int count = static_cast<int>(min(int64_t{cut.members}, p.num_members - first));
    if (first > 0) __syncthreads();
    tile.bring(first, count);
    if (p.mask == nullptr) {
      if (tile.exists()) {
#pragma unroll 8
        for (int i = 0; i < count; ++i) {
          sum.add(tile.value(first, i), k + i + 1, 1.0f / static_cast<float>(k + i + 1));
        }
      }
      k += count;
      continue;
    }
    for (int base = 0; base < count; base += 32) {
      const int own = base + static_cast<int>(threadIdx.x % 32);
      uint32_t left = __ballot_sync(0xffffffffu, own < count && p.mask[first + own] != 0);
      for (; left != 0; left &= left - 1) {
        ++k;
        const int i = base + __ffs(static_cast<int>(left)) - 1;
        if (tile.exists()) sum.add(tile.value(first, i), k, 1.0f / static_cast<float>(k));
      }
    }
  }
  if (kFunction == EnsembleFunction::mean && p.is_sum) k = 1;
  if (tile.exists()) *tile.y() = from_float<T>(sum.result(k));
}

/// Whether members of a row are one run that may be read.
inline bool has_joined_members(const EnsembleParams& p) {
  return p.mask == nullptr && p.x_member_stride == p.features;
}

/// Of rows that are not whole vectors. Whether a launch is of all members, and of enough of them
/// that this pays: where they are runs of their own, ensemble_kernel issues less for each, and is
/// left rows that occupy the device.
template <class T>
bool has_short_rows(const EnsembleParams& p) {
  constexpr int64_t kManyMembers = 8, kManyRows = 4096;
  return p.first == 0 && p.last == p.num_members && p.num_members >= kManyMembers &&
         p.features <= kShortLanes * Vec16<T>::kSize &&
         (has_joined_members(p) || p.rows <= kManyRows);
}

template <class T>
ShortCut cut_short_rows(const EnsembleParams& p) {
  constexpr int64_t kSize = Vec16<T>::kSize, kBytes = 32 * 1024;
  constexpr int64_t kEnoughBlocks = 264;  // twice an H200's multiprocessors
  ShortCut cut;
  cut.is_joined = has_joined_members(p);
  const auto pitch_of = [&](int64_t members) {
    return staged_pitch(p.features * (cut.is_joined ? members : 1), kSize);
  };
  const auto bytes_of = [&](int64_t rows, int64_t members) {
    return rows * pitch_of(members) * (cut.is_joined ? 1 : members) * int64_t{sizeof(T)};
  };
  // All members of a row if possible, then rows.
  int64_t members = p.num_members;
  while (members > 32 && bytes_of(1, members) > kBytes) members = (members / 2 + 31) / 32 * 32;
  int64_t rows = std::clamp<int64_t>(p.rows / kEnoughBlocks, 1, kShortThreads / p.features);
  while (rows > 1 && bytes_of(rows, members) > kBytes) --rows;
  cut.rows = static_cast<int>(rows);
  cut.members = static_cast<int>(members);
  cut.runs = staged_runs(pitch_of(members), kSize);
  // As many as move two vectors each, and one for each output.
  const int64_t wanted = std::max(rows * p.features, cut.num_runs() * cut.runs.pitch / kSize / 2);
  cut.threads = static_cast<int>(std::min<int64_t>((wanted + 31) / 32 * 32, kShortThreads));
  return cut;
}

template <class T, EnsembleFunction kFunction>
cudaError_t launch_short_rows(const EnsembleParams& p, const ShortCut& cut, cudaStream_t stream) {
  const int64_t blocks = (p.rows - 1) / cut.rows + 1;
  if (blocks > kMaxGridBlocks) return cudaErrorInvalidConfiguration;
  return launch_kernel(ensemble_short_kernel<T, kFunction>, static_cast<unsigned>(blocks),
                       static_cast<unsigned>(cut.threads),
                       static_cast<size_t>(cut.num_runs() * cut.runs.pitch) * sizeof(T), stream, p,
                       cut);
}

}  // namespace wide::kernels
