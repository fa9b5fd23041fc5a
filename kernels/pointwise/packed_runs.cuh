// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y = op(x, second), element by element of packed tensors; kernels differ only in the op.
//
// Plan: moving the bytes takes the time. Where members and rows are contiguous in all tensors they
// are one run of elements, so that a packed tensor of any D is moved in whole vectors except for
// its ends; otherwise a run is what is contiguous. Runs are cut into units of 16 bytes, aligned
// like sectors whatever a run's first address, or of one element where x and y, or their rows, have
// different offsets within 16 bytes. Neighbouring threads take neighbouring units, so that every
// warp's loads and stores are whole sectors, and each thread issues the loads of all its four units
// before it uses one. A unit's position takes two divisions for a thread's first; the others follow
// by adding the step of a block's threads, with a carry. That is more than half of the time of a
// 16-bit relu, so one run of whole vectors, as in packed tensors, has its units numbered
// consecutively and skips it. Where rows share something, such as a row of the second operand, and
// are whole vectors, a thread's units are in consecutive rows instead, and it is loaded once for
// all four.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/divisor.hpp"
#include "kernels/common/vector_load.cuh"
#include "kernels/pointwise/packed_runs.hpp"

namespace wide::kernels {

constexpr int kPackedThreads = 128;
constexpr int kPackedUnits = 4;  // per thread, all in flight at once

/// A number of units split into whole rows of members, members and units.
struct PackedStep {
  int64_t rows, members, units;
};

/// How runs are cut.
struct PackedCut {
  bool is_vector = false;   ///< units are vectors
  bool has_ends = false;    ///< some of them are cut short by their run's first or last element
  bool is_by_rows = false;  ///< a thread's units are in consecutive rows
  bool is_flat = false;     ///< there is one run, of units that are aligned vectors
  int phases = 1;  ///< a run's first unit begins its address modulo this many elements before it
  int64_t units_per_run = 0;
  Divisor by_units, by_members;
  PackedStep step{};  ///< between units of a thread
  // The repeating content of a run: this many members of this many features each.
  int64_t features = 0, joined_members = 1;
  Divisor by_features, by_joined;
};

/// Position of a thread's unit, for runs of any kind.
struct PackedWalk {
  static constexpr bool kIsFlat = false;
  int64_t row, member, unit;

  /// The thread's first unit.
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
  /// The offset of the run, in elements.
  __device__ int64_t at(int64_t row_stride, int64_t member_stride) const {
    return row * row_stride + member * member_stride;
  }
};

/// The same for a single run.
struct FlatWalk {
  static constexpr bool kIsFlat = true;
  static constexpr int64_t row = 0, member = 0;
  int64_t unit;

  __device__ explicit FlatWalk(const PackedCut&)
      : unit(int64_t{blockIdx.x} * (kPackedThreads * kPackedUnits) + threadIdx.x) {}
  __device__ void advance(const PackedParams&, const PackedCut&) { unit += kPackedThreads; }
  __device__ bool exists(const PackedParams&) const { return true; }
  __device__ int64_t at(int64_t, int64_t) const { return 0; }
};

/// Position of a unit: its run, and its first element there.
struct PackedPlace {
  int64_t row, member, first;
};

/// The same in rows and members before they were joined.
struct PackedSpot {
  int64_t row, member, feature;

