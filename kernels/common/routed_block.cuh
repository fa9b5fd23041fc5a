// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A block's way to rows that are routed to members: whose they are, by the block's slot
// (routed_slots.hpp). Nothing of a routing is trusted: a row outside of the operands is none.
//
// No block knows beforehand whose rows it has, and no table in device memory tells: it would have
// to be made by a kernel of its own, for every routing. Each warp searches for itself, in as many
// loads as first_rows has powers of 32, which all blocks share in the L2 cache.
#pragma once

#include "kernels/arch/load.cuh"

namespace wide::kernels {

/// A routing of `num_rows` rows, `tile` of them a slot.
struct RoutedSlots {
  const int32_t* first_rows;  ///< [num_members + 1]
  int32_t num_rows;
  uint32_t num_members;
  int32_t tile;
};

/// Member, its first row, and the first that is no longer its.
struct RoutedMember {
  uint32_t member;
  int32_t begin, end;
};

/// Rows [first, first + count) in routed order, of `member`, or of none: num_members.
struct RoutedBlock {
  int64_t member;
  int32_t first, count;
};

/// The entry of first_rows, between 0 and the number of rows.
__device__ inline int32_t first_row(const RoutedSlots& slots, uint32_t member) {
  return min(max(arch::load(slots.first_rows + member), 0), slots.num_rows);
}

/// The last member whose slots begin at `slot` or before. The whole warp searches, 32 members a
/// step: one load for up to 32 members, two that depend on each other for up to 1024. Member 0
/// begins at row 0, which nobody looks up.
__device__ inline RoutedMember member_of_slot(const RoutedSlots& slots, uint32_t slot) {
  constexpr uint32_t kLanes = 32, kAll = 0xffffffffu;
  const uint32_t lane = threadIdx.x % kLanes;
  RoutedMember found{0, 0, slots.num_rows};
  uint32_t left = slots.num_members;  // that may follow `found`
  while (left > 0) {
    const uint32_t step = (left + kLanes - 1) / kLanes, ahead = (lane + 1) * step;
    const uint32_t member = found.member + ahead;
    int32_t first = 0;
    bool is_before = false;
    if (ahead <= left) {
      first = first_row(slots, member);
      is_before = static_cast<uint32_t>(first / slots.tile) + member <= slot;
    }
    // Of a routing they are the first lanes; of anything else, what follows them is not looked at.
    const auto passed = static_cast<uint32_t>(__clz(__brev(~__ballot_sync(kAll, is_before))));
    const int32_t behind = __shfl_sync(kAll, first, static_cast<int>(passed % kLanes));
    const int32_t last = __shfl_sync(kAll, first, static_cast<int>((passed + kLanes - 1) % kLanes));
    if (passed > 0) found.begin = last;
    if (passed < kLanes && (passed + 1) * step <= left) found.end = behind;
    found.member += passed * step;
    left = min(step - 1, left - passed * step);
  }
  return found;
}

/// The `tile`-th part of a member's rows; none where it has fewer.
__device__ inline RoutedBlock rows_of_tile(const RoutedMember& found, uint32_t tile,
                                           int32_t tile_rows) {
  const int32_t rows = found.end - found.begin;
  if (rows <= 0 || tile > static_cast<uint32_t>(rows - 1) / static_cast<uint32_t>(tile_rows))
    return {found.member, 0, 0};
  const auto before = static_cast<int32_t>(tile) * tile_rows;
  return {found.member, found.begin + before, min(rows - before, tile_rows)};
}

/// The slot of a member's first rows.
__device__ inline uint32_t first_slot(const RoutedMember& found, int32_t tile_rows) {
  return static_cast<uint32_t>(found.begin / tile_rows) + found.member;
}

/// The rows of a slot; none where it is beyond the last of its member.
__device__ inline RoutedBlock rows_of_slot(const RoutedSlots& slots, uint32_t slot) {
  const RoutedMember found = member_of_slot(slots, slot);
  return rows_of_tile(found, slot - first_slot(found, slots.tile), slots.tile);
}

}  // namespace wide::kernels
