// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y = op(x, second), element by element of packed tensors; kernels differ in the op alone.
//
// Plan: the time is that of moving the bytes. Where members and rows lie side by side in all
// tensors they are one run of elements, so that a packed tensor of any D is moved in whole vectors
// but for its last; else a run is what is contiguous. Runs are cut into units, of 16 bytes where
// all addresses and strides allow it and of one element elsewhere; neighbouring threads take
// neighbouring units, so that every warp's loads and stores are whole sectors, and each thread
// starts the loads of all its four before it uses one. Where a unit lies is two divisions for a
// thread's first; the others follow by adding what a block's threads advance, with a carry. Where
// rows have something in common, such as a row of the second operand, a thread's units lie in rows
// below one another instead, and it is loaded once for all four.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/divisor.hpp"
#include "kernels/common/numeric.cuh"
#include "kernels/pointwise/packed_runs.hpp"

namespace wide::kernels {

constexpr int kPackedThreads = 128;
constexpr int kPackedUnits = 4;  // of a thread, all under way at once

/// A number of units as whole rows of members, members and units.
struct PackedStep {
  int64_t rows, members, units;
};

/// How runs are cut.
struct PackedCut {
  bool is_aligned = false;  ///< units are vectors
  bool is_by_rows = false;  ///< a thread's units are of rows below one another
  int64_t units_per_run = 0;
  Divisor by_units, by_members;
  PackedStep step{};  ///< from one unit of a thread to its next
  // Of a second operand of members: which of them, of how many features, a run goes through, over
  // and over.
  int64_t features = 0, joined_members = 1;
  Divisor by_features, by_joined;
};

/// Where a thread's unit lies.
struct PackedWalk {
  int64_t row, member, unit;

