// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The scheduler. Clusters, mostly of one block, run to their end one after another, as long as they
// can; one that goes on for long (it may wait for another one) makes room, so that hand-offs
// between blocks work. With a seed, several are under way at a time and every choice is random, and
// repeatable.
#include <algorithm>
#include <bit>
#include <string>

#include "verify/simt/async.hpp"
#include "verify/simt/barrier.hpp"
#include "verify/simt/cluster.hpp"
#include "verify/simt/global_memory.hpp"
#include "verify/simt/register_pool.hpp"
#include "verify/simt/shared_memory.hpp"

namespace wide::simt {

namespace {

constexpr int kStepsInOrder = 4096;  // of a path, before the next warp's turn
constexpr int64_t kPatience =
    20'000;  // instructions of a warp that does not block, before lanes may part
constexpr int kMaxRandomSteps = 256;       // the same with a seed
constexpr int64_t kTurnInOrder = 1 << 18;  // instructions of a cluster, before another one's turn
constexpr int64_t kRandomTurn = 1 << 12;
constexpr int kRandomClusters = 3;           // under way at a time, with a seed
constexpr int64_t kResidentBytes = 4 << 20;  // of shared memory, of all blocks under way
constexpr int64_t kMinBlockBytes = 16 << 10;

class Scheduler {
 public:
  explicit Scheduler(Launch& launch) : launch_(launch) {}

  void run() {
    const int64_t total = launch_.config.grid.count() / launch_.config.cluster.count();
    int64_t next = 0;
    size_t wanted = is_random() ? kRandomClusters : 1;
    while (next < total || !resident_.empty()) {
      while (next < total && resident_.size() < std::min(wanted, capacity())) {
        resident_.push_back(std::make_unique<Cluster>(launch_, next++));
      }
      const size_t chosen = is_random() ? random(resident_.size()) : turn_++ % resident_.size();
      if (run_turn(*resident_[chosen])) {
        resident_.erase(resident_.begin() + static_cast<std::ptrdiff_t>(chosen));
      } else if (!is_random()) {
        ++wanted;  // it may wait for one that has not begun
      }
    }
  }

 private:
  bool is_random() const { return launch_.options.seed != 0; }
  size_t random(size_t bound) { return launch_.random() % bound; }

  size_t capacity() const {
    const int64_t bytes =
        launch_.program.static_shared_bytes() + launch_.config.dynamic_shared_bytes;
    return static_cast<size_t>(
        std::max<int64_t>(2, kResidentBytes / std::max(bytes, kMinBlockBytes)));
  }

  /// Runs a cluster until it ends (true) or its turn is over.
  bool run_turn(Cluster& cluster) {
    const auto progress = [](Block& block) { return block.async->progress(); };
    const int64_t end = launch_.instructions + (is_random() ? kRandomTurn : kTurnInOrder);
    while (!end_blocks(cluster)) {
      if (launch_.instructions >= end) return false;
      if (launch_.options.delivery == Delivery::random && random(16) == 0) {
        one_of(cluster, progress);
      }
      if (is_random() ? one_of(cluster, [&](Block& block) { return run_some(block); })
                      : each_of(cluster, [&](Block& block) { return run_some(block); })) {
        continue;
      }
      if (one_of(cluster, progress) || each_of(cluster, part_barriers)) continue;
      if (each_of(cluster, [](Block& block) { return block.async->pass_time(); })) continue;
      deadlock(cluster);
    }
    return true;
  }

  /// Checks the blocks that have ended since. Whether all have.
  static bool end_blocks(Cluster& cluster) {
    bool all = true;
    for (const auto& block : cluster.blocks) {
      if (block->has_ended) continue;
      if (!block->is_done()) {
        all = false;
        continue;
      }
      block->has_ended = true;
      block->async->end_of_block();
      check_register_pool(*block);
      report_unfinished_barriers(*block);
    }
    return all;
  }

  /// Whether it did something in any of the blocks, tried in all of them.
  template <class Function>
  static bool each_of(Cluster& cluster, const Function& function) {
    bool any = false;
    for (const auto& block : cluster.blocks) any = function(*block) || any;
    return any;
  }
  /// The same, but only until it did.
  template <class Function>
  bool one_of(Cluster& cluster, const Function& function) {
    const size_t count = cluster.blocks.size();
    const size_t first = is_random() && count > 1 ? random(count) : 0;
    for (size_t i = 0; i < count; ++i) {
      if (function(*cluster.blocks[(first + i) % count])) return true;
    }
    return false;
  }

  /// Gives every warp that can run a slice, or one warp with a seed; false: none can.
  bool run_some(Block& block) {
    if (!is_random()) {
      bool any = false;
      for (Warp& warp : block.warps) any = run_slice(warp) || any;
      return any;
    }
    const size_t first = random(block.warps.size());
    for (size_t i = 0; i < block.warps.size(); ++i) {
      if (run_slice(block.warps[(first + i) % block.warps.size()])) return true;
    }
    return false;
  }