  __device__ PackedSpot(const PackedCut& cut, const PackedPlace& place) {
    row = cut.by_joined.divide(cut.by_features.divide(place.first, feature), member);
    row += place.row;
    member += place.member;
  }
  /// Not past the member's row.
  __device__ void advance(const PackedCut& cut, int64_t count) {
    feature += count;
    if (feature < cut.features) return;
    feature = 0;
    if (++member < cut.joined_members) return;
    member = 0;
    ++row;
  }
};

/// kSize neighbours of x, with the second operand's.
template <class T, int kSize>
struct PackedUnit {
  T x[kSize];
  T second[kSize];
};

template <class T, int kSize>
__device__ inline void load_if(T (&values)[kSize], const T* address, bool exists) {
  if constexpr (kSize == 1) {
    if (exists) values[0] = *address;
  } else {
    const Vec16<T> vector = load_vec16_if(address, exists);
#pragma unroll
    for (int e = 0; e < kSize; ++e) values[e] = vector.v[e];
  }
}

/// A unit's values of a second operand of members or of a row that all rows share: through L1.
template <class T, int kSize>
__device__ inline void load_parameters(T (&values)[kSize], const PackedParams& p,
                                       const PackedCut& cut, const PackedPlace& place) {
  const T* second = static_cast<const T*>(p.second) + place.row * p.second_row_stride +
                    place.member * p.second_member_stride;
  PackedSpot spot(cut, {0, 0, place.first});
  if (p.second_operand == SecondOperand::rows) {
    const T *next = second + spot.feature, *end = second + cut.features;
#pragma unroll
    for (int e = 0; e < kSize; ++e) {
      values[e] = *next;
      if (++next == end) next = second;
    }
    return;
  }
  T own = second[spot.member * p.second_member_stride];
#pragma unroll
  for (int e = 0; e < kSize; ++e) {
    values[e] = own;
    spot.advance(cut, 1);
    if (spot.feature == 0) own = second[spot.member * p.second_member_stride];
  }
}

/// Loads a unit's streamed operands, where it exists.
template <bool kHasSecond, class T, int kSize, class Walk>
__device__ inline void load_unit(PackedUnit<T, kSize>& unit, const PackedParams& p,
                                 const Walk& walk, int64_t first, bool exists,
                                 bool has_same_second) {
  load_if(unit.x, static_cast<const T*>(p.x) + walk.at(p.x_row_stride, p.x_member_stride) + first,
          exists);
  if constexpr (kHasSecond) {
    load_if(unit.second,
            static_cast<const T*>(p.second) + walk.at(p.second_row_stride, p.second_member_stride) +
                first,
            exists && p.second_operand == SecondOperand::elements && !has_same_second);
  }
}

/// The first element of the walk's unit; a run's first unit may begin before the run.
template <class T, int kSize, class Walk>
__device__ inline int64_t first_of(const PackedParams& p, const PackedCut& cut, const Walk& walk) {
  if constexpr (kSize == 1 || Walk::kIsFlat) return walk.unit * kSize;
  const T* run = static_cast<const T*>(p.x) + walk.at(p.x_row_stride, p.x_member_stride);
  const uint32_t phase = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(run) / sizeof(T)) &
                         (static_cast<uint32_t>(cut.phases) - 1);
  return walk.unit * kSize - phase;
}

template <class T, class Walk>
__device__ inline T* target(const PackedParams& p, const Walk& walk, int64_t first) {
  return static_cast<T*>(p.y) + walk.at(p.y_row_stride, p.y_member_stride) + first;
}

template <class T, int kSize, class Op>
__device__ inline void store_unit(T* y, const PackedUnit<T, kSize>& unit, const PackedPlace& place,
                                  const Op& op) {
  float values[kSize], second[kSize];
#pragma unroll
  for (int e = 0; e < kSize; ++e) {
    values[e] = to_float(unit.x[e]);
    second[e] = to_float(unit.second[e]);
  }
  op(values, second, place);
  Vec16<T> out;
#pragma unroll
  for (int e = 0; e < kSize; ++e) out.v[e] = from_float<T>(values[e]);
  if constexpr (kSize == 1) {
    *y = out.v[0];
  } else {
    store_vec16(y, out);
  }
}