  /// Of the thread's first.
  __device__ explicit PackedWalk(const PackedCut& cut) {
    const int per_thread = cut.is_by_rows ? 1 : kPackedUnits;
    const int64_t index = int64_t{blockIdx.x} * (kPackedThreads * per_thread) + threadIdx.x;
    row = cut.by_members.divide(cut.by_units.divide(index, unit), member);
    if (cut.is_by_rows) row *= kPackedUnits;
  }
  __device__ void advance(const PackedParams& p, const PackedCut& cut) {
    unit += cut.step.units;
    member += cut.step.members;
    row += cut.step.rows;
    if (unit >= cut.units_per_run) {
      unit -= cut.units_per_run;
      ++member;
    }
    if (member >= p.num_members) {
      member -= p.num_members;
      ++row;
    }
  }
  __device__ bool exists(const PackedParams& p) const { return row < p.rows; }
  /// Of the run, in elements.
  __device__ int64_t at(int64_t row_stride, int64_t member_stride) const {
    return row * row_stride + member * member_stride;
  }
};

/// kSize neighbours of x and what the op may want to know of them.
template <class T, int kSize>
struct PackedUnit {
  T x[kSize];
  T second[kSize];
  int64_t element;  ///< the first one's number, where no members were joined in its member
  int64_t member;
};

template <class T, int kSize>
__device__ inline void load(T (&values)[kSize], const T* address) {
  if constexpr (kSize == 1) {
    values[0] = *address;
  } else {
    *reinterpret_cast<Vec16<T>*>(values) = load_vec16(address);
  }
}

/// Of elements [first, first + kSize) of the walk's run.
template <class T, int kSize>
__device__ inline void load_second(T (&values)[kSize], const PackedParams& p, const PackedCut& cut,
                                   const PackedWalk& walk, int64_t first) {
  const T* second =
      static_cast<const T*>(p.second) + walk.at(p.second_row_stride, p.second_member_stride);
  if (p.second_operand == SecondOperand::elements) return load(values, second + first);
  int64_t feature, member;
  (void)cut.by_joined.divide(cut.by_features.divide(first, feature), member);
  T own = second[member * p.second_member_stride];
#pragma unroll
  for (int e = 0; e < kSize; ++e) {
    values[e] = own;
    if (++feature == cut.features) {
      feature = 0;
      if (++member == cut.joined_members) member = 0;
      own = second[member * p.second_member_stride];
    }
  }
}

template <bool kHasSecond, class T, int kSize>
__device__ inline void load_unit(PackedUnit<T, kSize>& unit, const PackedParams& p,
                                 const PackedCut& cut, const PackedWalk& walk, int64_t first,
                                 bool has_same_second) {
  load(unit.x, static_cast<const T*>(p.x) + walk.at(p.x_row_stride, p.x_member_stride) + first);
  if constexpr (kHasSecond) {
    if (!has_same_second) load_second(unit.second, p, cut, walk, first);
  }
  unit.element = walk.row * p.features + first;
  unit.member = walk.member;
}

template <class T>
__device__ inline T* target(const PackedParams& p, const PackedWalk& walk, int64_t first) {
  return static_cast<T*>(p.y) + walk.at(p.y_row_stride, p.y_member_stride) + first;
}

template <class T, int kSize, class Op>
__device__ inline void store_unit(T* y, const PackedUnit<T, kSize>& unit, const Op& op) {
  float values[kSize], second[kSize];
#pragma unroll
  for (int e = 0; e < kSize; ++e) {
    values[e] = to_float(unit.x[e]);
    second[e] = to_float(unit.second[e]);
  }
  op(values, second, unit.element, unit.member);
  Vec16<T> out;
#pragma unroll
  for (int e = 0; e < kSize; ++e) out.v[e] = from_float<T>(values[e]);
  if constexpr (kSize == 1) {
    *y = out.v[0];
  } else {
    store_vec16(y, out);
  }
}

/// The thread's units, but those that a run's end cuts short.
template <bool kHasSecond, class T, int kSize, class Op>
__device__ inline void apply_units(const PackedParams& p, const PackedCut& cut, PackedWalk walk,
                                   const Op& op) {
  PackedUnit<T, kSize> units[kPackedUnits] = {};
  T* targets[kPackedUnits];
#pragma unroll
  for (int u = 0; u < kPackedUnits; ++u) {
    const int64_t first = walk.unit * kSize;
    const bool is_whole = walk.exists(p) && first + kSize <= p.features;
    targets[u] = is_whole ? target<T>(p, walk, first) : nullptr;
    const bool has_same_second = u > 0 && cut.is_by_rows;
    if (is_whole) load_unit<kHasSecond>(units[u], p, cut, walk, first, has_same_second);
    walk.advance(p, cut);
  }
#pragma unroll
  for (int u = 0; u < kPackedUnits; ++u) {
    if (targets[u] == nullptr) continue;
    if constexpr (kHasSecond) {
#pragma unroll
      for (int e = 0; e < kSize; ++e) {
        if (u > 0 && cut.is_by_rows) units[u].second[e] = units[0].second[e];
      }
    }
    store_unit(targets[u], units[u], op);
  }
}

/// Those, element by element.
template <bool kHasSecond, class T, int kSize, class Op>
__device__ inline void apply_ends(const PackedParams& p, const PackedCut& cut, PackedWalk walk,
                                  const Op& op) {
#pragma unroll 1
  for (int u = 0; u < kPackedUnits; ++u) {
    const int64_t first = walk.unit * kSize;
    if (walk.exists(p) && first + kSize > p.features) {
#pragma unroll 1
      for (int64_t d = first; d < p.features; ++d) {
        PackedUnit<T, 1> unit = {};
        load_unit<kHasSecond>(unit, p, cut, walk, d, false);
        store_unit(target<T>(p, walk, d), unit, op);
      }
    }
    walk.advance(p, cut);
  }
}

/// What a kernel of this kind does. op(values, second, element, member) replaces values, neighbours
/// in fp32; the last two as PackedUnit has them.
template <bool kHasSecond, class T, class Op>
__device__ inline void apply_packed(const PackedParams& p, const PackedCut& cut, const Op& op) {
  const PackedWalk start(cut);
  if (!cut.is_aligned) return apply_units<kHasSecond, T, 1>(p, cut, start, op);
  constexpr int kSize = Vec16<T>::kSize;
  apply_units<kHasSecond, T, kSize>(p, cut, start, op);
  if (p.features % kSize != 0) apply_ends<kHasSecond, T, kSize>(p, cut, start, op);
}

/// Rows that lie side by side become one run of features; `with_members`: members before them.
inline void join_runs(PackedParams& p, bool with_members) {
  const bool has_elements = p.second_operand == SecondOperand::elements;
  const auto is_side_by_side = [&](int64_t x, int64_t y, int64_t second) {
    return x == p.features && y == p.features && (!has_elements || second == p.features);
  };
  if (with_members &&
      is_side_by_side(p.x_member_stride, p.y_member_stride, p.second_member_stride)) {
    p.features *= p.num_members;
    p.num_members = 1;
  }
  if (p.num_members == 1 && is_side_by_side(p.x_row_stride, p.y_row_stride, p.second_row_stride)) {
    p.features *= p.rows;
    p.rows = 1;
  }
}

/// Whether all units of 16 bytes are aligned to them.
template <class T>
bool is_aligned16(const PackedParams& p) {
  const bool has_elements = p.second_operand == SecondOperand::elements;
  int64_t strides = 0;
  if (p.num_members > 1) strides |= p.x_member_stride | p.y_member_stride;
  if (p.rows > 1) strides |= p.x_row_stride | p.y_row_stride;
  if (has_elements && p.num_members > 1) strides |= p.second_member_stride;
  if (has_elements && p.rows > 1) strides |= p.second_row_stride;
  const auto addresses = reinterpret_cast<uintptr_t>(p.x) | reinterpret_cast<uintptr_t>(p.y) |
                         (has_elements ? reinterpret_cast<uintptr_t>(p.second) : 0);
  return strides % Vec16<T>::kSize == 0 && addresses % 16 == 0;
}

/// What is cut where the op does not mind which member an element is of. Where the second operand
/// is of members and runs are whole vectors as they are, rows stay apart: it is loaded less often.
template <class T>
PackedParams joined_runs(const PackedParams& p) {
  PackedParams joined = p;
  const bool is_apart = p.second_operand == SecondOperand::members &&
                        p.features % Vec16<T>::kSize == 0 && is_aligned16<T>(p);
  if (!is_apart) join_runs(joined, true);
  return joined;
}

/// `joined`: runs as they are cut; `whole`: the same problem before join_runs(). `knows_members`:
/// the op loads something of a member, and keeps it.
template <class T>
PackedCut cut_runs(const PackedParams& joined, const PackedParams& whole, bool is_aligned,
                   bool knows_members = false) {
  PackedCut cut;
  cut.is_aligned = is_aligned;
  const int64_t unit = is_aligned ? Vec16<T>::kSize : 1;
  cut.units_per_run = (joined.features + unit - 1) / unit;
  const bool is_row_second =
      joined.second_operand != SecondOperand::none && joined.second_row_stride == 0;
  // Rows shorter than a warp would leave its sectors in pieces.
  cut.is_by_rows = joined.rows > 1 && (is_row_second || knows_members) &&
                   joined.num_members * cut.units_per_run >= 32;
  cut.by_units = Divisor(cut.units_per_run);
  cut.by_members = Divisor(joined.num_members);
  const int64_t runs = kPackedThreads / cut.units_per_run;
  cut.step = {runs / joined.num_members, runs % joined.num_members,
              kPackedThreads % cut.units_per_run};
  if (cut.is_by_rows) cut.step = {1, 0, 0};
  cut.features = whole.features;
  cut.joined_members = whole.num_members / joined.num_members;
  cut.by_features = Divisor(cut.features);
  cut.by_joined = Divisor(cut.joined_members);
  return cut;
}

/// Calls launch(blocks); none of the sizes is 0.
template <class Launch>
cudaError_t launch_packed(const PackedParams& p, const PackedCut& cut, const Launch& launch) {
  const int64_t per_thread = cut.is_by_rows ? 1 : kPackedUnits;
  const int64_t rows = cut.is_by_rows ? (p.rows + kPackedUnits - 1) / kPackedUnits : p.rows;
  const int64_t per_block = kPackedThreads * per_thread;
  const int64_t blocks = (rows * p.num_members * cut.units_per_run + per_block - 1) / per_block;
  if (blocks > 0x7fffffff) return cudaErrorInvalidConfiguration;
  launch(static_cast<unsigned>(blocks));
  return cudaGetLastError();
}

}  // namespace wide::kernels
