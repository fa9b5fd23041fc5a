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

// Kinds among a warp's collectives: __syncwarp, and below it the barriers where some lanes wait for
// the rest of their warp, by program counter.
constexpr int kSyncWarp = -1;
constexpr const char* kParted = "the rest of the warp at a barrier";

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

void report_misuse(Block& block, const NamedBarrier& barrier, const BarrierArrival& arrival) {
  const std::string name = "barrier " + std::to_string(arrival.barrier);
  const int needed = arrival.needed;
  if (barrier.arrived > 0 && barrier.needed != needed) {
    block.launch.report(FindingKind::barrier, block,
                        name + ": thread counts differ, " + std::to_string(needed) + " and " +
                            std::to_string(barrier.needed),
                        arrival.at, barrier.at);
  }
  if (needed != kWholeBlock && (needed <= 0 || needed % kLanes != 0)) {
    block.launch.report(
        FindingKind::barrier, block,
        name + ": " + std::to_string(needed) + " threads, expected a multiple of the warp's 32",
        arrival.at);
  }
}

void arrive(Warp& warp, LaneMask lanes, const BarrierArrival& arrival) {
  Block& block = *warp.block;
  NamedBarrier& barrier = block.barriers[static_cast<size_t>(arrival.barrier)];
  report_misuse(block, barrier, arrival);
  const int needed = arrival.needed;
  barrier.needed = needed;
  barrier.at = arrival.at;
  for_lanes(lanes, [&](int lane) {
    Thread& thread = warp.thread(lane);
    barrier.gathered.join(thread.known);
    barrier.gathered.join(thread.now(), block.num_slots());
    ++thread.time;
  });
  barrier.arrived += arrivals(warp, lanes);
  ++block.launch.counters.block_barriers;
  if (needed != kWholeBlock && needed > 0 && barrier.arrived > needed) {
    block.launch.report(FindingKind::barrier, block,
                        "barrier " + std::to_string(arrival.barrier) + ": " +
                            std::to_string(barrier.arrived) + " threads arrived, " +
                            std::to_string(needed) + " were expected",
                        arrival.at);
  }
  if (arrival.result.output != nullptr) {
    barrier.votes += std::popcount(arrival.predicates & lanes);
    barrier.voters += std::popcount(lanes);
    barrier.results.push_back(arrival.result);
  }
  if (arrival.waits) barrier.waiting.emplace_back(warp.index, lanes);
}

/// Arrives, and completes the barrier where these lanes were the last: whether they go on.
bool pass(Warp& warp, LaneMask lanes, const BarrierArrival& arrival) {
  arrive(warp, lanes, arrival);
  NamedBarrier& barrier = warp.block->barriers[static_cast<size_t>(arrival.barrier)];
  const bool is_over = is_complete(*warp.block, barrier);
  if (is_over) complete(*warp.block, barrier);
  return is_over || !arrival.waits;
}

void finish_collective(Warp& warp, size_t index) {
  Collective done = std::move(warp.collectives[index]);
  warp.collectives.erase(warp.collectives.begin() + static_cast<std::ptrdiff_t>(index));
  done.members = done.arrived;
  warp.wake(done.arrived);
  done.finish(done);
}

bool is_parted_barrier(const Collective& open) {
  return open.kind < kSyncWarp;
}

void report_parted(Warp& warp, const Collective& open) {
  warp.block->launch.report(FindingKind::barrier, *warp.block,
                            "divergent barrier: " + std::to_string(std::popcount(open.arrived)) +
                                " lanes of warp " + std::to_string(warp.index) +
                                " came without the rest of the warp",
                            open.at);
}

/// Lanes that met, of any paths.
void block_again(Warp& warp, LaneMask met, const char* waits_for, Location at) {
  for (size_t i = 0; i < warp.paths.size(); ++i) {
    const LaneMask lanes = warp.paths[i].lanes & met;
    if (lanes != 0) warp.block_lanes(warp.paths[i], lanes, waits_for, at);
  }
}

/// The lanes of a warp that met at a barrier; they are blocked again where it is not complete.
void pass_together(Warp& warp, const Collective& met, BarrierArrival arrival) {
  arrival.result.lanes = arrival.predicates = 0;
  for_lanes(met.arrived, [&](int lane) {
    const LaneMask bit = LaneMask{1} << lane;
    arrival.result.lanes |= bit;
    if (met.inputs[static_cast<size_t>(lane)][0] != 0) arrival.predicates |= bit;
  });
  if (!pass(warp, met.arrived, arrival)) block_again(warp, met.arrived, "barrier", arrival.at);
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

bool reach_barrier(Warp& warp, Path& path, LaneMask lanes, const BarrierArrival& arrival) {
  if (arrival.is_aligned && lanes != (warp.exists & ~warp.exited)) {
    std::array<std::array<uint64_t, 4>, kLanes> votes{};
    for_lanes(arrival.predicates, [&](int lane) { votes[static_cast<size_t>(lane)][0] = 1; });
    const int kind = kSyncWarp - 1 - path.pc;
    collective(warp, path, lanes, kind, kAllLanes, votes, nullptr, nullptr, kParted, arrival.at,
               [&warp, arrival](Collective& met) { pass_together(warp, met, arrival); });
    return path.is_ready;
  }
  if (pass(warp, lanes, arrival)) return true;
  warp.block_lanes(path, lanes, "barrier", arrival.at);
  return false;
}

bool reach_together(Warp& warp, Path& path, LaneMask lanes, bool is_aligned, const char* waits_for,
                    Location at, const std::function<bool(LaneMask)>& pass_lanes) {
  if (is_aligned && lanes != (warp.exists & ~warp.exited)) {
    collective(warp, path, lanes, kSyncWarp - 1 - path.pc, kAllLanes, {}, nullptr, nullptr, kParted,
               at, [=, &warp](Collective& met) {
                 if (!pass_lanes(met.arrived)) block_again(warp, met.arrived, waits_for, at);
               });
    return path.is_ready;
  }
  if (pass_lanes(lanes)) return true;
  warp.block_lanes(path, lanes, waits_for, at);
  return false;
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
    if (is_parted_barrier(open) && (open.members & warp.exited) != 0) report_parted(warp, open);
    open.members &= ~warp.exited;
    if (open.arrived == open.members) {
      finish_collective(warp, i);
    } else {
      ++i;
    }
  }
}

bool part_barriers(Block& block) {
  bool any = false;
  for (Warp& warp : block.warps) {
    for (size_t i = warp.collectives.size(); i-- > 0;) {
      if (!is_parted_barrier(warp.collectives[i])) continue;
      report_parted(warp, warp.collectives[i]);
      finish_collective(warp, i);
      any = true;
    }
  }
  return any;
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
