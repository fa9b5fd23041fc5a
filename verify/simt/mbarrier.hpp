// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The mbarriers of a block. Each has a slot in the vector clocks: asynchronous copies write in the
// slot's name at the time at which their phase will be complete, so that only who waited for that
// phase knows of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "verify/simt/machine.hpp"

namespace wide::simt {

class Mbarriers {
 public:
  explicit Mbarriers(Block& block) : block_(block) {}

  // The threads of init() and invalidate() are the block's; the others may be of its cluster.

  void init(Thread& thread, uint32_t address, uint32_t count, Location at);
  void invalidate(Thread& thread, uint32_t address, Location at);
  void expect_bytes(Thread& thread, uint32_t address, uint32_t bytes, Location at);
  uint64_t arrive(Thread& thread, uint32_t address, uint32_t count, uint32_t expected_bytes,
                  Location at);
  bool test_wait(Warp& warp, LaneMask lanes, uint32_t address, uint32_t parity, Location at);
  void wait(Warp& warp, Path& path, uint32_t address, Location at);
  bool is_out_of_time(Path& path);
  bool pass_time();
  /// The inits of this thread are visible to the asynchronous proxy from here on.
  void fence_init(const Thread& thread);
  /// They are to whoever meets the thread at the cluster's barrier from here on, too.
  void fence_init_for_cluster(const Thread& thread);
  void meet_cluster(const Thread& thread, uint32_t phase);

  // ---- for asynchronous operations: mbarriers by index

  /// Reports and returns -1 where no mbarrier is, and where the thread cannot know of its init.
  int find(const Thread& thread, uint32_t address, const char* what, Location at);
  /// Reports where the asynchronous proxy may not see the init yet.
  void require_visible(const Thread& thread, int index, const char* what, Location at) const;
  /// The slot at the end of the phase that is under way.
  Epoch phase_end(int index) const;
  void complete_bytes(int index, int64_t bytes);
  void add_pending(int index) { ++list_[static_cast<size_t>(index)].pending; }
  /// An arrival that publishes only what happened at `epoch`.
  void arrive_for(int index, Epoch epoch);

  void end_of_block();
  std::string describe() const;

 private:
  struct Waiter {
    int warp;
    LaneMask lanes;
    uint32_t phase;
  };
  struct Mbarrier {
    bool is_live = false;
    uint32_t address = 0;
    int64_t count = 0, pending = 0;  ///< arrivals of a phase; those still missing
    int64_t bytes = 0;               ///< expected and not yet here
    uint32_t phase = 0;
    uint32_t time = 0;  ///< phases of all mbarriers that had this slot
    Epoch init, fence;
    bool is_fenced_for_cluster = false;
    std::optional<uint32_t> meeting;  ///< phase of the cluster's barrier: known after its end
    Knowledge gathered, published;
    std::vector<Waiter> waiters;  ///< until they have asked again
    Location at;                  ///< of the init
  };

  /// Whether the thread met the initialiser, who had fenced, at the cluster's barrier.
  static bool has_met(const Thread& thread, const Mbarrier& mbarrier);
  std::string name(const Mbarrier& mbarrier) const;
  void report(const std::string& text, Location at, Location against = {}) const;
  Mbarrier& free_slot();
  void expect(Mbarrier& mbarrier, uint32_t bytes, Location at);
  void arrive_from_afar(Mbarrier& mbarrier, Thread& thread, Location at);
  void count_arrivals(Mbarrier& mbarrier, int64_t count, Location at);
  void complete_if_due(Mbarrier& mbarrier);
  /// These lanes ask again: how many phases have passed since they began to wait.
  uint32_t forget_waiters(Mbarrier& mbarrier, const Warp& warp, LaneMask lanes);

  Block& block_;
  std::vector<Mbarrier> list_;  ///< by slot
  /// A thread of another block that has arrived here, and when and where last.
  struct Visitor {
    const Thread* thread;
    Epoch last;
    Location at;
  };
  std::vector<Visitor> visitors_;
  int64_t num_events_ = 0;  ///< in the block, when time passed last
  int num_idle_ = 0;        ///< times since one came
};

}  // namespace wide::simt
