// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Barriers of a block and collectives of a warp. Arrivals are gathered in program order of the
// scheduler; what a barrier orders is the join of all arrivals' clocks.
#include <algorithm>
#include <bit>
#include <string>

#include "verify/simt/barrier.hpp"

namespace wide::simt {

namespace {

constexpr int kSyncWarp = -1;  // kind of __syncwarp among a warp's collectives

template <class Function>
void for_lanes(LaneMask lanes, const Function& function) {
  for (; lanes != 0; lanes &= lanes - 1) function(std::countr_zero(lanes));
}

/// The hardware counts warps: where a whole warp came, its lanes that exited came with it.
int arrivals(const Warp& warp, LaneMask lanes) {
  const bool is_whole = lanes == (warp.exists & ~warp.exited);
  return std::popcount(is_whole ? warp.exists : lanes);
}

bool is_complete(const Block& block, const NamedBarrier& barrier) {
  if (barrier.arrived == 0) return false;
  if (barrier.needed != kWholeBlock) return barrier.arrived >= barrier.needed;
  int live = 0, waiting = 0;
  for (const Warp& warp : block.warps) live += std::popcount(warp.exists & ~warp.exited);
  for (const auto& [warp, lanes] : barrier.waiting) waiting += std::popcount(lanes);
  return waiting >= live;
}

void complete(Block& block, NamedBarrier& barrier) {
  for (const ReductionResult& result : barrier.results) {
    const int votes = barrier.votes;
    const int value = result.operation == BarrierReduction::popc  ? votes
                      : result.operation == BarrierReduction::any ? votes > 0
                                                                  : votes == barrier.voters;
    for_lanes(result.lanes, [&](int lane) { result.output[lane] = static_cast<uint32_t>(value); });
  }
  for (const auto& [index, lanes] : barrier.waiting) {
    Warp& warp = block.warps[static_cast<size_t>(index)];
    for_lanes(lanes,
              [&, &waiting = warp](int lane) { waiting.thread(lane).known = barrier.gathered; });
    warp.wake(lanes);
  }
  barrier = {};
}

void arrive(Warp& warp, LaneMask lanes, int id, int needed, Location at) {
  Block& block = *warp.block;
  NamedBarrier& barrier = block.barriers[static_cast<size_t>(id)];
  const auto report = [&](const std::string& text, Location against = {}) {
    block.launch.report(FindingKind::barrier, block, text, at, against);
  };
  if (barrier.arrived > 0 && barrier.needed != needed) {
    report("barrier " + std::to_string(id) + ": thread counts differ, " + std::to_string(needed) +
               " and " + std::to_string(barrier.needed),
           barrier.at);
  }
  if (needed != kWholeBlock && (needed <= 0 || needed % kLanes != 0)) {
    report("barrier " + std::to_string(id) + ": " + std::to_string(needed) +
           " threads, expected a multiple of the warp's 32");
  }
  barrier.needed = needed;
  barrier.at = at;
  for_lanes(lanes, [&](int lane) {
    Thread& thread = warp.thread(lane);
    barrier.gathered.join(thread.known);
    barrier.gathered.join(thread.now(), block.num_slots());
    ++thread.time;
  });
  barrier.arrived += arrivals(warp, lanes);
  ++block.launch.counters.block_barriers;
  if (needed != kWholeBlock && needed > 0 && barrier.arrived > needed) {
    report("barrier " + std::to_string(id) + ": " + std::to_string(barrier.arrived) +
           " threads arrived, " + std::to_string(needed) + " were expected");
  }
}

/// Waits for what has just arrived; whether the path goes on.
bool wait_at(Warp& warp, Path& path, LaneMask lanes, int id, Location at) {
  Block& block = *warp.block;
  NamedBarrier& barrier = block.barriers[static_cast<size_t>(id)];
  barrier.waiting.emplace_back(warp.index, lanes);
  if (is_complete(block, barrier)) {
    complete(block, barrier);
    return true;
  }
  warp.block_lanes(path, lanes, "barrier", at);
  return false;
}

void finish_collective(Warp& warp, size_t index) {
  Collective done = std::move(warp.collectives[index]);
  warp.collectives.erase(warp.collectives.begin() + static_cast<std::ptrdiff_t>(index));
  done.members = done.arrived;
  done.finish(done);
  warp.wake(done.arrived);
}

void synchronise_members(Warp& warp, LaneMask members) {
  Knowledge gathered;
  for_lanes(members, [&](int lane) {
    Thread& thread = warp.thread(lane);
    gathered.join(thread.known);
    gathered.join(thread.now(), warp.block->num_slots());
    ++thread.time;
  });
  for_lanes(members, [&](int lane) { warp.thread(lane).known = gathered; });
}

}  // namespace

bool barrier_sync(Warp& warp, Path& path, LaneMask lanes, int barrier, int needed, bool is_aligned,
                  Location at) {
  if (is_aligned && lanes != (warp.exists & ~warp.exited)) {
    warp.block->launch.report(FindingKind::barrier, *warp.block,
                              "divergent barrier: " + std::to_string(std::popcount(lanes)) +
                                  " lanes of warp " + std::to_string(warp.index) +
                                  " came without the rest of the warp",
                              at);
  }
  arrive(warp, lanes, barrier, needed, at);
  return wait_at(warp, path, lanes, barrier, at);
}

bool barrier_reduce(Warp& warp, Path& path, LaneMask predicates, int barrier, int needed,
                    const ReductionResult& result, Location at) {
  arrive(warp, result.lanes, barrier, needed, at);
  NamedBarrier& state = warp.block->barriers[static_cast<size_t>(barrier)];
  state.votes += std::popcount(predicates & result.lanes);
  state.voters += std::popcount(result.lanes);
  state.results.push_back(result);
  return wait_at(warp, path, result.lanes, barrier, at);
}

void barrier_arrive(Warp& warp, LaneMask lanes, int barrier, int needed, Location at) {
  arrive(warp, lanes, barrier, needed, at);
  NamedBarrier& state = warp.block->barriers[static_cast<size_t>(barrier)];
  if (is_complete(*warp.block, state)) complete(*warp.block, state);
}

bool collective(Warp& warp, Path& path, LaneMask lanes, int kind, LaneMask members,
                const std::array<std::array<uint64_t, 4>, kLanes>& inputs, uint32_t* output,
                uint32_t* predicate, const char* what, Location at,
                const std::function<void(Collective&)>& finish) {
  Block& block = *warp.block;
  if ((lanes & ~members) != 0) {
    block.launch.report(FindingKind::warp, block,
                        std::string(what) + ": a calling lane of warp " +
                            std::to_string(warp.index) + " is not in the mask",
                        at);
  }
  const LaneMask live = (members | lanes) & warp.exists & ~warp.exited;
  size_t index = 0;
  while (index < warp.collectives.size()) {
    const Collective& open = warp.collectives[index];
    if (open.kind == kind && open.members == live && (open.arrived & lanes) == 0) break;
    ++index;
  }
  if (index == warp.collectives.size()) {
    warp.collectives.push_back({.kind = kind, .members = live, .at = at, .finish = finish});
  }
  Collective& open = warp.collectives[index];
  if (open.at.line != at.line) {
    block.launch.report(FindingKind::warp, block,
                        std::string(what) + ": lanes of one warp meet at different lines", at,
                        open.at);
  }
  open.arrived |= lanes;
  for_lanes(lanes, [&](int lane) {
    const auto i = static_cast<size_t>(lane);
    open.inputs[i] = inputs[i];
    open.outputs[i] = output == nullptr ? nullptr : output + lane;
    open.predicates[i] = predicate == nullptr ? nullptr : predicate + lane;
  });
  if (open.arrived != live) {
    warp.block_lanes(path, lanes, what, at);
    return false;
  }
  finish_collective(warp, index);
  return true;
}

bool warp_sync(Warp& warp, Path& path, LaneMask lanes, LaneMask members, Location at) {
  return collective(warp, path, lanes, kSyncWarp, members, {}, nullptr, nullptr, "__syncwarp", at,
                    [&warp](Collective& c) { synchronise_members(warp, c.members); });
}

void lanes_exited(Warp& warp) {
  Block& block = *warp.block;
  for (NamedBarrier& barrier : block.barriers) {
    if (barrier.needed == kWholeBlock && is_complete(block, barrier)) complete(block, barrier);
  }
  for (size_t i = 0; i < warp.collectives.size();) {
    Collective& open = warp.collectives[i];
    open.members &= ~warp.exited;
    if (open.arrived == open.members) {
      finish_collective(warp, i);
    } else {
      ++i;
    }
  }
}

void report_unfinished_barriers(Block& block) {
  for (size_t i = 0; i < block.barriers.size(); ++i) {
    const NamedBarrier& barrier = block.barriers[i];
    if (barrier.arrived == 0) continue;
    block.launch.report(FindingKind::barrier, block,
                        "ended with " + std::to_string(barrier.arrived) + " of " +
                            std::to_string(barrier.needed) + " arrivals on barrier " +
                            std::to_string(i),
                        barrier.at);
  }
}

}  // namespace wide::simt
