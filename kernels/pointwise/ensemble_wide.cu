// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y[r, d] = mean, sum, variance or log mean exp of x[r, :, d] over the members that count
//
// Plan: a thread has 16 bytes of y's elements and visits the members, four loads in flight, or
// eight of a mean or a sum where blocks are few, their sums in registers: all of x is read once, y
// is written once, nothing else. A row is cut into pieces of up to 256 threads; rows shorter than a
// warp's share it. Which members count is one ballot for 32 of them. Where rows are not whole
// vectors of 16 bytes, four members' pieces at a time are staged in shared memory instead, 16 bytes
// a copy whatever their first address, and y is stored the same way (staged_runs.cuh): 16 KiB. An
// element's sum is in the order of members in either case. Short rows of many members:
// ensemble_short.cuh. Votes: ensemble_vote.cuh.
#include <algorithm>

#include "kernels/arch/grid.cuh"
#include "kernels/common/dispatch.hpp"
#include "kernels/common/grid_blocks.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/common/staged_runs.cuh"
#include "kernels/common/vector_load.cuh"
#include "kernels/pointwise/ensemble_blocks.hpp"
#include "kernels/pointwise/ensemble_short.cuh"
#include "kernels/pointwise/ensemble_sums.cuh"
#include "kernels/pointwise/ensemble_vote.cuh"
#include "kernels/pointwise/ensemble_wide.hpp"

namespace wide::kernels {

namespace {

/// Members with loads in flight: many where there are few blocks, four for each of an H200's
/// multiprocessors.
constexpr int kAtOnce = 4, kManyAtOnce = 8, kFewBlocks = 4 * 132;

/// How y is cut into pieces of rows; uniform over a launch.
struct EnsembleCut {
  int lanes = 32;  ///< per piece
  int pieces = 1;  ///< per block: rows, which then are one piece each
  int length = 0;  ///< elements per piece; the last of a row may have fewer
  int64_t pieces_per_row = 1;
  Divisor by_pieces;
  bool is_staged = false;
  StagedRuns runs{};
};

/// The next members that count, as distances to `base`; -1: no more.
template <int kCount>
struct NextMembers {
  int of[kCount];

  __device__ explicit NextMembers(uint32_t& left) {
#pragma unroll
    for (int& member : of) {
      member = __ffs(static_cast<int>(left)) - 1;
      left &= left - 1;
    }
  }
  /// By an index that is not a compile-time constant.
  __device__ int at(int index) const {
    int member = of[0];
#pragma unroll
    for (int g = 1; g < kCount; ++g) member = index == g ? of[g] : member;
    return member;
  }
};

/// A block's pieces, and this thread's elements of one.
template <class T, int kCount>
class EnsembleTile {
 public:
  static constexpr int kSize = Vec16<T>::kSize;

  __device__ EnsembleTile(const EnsembleParams& p, const EnsembleCut& cut)
      : p_(p),
        cut_(cut),
        thread_(static_cast<int>(threadIdx.x) % cut.lanes),
        piece_(static_cast<int>(threadIdx.x) / cut.lanes) {
    int64_t piece_of_row;
    row_ = cut.by_pieces.divide(int64_t{blockIdx.x} * cut.pieces, piece_of_row);
    first_ = piece_of_row * cut.length;
    pieces_ = static_cast<int>(min(int64_t{cut.pieces}, p.rows - row_));
    length_ = static_cast<int>(min(int64_t{cut.length}, p.features - first_));
  }

  /// Whether the thread's e-th element exists, and its position in its piece.
  __device__ bool exists(int e) const { return piece_ < pieces_ && position(e) < length_; }
  __device__ int position(int e) const {
    return is_staged() ? e * cut_.lanes + thread_ : thread_ * kSize + e;
  }
  /// The index in y if that were packed.
  __device__ int64_t index(int e) const {
    return (row_ + piece_) * p_.features + first_ + position(e);
  }

