// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Rows of features normalised separately: layernorm; rmsnorm, which subtracts no mean; and chains,
// which first add up what they normalise, or do only that.
//
// Plan: a row is read once, kept in the registers of 4 to 32 lanes (up to 1024 features) or of a
// block of 2 to 16 warps (up to 16384), and written once (rows.cuh). Rows are numbered (row,
// member), members fastest: neighbours in the packed x; gamma and beta of a member come through L1.
// Longer rows are read two or three times by a block of 256 threads: all but the first time from
// L2. Statistics, in fp32: a first mean m from the sum, then d = x - m in place of x, and from d
// both the correction of the mean and the variance. The subtraction removes a common offset of a
// row and is exact where that is large, so it costs no accuracy. Without a mean, d is x and the
// variance the mean square. A chain's sum is rounded to the stored type before it is normalised,
// whether or not it is stored: the output is bit for bit that of the norm by itself on a stored
// sum. Routed rows lie as one member's: each looks its member up, and those of nobody are only
// written to. Memory: a float per warp for each sum, and a block's rows, for a chain twice, where
// they are not whole vectors of 16 bytes. Source of the method: Chan, Golub, LeVeque, "Algorithms
// for Computing the Sample Variance", 1983 (the corrected two-pass algorithm).
#pragma once

#include "kernels/arch/grid.cuh"
#include "kernels/common/activation.cuh"
#include "kernels/common/dispatch.hpp"
#include "kernels/common/rows.cuh"
#include "kernels/norm/row_norm.hpp"
#include "kernels/norm/row_owner.cuh"

namespace wide::kernels {

enum class RowKind : uint8_t { layernorm, rmsnorm, chain };

/// Chunks of the values whose parameters are in flight together.
template <class T>
constexpr int kPieceChunks = kRowPiece / Vec16<T>::kSize;

/// Where a row of a member is; `index` numbers (row, member).
template <class T>
struct RowNormPlace {
  const T *x, *residual;
  T *y, *sum;
  int64_t member;

  __device__ RowNormPlace(const RowNormParams& p, const Divisor& by_members, int64_t index) {
    const int64_t row = by_members.divide(index, member);
    x = static_cast<const T*>(p.x) + row * p.x_row_stride + member * p.x_member_stride;
    y = static_cast<T*>(p.y) + row * p.y_row_stride + member * p.y_member_stride;
    residual = static_cast<const T*>(p.residual) + row * p.residual_row_stride +
               member * p.residual_member_stride;
    sum = static_cast<T*>(p.sum) + row * p.sum_row_stride + member * p.sum_member_stride;
  }
};

/// values[i] = f(values[i], element i of the chunks)
template <class T, class F>
__device__ void combine(float* values, const Vec16<T>* chunks, F f) {
  constexpr int kSize = Vec16<T>::kSize;
#pragma unroll
  for (int i = 0; i < kRowPiece; ++i) {
    values[i] = f(values[i], to_float(chunks[i / kSize].v[i % kSize]));
  }
}
/// The same with a member's parameters from chunk `first` on; no-op without parameters.
template <class T, class Policy, class F>
__device__ void combine(float* values, const RowShare<T, Policy>& share, const T* parameters,
                        int first, F f) {
  if (parameters == nullptr) return;
  Vec16<T> chunks[kPieceChunks<T>];
  share.load(chunks, parameters, first);
  combine(values, chunks, f);
}

/// A member's parameters, or null.
template <class T>
__device__ const T* of_member(const void* parameters, int64_t offset) {
  return parameters == nullptr ? nullptr : static_cast<const T*>(parameters) + offset;
}

/// What normalised values are multiplied by, and what is added.
template <class T>
struct ScaleAndShift {
  const T *gamma, *beta;

