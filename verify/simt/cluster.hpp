// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Blocks that run together: they have a barrier, arrive at each other's mbarriers and copy tiles
// into each other's shared memory. A launch without clusters has one block in each.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "verify/simt/machine.hpp"

namespace wide::simt {

constexpr int kMaxClusterBlocks = 8;  // portable ones

struct ClusterBarrier {
  uint32_t phase = 0;
  Knowledge gathered, published;                    ///< exported: of this phase, of the last one
  std::vector<std::pair<Warp*, LaneMask>> waiting;  ///< for the end of this phase
};

struct Cluster {
  Cluster(Launch& launch, int64_t linear_index);

  std::vector<std::unique_ptr<Block>> blocks;  ///< by rank
  ClusterBarrier barrier;
  bool is_done() const;
};

/// A shared address as instructions for clusters see it: the block whose shared memory it is in,
/// and the address there. A block's own addresses are among them.
struct ClusterAddress {
  Block& block;
  uint32_t address;
};
/// Reports out_of_bounds and throws Fault where the cluster has no such block.
ClusterAddress locate(Block& from, uint32_t address, const char* what, Location at);
/// mapa: an own address as it is in the block of that rank. Throws as locate() does.
uint32_t map_to_rank(Block& from, uint32_t address, uint32_t rank, Location at);
/// The block of that rank, as above.
Block& block_of_rank(Block& from, uint32_t rank, const char* what, Location at);

// barrier.cluster. As with a block's barriers, aligned ones wait for the rest of their warp; each
// returns whether the path goes on.

/// Lanes whose arrival releases nothing where it is relaxed.
bool arrive_at_cluster(Warp& warp, Path& path, LaneMask lanes, bool releases, bool is_aligned,
                       Location at);
bool wait_for_cluster(Warp& warp, Path& path, LaneMask lanes, bool is_aligned, Location at);
/// Threads that exited are waited for no longer.
void cluster_lanes_exited(Cluster& cluster);

}  // namespace wide::simt