  /// The thread's elements of members base + next.of[..], where those exist.
  __device__ void load(Vec16<T> (&values)[kCount], const NextMembers<kCount>& next, int64_t base,
                       T* kept) const {
    if (!is_staged()) {
#pragma unroll
      for (int g = 0; g < kCount; ++g) {
        values[g] = load_vec16_if(x_of(piece_, base + next.of[g]) + position(0),
                                  next.of[g] >= 0 && exists(0));
      }
      return;
    }
    bring_runs(kept, cut_.runs, kCount * cut_.pieces, length_, team(), [&](int run) {
      const int member = next.at(run / cut_.pieces), piece = run % cut_.pieces;
      return member >= 0 && piece < pieces_ ? x_of(piece, base + member) : nullptr;
    });
    arch::cp_async_wait<0>();
    __syncthreads();
#pragma unroll
    for (int g = 0; g < kCount; ++g) {
      if (next.of[g] < 0) continue;
      const T* run = kept + (g * cut_.pieces + piece_) * cut_.runs.pitch +
                     phase_of(x_of(piece_, base + next.of[g]));
#pragma unroll
      for (int e = 0; e < kSize; ++e) values[g].v[e] = exists(e) ? run[position(e)] : T{};
    }
    __syncthreads();
  }

  __device__ void store(const Vec16<T>& values, T* kept) const {
    if (!is_staged()) {
      if (exists(0)) store_vec16(y_of(piece_) + position(0), values);
      return;
    }
    T* run = kept + piece_ * cut_.runs.pitch + phase_of(y_of(piece_));
#pragma unroll
    for (int e = 0; e < kSize; ++e) {
      if (exists(e)) run[position(e)] = values.v[e];
    }
    __syncthreads();
    write_runs(kept, cut_.runs, pieces_, length_, team(), [&](int piece) { return y_of(piece); });
  }

 private:
  /// More members at once are loaded only where their elements are single accesses.
  __device__ bool is_staged() const {
    return kCount == kAtOnce && cut_.is_staged;
  }
  __device__ const T* x_of(int piece, int64_t member) const {
    return static_cast<const T*>(p_.x) + (row_ + piece) * p_.x_row_stride +
           member * p_.x_member_stride + first_;
  }
  __device__ T* y_of(int piece) const {
    return static_cast<T*>(p_.y) + (row_ + piece) * p_.y_row_stride + first_;
  }
  __device__ static StagingTeam team() {
    return {static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x)};
  }