  __device__ ScaleAndShift(const RowNormParams& p, int64_t member)
      : gamma(of_member<T>(p.gamma, member * p.gamma_member_stride)),
        beta(of_member<T>(p.beta, member * p.beta_member_stride)) {}
};

/// A chain's values from those of x, from chunk `first` on: residual + activation(x + bias),
/// rounded.
template <class T, class Policy>
__device__ void add_up(const RowNormParams& p, const RowShare<T, Policy>& share, int64_t member,
                       int first, const Vec16<T>* residual, float* values) {
  const auto plus = [](float value, float other) { return value + other; };
  combine(values, share, of_member<T>(p.bias, member * p.bias_member_stride), first, plus);
  with_activation(p.activation, [&]<Activation fixed>() {
#pragma unroll
    for (int i = 0; i < kRowPiece; ++i) values[i] = activate<fixed>(values[i]);
  });
  if (p.residual != nullptr) combine(values, residual, plus);
#pragma unroll
  for (int i = 0; i < kRowPiece; ++i) values[i] = to_float(from_float<T>(values[i]));
}

/// Writes the chunks from `first` on.
template <class T, class Policy>
__device__ void write_values(const RowShare<T, Policy>& share, const RowPlace<T>& row, int first,
                             const float* values) {
#pragma unroll
  for (int c = 0; c < kPieceChunks<T>; ++c) {
    Vec16<T> out;
#pragma unroll
    for (T& value : out.v) value = from_float<T>(*values++);
    share.store(row, first + c, out);
  }
}

template <class T, class Policy>
__device__ void write_zeros(const RowShare<T, Policy>& share, const RowPlace<T>& row, int chunks) {
#pragma unroll 1
  for (int c = 0; c < chunks; ++c) share.store(row, c, Vec16<T>{});
}
/// The outputs of a block's row.
template <class Policy, RowKind kKind, class T>
__device__ void write_zeros(const RowNormParams& p, const RowAccess& access,
                            const RowNormPlace<T>& place, int chunks) {
  const RowShare<T, Policy> share(access, true);
  write_zeros(share, {place.y, place.y}, chunks);
  if (kKind == RowKind::chain && p.sum != nullptr) {
    write_zeros(share, {place.sum, place.sum}, chunks);
  }
}

/// Scales, shifts and writes centred values.
template <class T, class Policy>
__device__ void write_normalised(const RowShare<T, Policy>& share, const RowPlace<T>& y,
                                 const ScaleAndShift<T>& parameters, int first, float* values,
                                 float mean, float scale) {
  const float shift = -mean * scale;
#pragma unroll
  for (int i = 0; i < kRowPiece; ++i) values[i] = fmaf(values[i], scale, shift);
  combine(values, share, parameters.gamma, first,
          [](float value, float gamma) { return value * gamma; });
  combine(values, share, parameters.beta, first,
          [](float value, float beta) { return value + beta; });
  write_values(share, y, first, values);
}

/// For a variance that rounding may have made negative; NaN stays NaN.
__device__ inline float row_scale(float variance, float epsilon) {
  return 1.0f / sqrtf((variance < 0.0f ? 0.0f : variance) + epsilon);
}

/// A row's statistics; by default, before or without them, y is the input.
struct RowStatistics {
  float rough_mean = 0.0f, mean = 0.0f, scale = 1.0f;
};

template <RowKind kKind>
__device__ bool is_centred(const RowNormParams& p) {
  return kKind == RowKind::chain ? p.norm == ChainNorm::layernorm : kKind == RowKind::layernorm;
}
template <RowKind kKind>
__device__ bool is_normalised(const RowNormParams& p) {
  return kKind != RowKind::chain || p.norm != ChainNorm::none;
}

/// From each thread's sums of the centred values of its share of a row and of their squares: the
/// scale, and for centred rows the correction of the mean.
template <class Policy, RowKind kKind>
__device__ void take_moments(const RowNormParams& p, float (&sums)[2], float inverse,
                             float (*shared)[kWarp], RowStatistics& of) {
  if (is_centred<kKind>(p)) {
    sum_over_row<Policy>(sums, shared);
    of.mean = sums[0] * inverse;
  } else {
    sums[1] = row_sum<Policy>(sums[1], shared);
  }
  of.scale = row_scale(sums[1] * inverse - of.mean * of.mean, p.epsilon);
}

/// Blocks of short rows a multiprocessor: as many as registers hold without spills. 1: no minimum.
template <class Policy, RowKind kKind>
constexpr int kResidentBlocks = Policy::is_block            ? 1
                                : Policy::kept_floats == 16 ? (kKind == RowKind::chain ? 6 : 9)
                                                            : (kKind == RowKind::chain ? 4 : 6);

/// Likewise of long rows. Parameters take registers: larger blocks would spill.
using LongNormRow = LongRow<256>;
template <RowKind kKind>
constexpr int kResidentLongBlocks = kKind == RowKind::chain ? 2 : 3;

template <class T, class Policy, RowKind kKind>
__global__ void __launch_bounds__(Policy::max_block, kResidentBlocks<Policy, kKind>)
    row_norm_kernel(const __grid_constant__ RowNormParams p,
                    const __grid_constant__ Divisor by_members,
                    const __grid_constant__ RowAccess access) {
  constexpr int kSize = Vec16<T>::kSize, kKept = Policy::kept_floats;
  constexpr int kChunks = kKept / kSize;
  constexpr bool kIsChain = kKind == RowKind::chain;
  const bool has_residual = kIsChain && p.residual != nullptr;
  const bool has_sum = kIsChain && p.sum != nullptr;
  extern __shared__ uint4 staged[];
  __shared__ float shared[3][kWarp];
  const int64_t num_rows = p.rows * p.num_members;
  const RowTile<T, Policy> tile(access, p.features, num_rows);
  const auto place_of = [&](int64_t i) { return RowNormPlace<T>(p, by_members, i); };
  const auto x_of = [&](int64_t i) { return place_of(i).x; };
  const auto residual_of = [&](int64_t i) { return place_of(i).residual; };
  const auto y_of = [&](int64_t i) { return place_of(i).y; };
  const auto sum_of = [&](int64_t i) { return place_of(i).sum; };
  const RowNormPlace<T> mine = place_of(tile.index());
  // First x, then y; first residual, then the sum.
  T *kept = reinterpret_cast<T*>(staged), *also_kept = kept + tile.size();
  arch::follow_grid();

  // Read the row: all loads first.
  Vec16<T> loaded[kChunks];
  [[maybe_unused]] Vec16<T> added[kIsChain ? kChunks : 1];
  if (access.is_staged) {
    tile.bring(kept, x_of);
    if (has_residual) tile.bring(also_kept, residual_of);
    arch::cp_async_wait<0>();
    __syncthreads();
  }
  bool is_read = tile.index() < num_rows;
  if (p.owners.only != RowOwners::kAll) {  // else an id is loaded beside its row, not before
    is_read = RowOwner(p.owners, tile.index(), is_read, mine.member).is_computed;
  }
  const RowShare<T, Policy> given(access, is_read);
  given.load(loaded, tile.place(kept, mine.x, x_of));
  if (has_residual) given.load(added, tile.place(also_kept, mine.residual, residual_of));
  if (access.is_staged) __syncthreads();  // outputs may have other offsets
  const RowOwner owner(p.owners, tile.index(), tile.index() < num_rows, mine.member);
  if constexpr (Policy::is_block) {
    if (owner.becomes_zeros) write_zeros<Policy, kKind>(p, access, mine, kChunks);
    if (!owner.is_computed) return;
  }
  const RowShare<T, Policy> share(access, Policy::is_block || owner.is_computed);
  float values[kKept];
  for_values(access, values,
             [&](float& value, int i) { value = to_float(loaded[i / kSize].v[i % kSize]); });
  if constexpr (kIsChain) {
    // Not mine.sum: fp32 lacks the registers to keep one more address until here.
    const auto sum = tile.place(also_kept, sum_of(tile.index()), sum_of);
    for_kept<kKept>(access, [&](int j) {
      add_up(p, share, owner.member, j / kSize, added + j / kSize, values + j);
      if (has_sum) write_values(share, sum, j / kSize, values + j);
    });
  }

  // Centre it, and take both moments of the rest.
  RowStatistics of;
  if (is_normalised<kKind>(p)) {
    const auto inverse = 1.0f / static_cast<float>(p.features);
    if (is_centred<kKind>(p)) {
      float sum = 0.0f;
      for_values(access, values, [&](float value, int) { sum += value; });
      of.rough_mean = row_sum<Policy>(sum, shared) * inverse;
    }
    if (access.shared_out <
        end_of_values(access)) {  // elements past the row's end must add nothing
      for_values(access, values, [&](float& value, int i) {
        if (!share.exists(i / kSize, i % kSize)) value = of.rough_mean;
      });
    }
    float sums[2]{};
    for_values(access, values, [&](float& value, int) {
      value -= of.rough_mean;
      sums[0] += value;
      sums[1] += value * value;
    });
    take_moments<Policy, kKind>(p, sums, inverse, shared + 1, of);
  }
  const auto y = tile.place(kept, mine.y, y_of);
  const ScaleAndShift<T> parameters(p, owner.member);
  for_kept<kKept>(access, [&](int j) {
    write_normalised(share, y, parameters, j / kSize, values + j, of.mean, of.scale);
  });
  if (!Policy::is_block && p.owners.ids != nullptr) {
    const RowShare<T, Policy> zeros(access, owner.becomes_zeros);
    write_zeros(zeros, y, kChunks);
    if (has_sum) write_zeros(zeros, tile.place(also_kept, mine.sum, sum_of), kChunks);
  }
  if (!access.is_staged) return;
  __syncthreads();
  tile.write(kept, y_of);
  if (has_sum) tile.write(also_kept, sum_of);
}

/// Rows that no block can hold: reread for each pass.
template <class T, RowKind kKind>
__global__ void __launch_bounds__(LongNormRow::max_block, kResidentLongBlocks<kKind>)
    row_norm_long_kernel(const __grid_constant__ RowNormParams p,
                         const __grid_constant__ Divisor by_members,
                         const __grid_constant__ RowAccess access) {
  constexpr int kSize = Vec16<T>::kSize, kLoads = 4;
  constexpr int kStep = LongNormRow::max_block * kSize;
  constexpr int kStretch = 4096 / kSize;  // chunks per thread
  constexpr bool kIsChain = kKind == RowKind::chain;
  __shared__ float shared[3][kWarp];
  const RowNormPlace<T> place(p, by_members, blockIdx.x);
  const RowPlace<T> y{place.y, place.y}, stored{place.sum, place.sum};
  const RowShare<T, LongNormRow> share(access, true);
  const auto num_chunks = static_cast<int>((p.features + kStep - 1) / kStep);
  const auto inverse = 1.0f / static_cast<float>(p.features);
  arch::follow_grid();
  const RowOwner owner(p.owners, blockIdx.x, true, place.member);
  if (owner.becomes_zeros) write_zeros<LongNormRow, kKind>(p, access, place, num_chunks);
  if (!owner.is_computed) return;
  const ScaleAndShift<T> parameters(p, owner.member);

  // One loop for all passes: twice a sum of the values centred so far, then the writes. These may
  // overwrite the row: it is not read afterwards.
  enum : int { kMean, kMoments, kWrite };
  RowStatistics of;
#pragma unroll 1
  for (int pass = !is_normalised<kKind>(p) ? kWrite
                  : is_centred<kKind>(p)   ? kMean
                                           : kMoments;
       pass <= kWrite; ++pass) {
    // Terms are summed kStretch at a time: a single sum would drift, and stagnate at about 2^24.
    float sums[2]{}, before[2]{};
    for (int first = 0; first < num_chunks; first += kLoads) {
      if (first % kStretch == 0) {
        before[0] += sums[0], before[1] += sums[1];
        sums[0] = sums[1] = 0.0f;
      }
      Vec16<T> loaded[kLoads];
      [[maybe_unused]] Vec16<T> added[kIsChain ? kLoads : 1];
      share.load(loaded, place.x, first);
      if (kIsChain && p.residual != nullptr) share.load(added, place.residual, first);
#pragma unroll
      for (int c = 0; c < kLoads; c += kPieceChunks<T>) {
        float values[kRowPiece];
#pragma unroll
        for (int i = 0; i < kRowPiece; ++i) {
          values[i] = to_float(loaded[c + i / kSize].v[i % kSize]);
        }
        if constexpr (kIsChain) add_up(p, share, owner.member, first + c, added + c, values);
        if (kIsChain && pass == kWrite && p.sum != nullptr) {
          write_values(share, stored, first + c, values);
        }
#pragma unroll
        for (int i = 0; i < kRowPiece; ++i) {
          values[i] = share.exists(first + c, i) ? values[i] - of.rough_mean : 0.0f;
          sums[0] += values[i];
          sums[1] += values[i] * values[i];
        }
        if (pass != kWrite) continue;
        write_normalised(share, y, parameters, first + c, values, of.mean, of.scale);
      }
    }
    sums[0] += before[0], sums[1] += before[1];
    if (pass == kMean) of.rough_mean = row_sum<LongNormRow>(sums[0], shared) * inverse;
    if (pass == kMoments) take_moments<LongNormRow, kKind>(p, sums, inverse, shared + 1, of);
  }
}

template <class T>
bool is_aligned16(const RowNormParams& p) {
  const int64_t strides = p.x_row_stride | p.x_member_stride | p.y_row_stride | p.y_member_stride |
                          p.residual_row_stride | p.residual_member_stride | p.sum_row_stride |
                          p.sum_member_stride | p.bias_member_stride | p.gamma_member_stride |
                          p.beta_member_stride;
  uintptr_t addresses = 0;
  for (const void* address : {p.x, p.bias, p.residual, p.gamma, p.beta,
                              static_cast<const void*>(p.y), static_cast<const void*>(p.sum)}) {
    addresses |= reinterpret_cast<uintptr_t>(address);
  }
  return strides % Vec16<T>::kSize == 0 && addresses % 16 == 0;
}

inline bool is_packed(const RowNormParams& p) {
  const auto is_fit = [&](const void* address, int64_t row_stride, int64_t member_stride) {
    return address == nullptr ||
           has_packed_rows(p.features, p.num_members, p.rows, row_stride, member_stride);
  };
  return is_fit(p.x, p.x_row_stride, p.x_member_stride) &&
         is_fit(p.y, p.y_row_stride, p.y_member_stride) &&
         is_fit(p.residual, p.residual_row_stride, p.residual_member_stride) &&
         is_fit(p.sum, p.sum_row_stride, p.sum_member_stride);
}

template <class T, class Policy>
RowLaunch launch_of(const RowNormParams& p) {
  const int tiles = p.residual != nullptr || p.sum != nullptr ? 2 : 1;
  RowLaunch launch = row_launch<T, Policy>(p.rows, p.num_members, p.features, is_aligned16<T>(p),
                                           is_packed(p), tiles);
  if (p.owners.only != RowOwners::kAll) {  // staged blocks write all their rows
    launch.access.is_staged = false;
    launch.bytes = 0;
  }
  return launch;
}

template <RowKind kKind>
cudaError_t launch_row_norm(Dtype dtype, const RowNormParams& p, cudaStream_t stream) {
  if (p.num_members * p.rows * p.features == 0) return cudaSuccess;
  return dispatch_float(dtype, [&]<class T>(std::type_identity<T>) {
    const auto launch = [&](auto* kernel, const RowLaunch& rows) {
      return launch_rows(kernel, rows, stream, p, Divisor(p.num_members));
    };
    if (p.features <= ShortRow<16>::max_features) {
      return launch(row_norm_kernel<T, ShortRow<16>, kKind>, launch_of<T, ShortRow<16>>(p));
    }
    if (p.features <= ShortRow<32>::max_features) {
      return launch(row_norm_kernel<T, ShortRow<32>, kKind>, launch_of<T, ShortRow<32>>(p));
    }
    if (p.features <= BlockRow::max_features) {
      return launch(row_norm_kernel<T, BlockRow, kKind>, launch_of<T, BlockRow>(p));
    }
    return launch(row_norm_long_kernel<T, kKind>, launch_of<T, LongNormRow>(p));
  });
}

}  // namespace wide::kernels
