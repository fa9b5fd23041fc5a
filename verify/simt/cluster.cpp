// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Clusters: ranks, addresses and the barrier. What blocks learn of each other is exported and
// imported, as between blocks that hand over by global memory.
#include "verify/simt/cluster.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "verify/simt/async.hpp"
#include "verify/simt/barrier.hpp"
#include "verify/simt/text.hpp"

namespace wide::simt {

namespace {

// Above the 228 KiB of a block. An address with 0 here is the block's own, otherwise rank + 1.
constexpr uint32_t kRankShift = 24;
constexpr const char* kWaitsFor = "the cluster's barrier";

[[noreturn]] void refuse_rank(Block& from, uint32_t rank, const char* what, Location at) {
  const size_t size = from.cluster.blocks.size();
  const std::string text = std::string(what) + ": the block of rank " + std::to_string(rank) +
                           ", of a cluster of " + std::to_string(size);
  from.launch.report(FindingKind::out_of_bounds, from, text, at);
  throw Fault(Fault::Kind::illegal_address, text);
}

void leave(const ClusterBarrier& barrier, Warp& warp, LaneMask lanes) {
  for_lanes(lanes, [&](int lane) {
    Thread& thread = warp.thread(lane);
    thread.known.import(barrier.published, warp.block->linear_index);
    thread.is_at_cluster_barrier = false;
    thread.cluster_phases_over = thread.cluster_phase + 1;
  });
}

/// Whether every thread that has not exited came in this phase.
bool is_complete(const Cluster& cluster) {
  bool any = false;
  for (const auto& block : cluster.blocks) {
    for (const Warp& warp : block->warps) {
      for (LaneMask lanes = warp.exists & ~warp.exited; lanes != 0; lanes &= lanes - 1) {
        const Thread& thread = warp.thread(std::countr_zero(lanes));
        const bool came =
            thread.is_at_cluster_barrier && thread.cluster_phase == cluster.barrier.phase;
        if (!came) return false;
        any = true;
      }
    }
  }
  return any;
}

void complete_if_due(Cluster& cluster) {
  ClusterBarrier& barrier = cluster.barrier;
  if (!is_complete(cluster)) return;
  ++barrier.phase;
  barrier.published = std::exchange(barrier.gathered, {});
  for (const auto& [warp, lanes] : std::exchange(barrier.waiting, {})) {
    leave(barrier, *warp, lanes);
    warp->wake(lanes);
  }
}

void report(const Warp& warp, LaneMask lanes, const char* does, Location at) {
  Block& block = *warp.block;
  block.launch.report(FindingKind::barrier, block,
                      to_string(warp.thread(std::countr_zero(lanes))) + " " + does, at);
}

LaneMask at_barrier(const Warp& warp, LaneMask lanes) {
  LaneMask found = 0;
  for_lanes(lanes, [&](int lane) {
    if (warp.thread(lane).is_at_cluster_barrier) found |= LaneMask{1} << lane;
  });
  return found;
}

void arrive(Warp& warp, LaneMask lanes, bool releases, Location at) {
  Cluster& cluster = warp.block->cluster;
  ClusterBarrier& barrier = cluster.barrier;
  if (const LaneMask twice = at_barrier(warp, lanes); twice != 0)
    report(warp, twice, "arrives at the cluster's barrier again without having waited there", at);
  Knowledge released;
  for_lanes(lanes, [&](int lane) {
    Thread& thread = warp.thread(lane);
    if (releases) released.join(thread.release());
    thread.is_at_cluster_barrier = true;
    thread.cluster_phase = barrier.phase;
    warp.block->async->meet_cluster(thread, barrier.phase);
  });
  barrier.gathered.join(released.exported(warp.block->linear_index));
  complete_if_due(cluster);
}

/// Whether the lanes go on.
bool pass(Warp& warp, LaneMask lanes, Location at) {
  ClusterBarrier& barrier = warp.block->cluster.barrier;
  const LaneMask came = at_barrier(warp, lanes);
  if (came != lanes)
    report(warp, lanes & ~came, "waits at the cluster's barrier where it has not arrived", at);
  const bool is_over =
      came == 0 || warp.thread(std::countr_zero(came)).cluster_phase != barrier.phase;
  if (is_over) {
    leave(barrier, warp, came);
  } else {
    barrier.waiting.emplace_back(&warp, lanes);
  }
  return is_over;
}

}  // namespace

Cluster::Cluster(Launch& launch, int64_t linear_index) {
  const Dim3& grid = launch.config.grid;
  const Dim3& size = launch.config.cluster;
  const uint32_t across = grid.x / size.x, down = grid.y / size.y;
  const auto linear = static_cast<uint32_t>(linear_index % across);
  const auto rest = static_cast<uint32_t>(linear_index / across);
  const Dim3 first{linear * size.x, rest % down * size.y, rest / down * size.z};
  for (uint32_t z = 0; z < size.z; ++z) {
    for (uint32_t y = 0; y < size.y; ++y) {
      for (uint32_t x = 0; x < size.x; ++x) {
        const int64_t row = first.y + y + int64_t{grid.y} * (first.z + z);
        blocks.push_back(std::make_unique<Block>(launch, *this, static_cast<int>(blocks.size()),
                                                 first.x + x + grid.x * row));
      }
    }
  }
}

bool Cluster::is_done() const {
  return std::all_of(blocks.begin(), blocks.end(),
                     [](const auto& block) { return block->is_done(); });
}

Block& block_of_rank(Block& from, uint32_t rank, const char* what, Location at) {
  if (rank == static_cast<uint32_t>(from.rank)) return from;
  if (rank >= from.cluster.blocks.size()) refuse_rank(from, rank, what, at);
  Block& block = *from.cluster.blocks[rank];
  if (block.is_done()) {
    from.launch.report(FindingKind::unfinished, from,
                       std::string(what) + ": the block of rank " + std::to_string(rank) +
                           " has ended, and its shared memory with it",
                       at);
  }
  return block;
}

ClusterAddress locate(Block& from, uint32_t address, const char* what, Location at) {
  const uint32_t tag = address >> kRankShift;
  if (tag == 0) return {from, address};
  return {block_of_rank(from, tag - 1, what, at), address & ((1u << kRankShift) - 1)};
}

uint32_t map_to_rank(Block& from, uint32_t address, uint32_t rank, Location at) {
  const size_t size = from.cluster.blocks.size();
  if (rank >= size) refuse_rank(from, rank, "mapa", at);
  if (rank == static_cast<uint32_t>(from.rank)) return address;
  return address | (rank + 1) << kRankShift;
}

bool arrive_at_cluster(Warp& warp, Path& path, LaneMask lanes, bool releases, bool is_aligned,
                       Location at) {
  return reach_together(warp, path, lanes, is_aligned, kWaitsFor, at, [=, &warp](LaneMask met) {
    arrive(warp, met, releases, at);
    return true;
  });
}

bool wait_for_cluster(Warp& warp, Path& path, LaneMask lanes, bool is_aligned, Location at) {
  return reach_together(warp, path, lanes, is_aligned, kWaitsFor, at,
                        [=, &warp](LaneMask met) { return pass(warp, met, at); });
}

void cluster_lanes_exited(Cluster& cluster) {
  complete_if_due(cluster);
}

}  // namespace wide::simt