  const EnsembleParams& p_;
  const EnsembleCut& cut_;
  int thread_, piece_;
  int64_t row_, first_;  ///< of the block's first piece: its row and first element in it
  int pieces_, length_;
};

template <class T, EnsembleFunction kFunction, int kCount>
__global__ void __launch_bounds__(kMaxThreads)
    ensemble_kernel(const __grid_constant__ EnsembleParams p,
                    const __grid_constant__ EnsembleCut cut) {
  constexpr int kSize = Vec16<T>::kSize;
  using Sum = EnsembleSum<kFunction>;
  extern __shared__ uint4 staged[];
  auto* kept = reinterpret_cast<T*>(staged);
  const EnsembleTile<T, kCount> tile(p, cut);
  const int64_t plane = p.rows * p.features;
  auto* state = static_cast<float*>(p.state);
  arch::follow_grid();

  Sum sums[kSize];
  if (p.first > 0) {
#pragma unroll
    for (int e = 0; e < kSize; ++e) {
#pragma unroll
      for (int part = 0; part < Sum::kParts; ++part) {
        if (tile.exists(e)) sums[e].parts[part] = state[part * plane + tile.index(e)];
      }
    }
  }
  // A mask says which earlier members count; without one all did, and none is checked again.
  const int64_t begin = p.mask == nullptr ? p.first / 32 * 32 : 0;
  int k = static_cast<int>(begin);
  for (int64_t base = begin; base < p.last; base += 32) {
    const int64_t n = base + threadIdx.x % 32;
    uint32_t left = __ballot_sync(0xffffffffu, n < p.last && (p.mask == nullptr || p.mask[n] != 0));
    if (base < p.first) {
      const uint32_t earlier = p.first - base < 32 ? (1u << (p.first - base)) - 1 : 0xffffffffu;
      k += __popc(left & earlier);
      left &= ~earlier;
    }
    while (left != 0) {
      const NextMembers<kCount> next(left);
      Vec16<T> values[kCount];
      tile.load(values, next, base, kept);
#pragma unroll
      for (int g = 0; g < kCount; ++g) {
        if (next.of[g] < 0) break;
        ++k;
        const float inverse = 1.0f / static_cast<float>(k);
#pragma unroll
        for (int e = 0; e < kSize; ++e) sums[e].add(to_float(values[g].v[e]), k, inverse);
      }
    }
  }
  if (p.last < p.num_members) {
#pragma unroll
    for (int e = 0; e < kSize; ++e) {
#pragma unroll
      for (int part = 0; part < Sum::kParts; ++part) {
        if (tile.exists(e)) state[part * plane + tile.index(e)] = sums[e].parts[part];
      }
    }
    return;
  }
  if (kFunction == EnsembleFunction::mean && p.is_sum) k = 1;
  Vec16<T> out;
#pragma unroll
  for (int e = 0; e < kSize; ++e) out.v[e] = from_float<T>(sums[e].result(k));
  tile.store(out, kept);
}

template <class T>
EnsembleCut cut_rows(const EnsembleParams& p) {
  constexpr int64_t kSize = Vec16<T>::kSize;
  EnsembleCut cut;
  cut.lanes = ensemble_lanes(p.features, kSize);
  cut.pieces = ensemble_pieces(cut.lanes);
  cut.length = static_cast<int>(std::min(p.features, cut.lanes * kSize));
  cut.pieces_per_row = ensemble_pieces_per_row(p.features, kSize);
  cut.by_pieces = Divisor(cut.pieces_per_row);
  const bool is_aligned =
      p.features % kSize == 0 &&
      kernels::is_aligned(p.x, p.x_row_stride, p.x_member_stride, kSize, int64_t{sizeof(T)}) &&
      kernels::is_aligned(p.y, p.y_row_stride, 0, kSize, int64_t{sizeof(T)});
  cut.is_staged = !is_aligned;
  cut.runs = staged_runs(staged_pitch(cut.length, kSize), kSize);
  return cut;
}

template <class T, EnsembleFunction kFunction>
cudaError_t launch(const EnsembleParams& p, cudaStream_t stream) {
  const EnsembleCut cut = cut_rows<T>(p);
  if (cut.is_staged && has_short_rows<T>(p)) {
    return launch_short_rows<T, kFunction>(p, cut_short_rows<T>(p), stream);
  }
  const int64_t blocks = ensemble_blocks(p.rows, p.features, Vec16<T>::kSize);
  if (blocks > kMaxGridBlocks) return cudaErrorInvalidConfiguration;
  const size_t bytes =
      cut.is_staged ? static_cast<size_t>(kAtOnce * cut.pieces * cut.runs.pitch) * sizeof(T) : 0;
  if constexpr (kFunction == EnsembleFunction::mean) {
    if (!cut.is_staged && blocks < kFewBlocks) {
      return launch_kernel(ensemble_kernel<T, kFunction, kManyAtOnce>,
                           static_cast<unsigned>(blocks),
                           static_cast<unsigned>(cut.pieces * cut.lanes), 0, stream, p, cut);
    }
  }
  return launch_kernel(ensemble_kernel<T, kFunction, kAtOnce>, static_cast<unsigned>(blocks),
                       static_cast<unsigned>(cut.pieces * cut.lanes), bytes, stream, p, cut);
}

}  // namespace

cudaError_t launch_ensemble_wide(EnsembleFunction function, Dtype dtype, const EnsembleParams& p,
                                 cudaStream_t stream) {
  if (p.rows * p.features == 0) return cudaSuccess;
  return dispatch_float(dtype, [&]<class T>(std::type_identity<T>) {
    switch (function) {
      case EnsembleFunction::mean:
      case EnsembleFunction::sum: {
        EnsembleParams own = p;
        own.is_sum = function == EnsembleFunction::sum;
        return launch<T, EnsembleFunction::mean>(own, stream);
      }
      case EnsembleFunction::variance:
        return launch<T, EnsembleFunction::variance>(p, stream);
      case EnsembleFunction::log_mean_exp:
        return launch<T, EnsembleFunction::log_mean_exp>(p, stream);
      case EnsembleFunction::vote:
        return launch_votes<T>(p, stream);
    }
    return cudaErrorInvalidValue;
  });
}

}  // namespace wide::kernels
