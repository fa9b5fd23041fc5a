// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// cp.async: copies of 4 to 16 bytes that belong to the thread that began them. Their destination
// is in flight for everybody, that thread included, until it has waited for them.
#pragma once

#include <cstdint>
#include <vector>

#include "verify/simt/machine.hpp"

namespace wide::simt {

class Mbarriers;

/// Of one block. Copies of a thread land in the order in which they began, so that everything that
/// has landed is a prefix of them.
class CopyGroups {
 public:
  CopyGroups(Block& block, Mbarriers& mbarriers) : block_(block), mbarriers_(mbarriers) {}

  void copy(Thread& thread, uint32_t shared, uint64_t global, int bytes, int source_bytes,
            Location at);
  void commit(Thread& thread);
  void wait_group(Thread& thread, int pending);
  void wait_all(Thread& thread);
  void copy_arrive(Thread& thread, uint32_t mbarrier, bool is_counted, Location at);

  /// Whether an arrival waits for copies to land.
  bool has_arrivals() const { return !arrivals_.empty(); }
  /// Lets the copies of one of them land.
  void progress();
  void end_of_block();

 private:
  struct Copy {
    uint64_t global;
    uint32_t shared;
    uint8_t bytes, source_bytes;
    bool has_data;  ///< moved already, though nobody may know
    Location at;
  };
  struct ThreadCopies {
    int64_t num_landed = 0;           ///< of all copies that the thread ever began
    std::vector<Copy> under_way;      ///< the ones after those
    std::vector<int64_t> group_ends;  ///< copies begun when each open group was committed
    int64_t num_begun() const { return num_landed + static_cast<int64_t>(under_way.size()); }
  };
  struct Arrival {
    int thread;
    int64_t after;  ///< copies of the thread
    int mbarrier;
    Epoch epoch;  ///< of the copies, once they have landed
  };

  ThreadCopies& copies_of(const Thread& thread);
  void move_data(Copy& copy);
  /// The first `count` copies of the thread are its own writes, made at `time`.
  void land(Thread& thread, int64_t count, uint32_t time);
  void finish_arrivals(const Thread& thread);

  Block& block_;
  Mbarriers& mbarriers_;
  std::vector<ThreadCopies> threads_;  ///< empty before the first copy
  std::vector<Arrival> arrivals_;      ///< oldest first
};

}  // namespace wide::simt
