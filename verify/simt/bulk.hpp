// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Bulk copies and tiles between global and shared memory. A load lands on an mbarrier, a store in a
// group of the thread that issued it: the store first reads its source, then writes its results,
// and a thread may wait for either.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "verify/simt/bulk_region.hpp"
#include "verify/simt/machine.hpp"

namespace wide::simt {

class Mbarriers;

class BulkCopies {
 public:
  BulkCopies(Block& block, Mbarriers& mbarriers) : block_(block), mbarriers_(mbarriers) {}

  /// Into this block, or the targets: to `shared` of each, where the bytes complete on `mbarrier`.
  void load_tile(Thread& thread, uint32_t shared, uint64_t tensor_map,
                 std::span<const int32_t> coordinates, uint32_t mbarrier, Location at,
                 std::span<Block* const> targets = {});
  void store_tile(Thread& thread, uint64_t tensor_map, std::span<const int32_t> coordinates,
                  uint32_t shared, Location at);
  void load_bulk(Thread& thread, uint32_t shared, uint64_t global, int64_t bytes, uint32_t mbarrier,
                 Location at, std::span<Block* const> targets = {});
  /// A load into this block, by a thread of its cluster.
  void begin_load(Thread& thread, const BulkRegion& region, uint32_t mbarrier, Location at);
  void store_bulk(Thread& thread, uint64_t global, uint32_t shared, int64_t bytes, Location at);
  void commit_stores(Thread& thread);
  void wait_stores(Thread& thread, int pending, bool only_read);
  void prefetch_tile(const Thread& thread, uint64_t tensor_map,
                     std::span<const int32_t> coordinates, Location at);
  void prefetch_bulk(const Thread& thread, uint64_t global, int64_t bytes, Location at);

  bool has_loads() const { return !loads_.empty(); }
  void progress_load();
  /// Lets the source of a random store be read.
  void progress_store();
  bool has_unread_stores() const { return num_unread_ > 0; }
  void end_of_block();

 private:
  struct Load {
    BulkRegion region;
    Thread* thread;
    int mbarrier;
    Epoch epoch;  ///< of the writes
    Location at;
  };
  enum class StoreState { begun, has_read, is_released };
  struct Store {
    BulkRegion region;
    int thread;
    int64_t group;  ///< of the thread
    Location at;
    StoreState state = StoreState::begun;
    std::vector<std::byte> data{};  ///< row by row, once it has read
  };

  BulkRegion tile(const Thread& thread, uint32_t shared, uint64_t tensor_map,
                  std::span<const int32_t> coordinates, const char* what, Location at) const;
  void prefetch(const Thread& thread, const BulkRegion& region, const char* what, Location at);
  void load(Thread& thread, const BulkRegion& region, uint32_t mbarrier, Location at,
            std::span<Block* const> targets);
  void begin_store(Thread& thread, const BulkRegion& region, Location at);
  void land(size_t load);
  void read_source(Store& store);
  void release_source(Store& store);
  void write_results(Store& store);
  int64_t& num_committed(const Thread& thread);
  bool lands_at_once();

  Block& block_;
  Mbarriers& mbarriers_;
  std::vector<Load> loads_;
  std::vector<Store> stores_;           ///< in the order of issue
  int64_t num_unread_ = 0;              ///< of them
  std::vector<int64_t> num_committed_;  ///< groups, by thread; empty before the first store
};

}  // namespace wide::simt