  bool run_slice(Warp& warp) {
    const size_t chosen = choose_path(warp);
    if (chosen == warp.paths.size()) return false;
    const LaneMask exited = warp.exited;
    const int64_t before = launch_.instructions;
    const int steps = is_random() ? 1 + static_cast<int>(random(kMaxRandomSteps)) : kStepsInOrder;
    const Location at = warp.paths[chosen].at;
    launch_.program.run(warp, chosen, steps);
    warp.run_length += launch_.instructions - before;
    if (warp.exited != exited) {
      warp.run_length = 0;
      lanes_exited(warp);
      cluster_lanes_exited(warp.block->cluster);
    }
    if (warp.run_length > Launch::kMaxRunLength) endless(warp, at);
    return true;
  }

  /// The path that is furthest behind, so that lanes meet again before they go on; any one where
  /// that seems to wait for another.
  size_t choose_path(const Warp& warp) {
    const bool any = warp.run_length > kPatience && ++slices_ % 2 == 0;
    size_t chosen = warp.paths.size(), num_ready = 0;
    for (size_t i = 0; i < warp.paths.size(); ++i) {
      if (!warp.paths[i].is_ready) continue;
      ++num_ready;
      const bool is_better =
          chosen == warp.paths.size() ||
          (any ? random(num_ready) == 0 : warp.paths[i].pc < warp.paths[chosen].pc);
      if (is_better) chosen = i;
    }
    return chosen;
  }

  /// What every thread of the block waits for, lanes that wait alike together.
  static std::string waiting(const Block& block) {
    std::string text, previous;
    for (const Warp& warp : block.warps) {
      for (const Path& path : warp.paths) {
        const std::string line = std::string(path.waits_for) + " " + to_string(path.at);
        text += (line == previous ? ", " : "\n    " + line + ": ") + "warp " +
                std::to_string(warp.index);
        if (path.lanes != warp.exists) {
          text += " (" + std::to_string(std::popcount(path.lanes)) + " lanes)";
        }
        previous = line;
      }
    }
    return text;
  }

  [[noreturn]] void deadlock(const Cluster& cluster) {
    std::string text = "no thread can run:";
    for (const auto& block : cluster.blocks) {
      if (cluster.blocks.size() > 1) text += "\n  rank " + std::to_string(block->rank) + ":";
      text += waiting(*block);
      const std::string barriers = block->async->describe();
      if (!barriers.empty()) text += "\n    " + barriers;
    }
    const Block& block = first_left(cluster);
    launch_.report(FindingKind::deadlock, block, text, block_location(block));
    throw Fault(Fault::Kind::launch_timeout, launch_.program.name() + ": " + text);
  }

  [[noreturn]] void endless(const Warp& warp, Location at) {
    const std::string text = "warp " + std::to_string(warp.index) + " ran " +
                             std::to_string(warp.run_length) +
                             " instructions without waiting: an endless loop?";
    launch_.report(FindingKind::deadlock, *warp.block, text, at);
    throw Fault(Fault::Kind::launch_timeout, launch_.program.name() + ": " + text);
  }

  static const Block& first_left(const Cluster& cluster) {
    for (const auto& block : cluster.blocks) {
      if (!block->has_ended) return *block;
    }
    return *cluster.blocks.front();
  }

  static Location block_location(const Block& block) {
    for (const Warp& warp : block.warps) {
      if (!warp.paths.empty()) return warp.paths.front().at;
    }
    return {};
  }

  Launch& launch_;
  std::vector<std::unique_ptr<Cluster>> resident_;
  size_t turn_ = 0, slices_ = 0;
};

}  // namespace

Launch::Launch(GlobalMemory& device_memory, const Program& what, const LaunchConfig& how,
               std::vector<std::byte> arguments, const Options& launch_options, Findings& found)
    : memory(device_memory),
      program(what),
      config(how),
      parameters(std::move(arguments)),
      options(launch_options),
      findings(found),
      random(launch_options.seed) {}

Launch::~Launch() = default;

void Launch::run() {
  memory.begin_launch(*this);
  try {
    Scheduler(*this).run();
  } catch (...) {
    memory.end_launch();
    throw;
  }
  memory.end_launch();
  // The kernel behind waits for this one's end, and takes that for the end of all before it.
  if (config.is_programmatic && !waited_for_grid) {
    findings.report(FindingKind::programmatic_launch,
                    program.name() + ": completes without having waited: no thread came to a " +
                        "griddepcontrol.wait, and the kernel before may still run");
  }
}

void Launch::report(FindingKind kind, const Block& block, const std::string& text, Location at,
                    Location against) {
  findings.report(kind,
                  program.name() + " block (" + std::to_string(block.index.x) + "," +
                      std::to_string(block.index.y) + "," + std::to_string(block.index.z) +
                      "): " + text,
                  at, against);
}

}  // namespace wide::simt