/// The thread's units, except those that an end of a run cuts short. Their positions are recomputed
/// for the stores: registers are scarce while the loads are in flight.
template <bool kHasSecond, class T, int kSize, class Walk, class Op>
__device__ inline void apply_units(const PackedParams& p, const PackedCut& cut, const Walk& start,
                                   const Op& op) {
  const auto is_whole = [&](const Walk& walk, int64_t first) {
    return walk.exists(p) && first >= 0 && first + kSize <= p.features;
  };
  PackedUnit<T, kSize> units[kPackedUnits] = {};
  Walk walk = start;
#pragma unroll
  for (int u = 0; u < kPackedUnits; ++u) {
    const int64_t first = first_of<T, kSize>(p, cut, walk);
    const bool has_same_second = u > 0 && !Walk::kIsFlat && cut.is_by_rows;
    load_unit<kHasSecond>(units[u], p, walk, first, is_whole(walk, first), has_same_second);
    walk.advance(p, cut);
  }
  walk = start;
#pragma unroll
  for (int u = 0; u < kPackedUnits; ++u) {
    const int64_t first = first_of<T, kSize>(p, cut, walk);
    if (is_whole(walk, first)) {
      const PackedPlace place{walk.row, walk.member, first};
      if constexpr (kHasSecond && !Walk::kIsFlat) {
        const bool has_same_second = u > 0 && cut.is_by_rows;
        if (p.second_operand != SecondOperand::elements && !has_same_second) {
          load_parameters(units[u].second, p, cut, place);
        }
#pragma unroll
        for (int e = 0; e < kSize; ++e) {
          if (has_same_second) units[u].second[e] = units[0].second[e];
        }
      }
      store_unit(target<T>(p, walk, first), units[u], place, op);
    }
    walk.advance(p, cut);
  }
}

/// Units that an end cuts short, element by element.
template <bool kHasSecond, class T, int kSize, class Walk, class Op>
__device__ inline void apply_ends(const PackedParams& p, const PackedCut& cut, Walk walk,
                                  const Op& op) {
#pragma unroll 1
  for (int u = 0; u < kPackedUnits; ++u) {
    const int64_t first = first_of<T, kSize>(p, cut, walk), end = min(first + kSize, p.features);
    if (walk.exists(p) && (first < 0 || end < first + kSize)) {
#pragma unroll 1
      for (int64_t d = max(first, int64_t{0}); d < end; ++d) {
        PackedUnit<T, 1> unit = {};
        const PackedPlace place{walk.row, walk.member, d};
        load_unit<kHasSecond>(unit, p, walk, d, true, false);
        if constexpr (kHasSecond) {
          if (p.second_operand != SecondOperand::elements) {
            load_parameters(unit.second, p, cut, place);
          }
        }
        store_unit(target<T>(p, walk, d), unit, place, op);
      }
    }
    walk.advance(p, cut);
  }
}

/// The body of such a kernel. op(values, second, place) replaces values, neighbours in fp32.
template <bool kHasSecond, class T, class Op>
__device__ inline void apply_packed(const PackedParams& p, const PackedCut& cut, const Op& op) {
  constexpr int kSize = Vec16<T>::kSize;
  if (cut.is_flat) return apply_units<kHasSecond, T, kSize>(p, cut, FlatWalk(cut), op);
  const PackedWalk start(cut);
  if (!cut.is_vector) return apply_units<kHasSecond, T, 1>(p, cut, start, op);
  apply_units<kHasSecond, T, kSize>(p, cut, start, op);
  if (cut.has_ends) apply_ends<kHasSecond, T, kSize>(p, cut, start, op);
}

/// Joins contiguous rows to one run of features; `with_members`: members before them.
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

/// Whether all 16-byte units are aligned.
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

/// Whether x, y, and a second operand of elements have equal offsets in 16 bytes in every run.
template <class T>
bool lies_alike(const PackedParams& p) {
  const auto is_alike = [&](const void* other, int64_t row_stride, int64_t member_stride) {
    const uintptr_t apart = reinterpret_cast<uintptr_t>(p.x) - reinterpret_cast<uintptr_t>(other);
    return apart % 16 == 0 &&
           (p.rows == 1 || (p.x_row_stride - row_stride) % Vec16<T>::kSize == 0) &&
           (p.num_members == 1 || (p.x_member_stride - member_stride) % Vec16<T>::kSize == 0);
  };
  return is_alike(p.y, p.y_row_stride, p.y_member_stride) &&
         (p.second_operand != SecondOperand::elements ||
          is_alike(p.second, p.second_row_stride, p.second_member_stride));
}

