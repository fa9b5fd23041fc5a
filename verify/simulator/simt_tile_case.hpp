// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Bulk copies for tests: an mbarrier, a tensor map in device memory, and waiting as programs wait.
#pragma once

#include <cstring>
#include <span>

#include "verify/simulator/simt_case.hpp"

namespace wide::simt {

constexpr uint32_t kMbarrier = kSharedBase, kTile = kSharedBase + 1024;

struct TileCase : SimtCase {
  explicit TileCase(Delivery delivery = Delivery::lazy, int64_t shared_bytes = 200 << 10)
      : SimtCase(64), map_address(memory.allocate(128, "map", BufferKind::device, true)) {
    config.dynamic_shared_bytes = shared_bytes;
    options.delivery = delivery;
    begin();
  }
  /// An mbarrier for one arrival that everybody knows.
  void make_mbarrier() {
    async().init(thread(0), kMbarrier, 1, line(1));
    async().fence_mbarrier_init(thread(0));
    barrier();
  }
  void barrier() {
    for (Warp& each : blocks[0]->warps) {
      reach_barrier(each, each.paths[0], kAllLanes, {.at = line(90)});
    }
  }
  Async& async() { return *blocks[0]->async; }
  SharedMemory& shared() { return *blocks[0]->shared; }
  void set_map(const TensorMap& map) { std::memcpy(memory.data(map_address), &map, sizeof map); }
  void expect(uint32_t bytes) { async().arrive(thread(0), kMbarrier, 1, bytes, line(2)); }
  void load(std::span<const int32_t> coordinates, uint32_t to = kTile, int at = 3) {
    async().load_tile(thread(0), to, map_address, coordinates, kMbarrier, line(at));
  }
  void store(std::span<const int32_t> coordinates, uint32_t from = kTile, int at = 4) {
    async().store_tile(thread(0), map_address, coordinates, from, line(at));
  }
  /// Whether all of warp 0 gets past the phase, letting things land where it must.
  bool wait(uint32_t parity) {
    Warp& warp = blocks[0]->warps[0];
    while (!async().test_wait(warp, kAllLanes, kMbarrier, parity, line(5))) {
      async().wait(warp, warp.paths[0], kMbarrier, line(5));
      while (!warp.paths[0].is_ready) {
        if (!async().progress()) return false;
      }
    }
    return true;
  }
  void read(uint32_t address, int64_t bytes, size_t by = 0) {
    shared().read(thread(by), address, bytes, SharedAccess::generic, line(6));
  }
  void write(uint32_t address, int64_t bytes, size_t by = 0) {
    shared().write(thread(by), address, bytes, SharedAccess::generic, line(7));
  }
  uint64_t map_address;
};

}  // namespace wide::simt
