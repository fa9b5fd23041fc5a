// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Threads, warps and blocks as data: how they begin, split, wake and end.
#include "verify/simt/machine.hpp"

#include <algorithm>

#include "verify/simt/async.hpp"
#include "verify/simt/global_memory.hpp"
#include "verify/simt/shared_memory.hpp"

namespace wide::simt {

Knowledge Thread::release() {
  Knowledge released = known;
  released.join(now(), block->num_slots());
  ++time;
  return released;
}

bool Thread::knew_at_proxy_fence(const Block& of, Epoch epoch) const {
  return &of == block ? proxy_known.includes(epoch) : proxy_known.includes(of.linear_index, epoch);
}

bool Thread::knows_proxy_fence(const Thread& writer, uint32_t written) const {
  const std::vector<uint32_t>& fences = writer.proxy_fences;
  const auto first = std::lower_bound(fences.begin(), fences.end(), written);
  return first != fences.end() && knows(*writer.block, {writer.index, *first});
}

std::string to_string(const Thread& thread) {
  return "thread " + std::to_string(thread.index) + " (warp " + std::to_string(thread.warp) +
         " lane " + std::to_string(thread.lane) + ")";
}

std::string name_in(const Block& block, const Thread& thread) {
  if (thread.block == &block) return to_string(thread);
  return to_string(thread) + " of the block of rank " + std::to_string(thread.block->rank);
}

Path& Warp::path_of(int lane) {
  return *std::find_if(paths.begin(), paths.end(),
                       [&](const Path& path) { return (path.lanes >> lane & 1) != 0; });
}

void Warp::wake(LaneMask lanes) {
  for (Path& path : paths) {
    if ((path.lanes & lanes) != 0) path.is_ready = true;
  }
}

void Warp::split(Path& path, LaneMask keep) {
  const LaneMask rest = path.lanes & ~keep;
  if (rest == 0) return;
  Path other = path;
  other.lanes = rest;
  path.lanes &= keep;
  paths.push_back(std::move(other));  // within the capacity for a path a lane
}

void Warp::block_lanes(Path& path, LaneMask lanes, const char* what, Location at) {
  split(path, lanes);
  path.is_ready = false;
  path.waits_for = what;
  path.at = at;
  run_length = 0;
}

Block::Block(Launch& owner, Cluster& of, int its_rank, int64_t linear)
    : launch(owner), linear_index(linear), cluster(of), rank(its_rank) {
  const Dim3& grid = launch.config.grid;
  index = {static_cast<uint32_t>(linear % grid.x), static_cast<uint32_t>(linear / grid.x % grid.y),
           static_cast<uint32_t>(linear / grid.x / grid.y)};
  const auto count = static_cast<size_t>(launch.config.block.count());
  threads.resize(count);
  warps.resize((count + kLanes - 1) / kLanes);
  for (size_t i = 0; i < count; ++i) {
    Thread& thread = threads[i];
    thread.block = this;
    thread.index = static_cast<int>(i);
    thread.warp = thread.index / kLanes;
    thread.lane = thread.index % kLanes;
  }
  shared = std::make_unique<SharedMemory>(
      *this, launch.program.static_shared_bytes() + launch.config.dynamic_shared_bytes);
  async = std::make_unique<Async>(*this);
  for (size_t i = 0; i < warps.size(); ++i) {
    Warp& warp = warps[i];
    warp.block = this;
    warp.index = static_cast<int>(i);
    const size_t lanes = std::min<size_t>(kLanes, count - i * kLanes);
    warp.exists = lanes == kLanes ? kAllLanes : (LaneMask{1} << lanes) - 1;
    warp.paths.reserve(kLanes + 1);
    warp.paths.push_back({.lanes = warp.exists});
    launch.program.begin(warp);
  }
}

Block::~Block() = default;

int Block::num_slots() const {
  return num_threads() + kMaxMbarriers + static_cast<int>(warps.size());
}

int Block::warp_slot(int warp) const {
  return num_threads() + kMaxMbarriers + warp;
}

bool Block::is_done() const {
  return std::all_of(warps.begin(), warps.end(), [](const Warp& warp) { return warp.is_done(); });
}

}  // namespace wide::simt