/// The runs to cut where the op does not depend on an element's member. Where the second operand is
/// of members or of one row and runs are already whole vectors, rows stay separate: it is loaded
/// less often.
template <class T>
PackedParams joined_runs(const PackedParams& p) {
  const auto is_whole = [](const PackedParams& runs) {
    return runs.features % Vec16<T>::kSize == 0 && is_aligned16<T>(runs);
  };
  PackedParams joined = p;
  if (p.second_operand == SecondOperand::members && is_whole(p)) return joined;
  join_runs(joined, true);
  const bool takes_one_row =
      p.second_operand == SecondOperand::elements && p.second_row_stride == 0;
  if (takes_one_row && joined.num_members == 1 && !is_whole(joined)) {
    PackedParams rows = joined;
    rows.second_operand = SecondOperand::rows;
    join_runs(rows, false);
    if (rows.rows == 1) return rows;
  }
  return joined;
}

/// `joined`: runs to be cut; `whole`: the same problem before joining. `knows_members`: the op
/// loads something per member, and keeps it.
template <class T>
PackedCut cut_runs(const PackedParams& joined, const PackedParams& whole,
                   bool knows_members = false) {
  constexpr int kSize = Vec16<T>::kSize;
  constexpr int64_t kWarpBytes = 512;  // most of shorter runs would be ends
  PackedCut cut;
  const bool is_aligned = is_aligned16<T>(joined);
  const bool is_long = joined.features * static_cast<int64_t>(sizeof(T)) >= kWarpBytes;
  cut.is_vector = is_aligned || (is_long && lies_alike<T>(joined));
  cut.phases = cut.is_vector && !is_aligned ? 2 * kSize : 1;
  const int64_t unit = cut.is_vector ? kSize : 1;
  cut.has_ends = cut.phases > 1 || joined.features % unit != 0;
  cut.units_per_run = (joined.features + cut.phases - 1 + unit - 1) / unit;
  const bool is_row_second =
      joined.second_operand != SecondOperand::none && joined.second_row_stride == 0;
  // Rows shorter than a warp would split its sectors.
  cut.is_by_rows = joined.rows > 1 && cut.phases == 1 && (is_row_second || knows_members) &&
                   joined.num_members * cut.units_per_run >= 32;
  const bool is_one_run = joined.num_members == 1 && joined.rows == 1;
  const bool takes_units = joined.second_operand == SecondOperand::none ||
                           joined.second_operand == SecondOperand::elements;
  cut.is_flat = is_one_run && takes_units && cut.is_vector && !cut.has_ends;
  cut.by_units = Divisor(cut.units_per_run);
  cut.by_members = Divisor(joined.num_members);
  const int64_t runs = kPackedThreads / cut.units_per_run;
  cut.step = {runs / joined.num_members, runs % joined.num_members,
              kPackedThreads % cut.units_per_run};
  if (cut.is_by_rows) cut.step = {1, 0, 0};
  const bool takes_rows = joined.second_operand == SecondOperand::rows;
  cut.features = whole.features * (takes_rows ? whole.num_members : 1);
  cut.joined_members = takes_rows ? 1 : whole.num_members / joined.num_members;
  cut.by_features = Divisor(cut.features);
  cut.by_joined = Divisor(cut.joined_members);
  return cut;
}

/// Calls launch(blocks), which returns a status; none of the sizes is 0.
template <class Launch>
cudaError_t launch_packed(const PackedParams& p, const PackedCut& cut, const Launch& launch) {
  const int64_t per_thread = cut.is_by_rows ? 1 : kPackedUnits;
  const int64_t rows = cut.is_by_rows ? (p.rows + kPackedUnits - 1) / kPackedUnits : p.rows;
  const int64_t per_block = kPackedThreads * per_thread;
  const int64_t blocks = (rows * p.num_members * cut.units_per_run + per_block - 1) / per_block;
  if (blocks > 0x7fffffff) return cudaErrorInvalidConfiguration;
  return launch(static_cast<unsigned>(blocks));
}

}  // namespace wide::kernels
