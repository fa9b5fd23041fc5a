// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Happens-before as vector clocks. A block has slots: its threads, then its mbarriers (asynchronous
// copies write in a barrier's name), then its warps (asynchronous matrix products read in a warp's
// name). What happened at time t of slot s is known to a thread whose clock holds s at t or later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace wide::simt {

struct Epoch {
  int32_t slot = -1;  ///< -1: never
  uint32_t time = 0;
};

/// What is known of every slot of one's own block, and of other blocks where a release and an
/// acquire ordered them. Threads that left one barrier together share their vector.
class Knowledge {
 public:
  using Times = std::vector<uint32_t>;

  bool includes(Epoch epoch) const {
    return epoch.slot < 0 ||
           (times_ != nullptr && (*times_)[static_cast<size_t>(epoch.slot)] >= epoch.time);
  }
  bool includes(int64_t block, Epoch epoch) const;
  void join(const Knowledge& other);
  /// Adds one slot's time.
  void join(Epoch epoch, int num_slots);
  /// For another block: `own_block` becomes an entry of the others.
  Knowledge exported(int64_t own_block) const;
  /// Joins what another block (or this one) exported.
  void import(const Knowledge& exported, int64_t own_block);
  void clear() { *this = {}; }

 private:
  using SharedTimes = std::shared_ptr<Times>;  ///< written to only by its one owner
  using Others = std::vector<std::pair<int64_t, SharedTimes>>;  ///< by block, ascending

  static void join(SharedTimes& times, const SharedTimes& other);
  void join_others(const std::shared_ptr<Others>& others);
  Others& own_others();

  SharedTimes times_;
  SharedTimes joined_;  ///< what was joined last: times_ holds it
  std::shared_ptr<Others> others_;
};

}  // namespace wide::simt
