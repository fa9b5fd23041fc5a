// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The state of one launch: blocks, warps, threads. There are no fibers: a thread of an interpreted
// kernel is data (a program counter, registers, a clock), so suspending one is not running it.
// Warps execute in vectors: lanes at the same program counter form a path and advance together,
// which makes requests of a warp exact; lanes that diverge become paths of their own until they
// meet again.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "verify/simt/clock.hpp"
#include "verify/simt/counters.hpp"
#include "verify/simt/findings.hpp"
#include "verify/simt/types.hpp"

namespace wide::simt {

class Async;  // async.hpp: copies, mbarriers and matrix products of a block under way
class Block;
struct Cluster;      // cluster.hpp
class GlobalMemory;  // global_memory.hpp
class Launch;
class SharedMemory;  // shared_memory.hpp
class Warp;

/// One CUDA thread.
struct Thread {
  Block* block = nullptr;
  int index = 0, warp = 0, lane = 0;  ///< index in the block, which is its slot
  uint32_t time = 1;
  Knowledge known;
  /// What was ordered before this thread's last fence.proxy.async, and when those all were.
  Knowledge proxy_known;
  std::vector<uint32_t> proxy_fences;  ///< ascending
  /// Release and acquire through fences: what a relaxed write after the last fence publishes, and
  /// what relaxed reads have seen that the next fence makes known.
  Knowledge fence_released, fence_pending;
  bool has_released = false;
  bool waited_for_grid = false;  ///< griddepcontrol.wait
  /// barrier.cluster: arrived in this phase, and has not waited for its end.
  bool is_at_cluster_barrier = false;
  uint32_t cluster_phase = 0;
  uint32_t cluster_phases_over = 0;  ///< whose end it has waited for

  Epoch now() const { return {index, time}; }
  bool knows(Epoch epoch) const { return epoch.slot == index || known.includes(epoch); }
  /// The same of a slot of another block, or of this thread's own.
  bool knows(const Block& of, Epoch epoch) const;
  /// Whether it knew of the epoch when it fenced by fence.proxy.async.
  bool knew_at_proxy_fence(const Block& of, Epoch epoch) const;
  /// Whether `writer` fenced after it wrote at time `written`, and this thread knows of that fence.
  bool knows_proxy_fence(const Thread& writer, uint32_t written) const;
  /// What another thread learns from this one here; later accesses are after that.
  Knowledge release();
};
/// "thread 37 (warp 1 lane 5)"
std::string to_string(const Thread& thread);
/// The same, with its block where that is not this one.
std::string name_in(const Block& block, const Thread& thread);

/// Lanes of a warp that run together.
struct Path {
  LaneMask lanes = 0;
  int32_t pc = 0;
  bool is_ready = true;
  bool is_out_of_time = false;   ///< woken by the time limit of mbarrier.try_wait
  const char* waits_for = "";    ///< while not ready
  Location at{};                 ///< of the last instruction
  std::vector<int32_t> calls{};  ///< return addresses
  int64_t run_length = 0;        ///< instructions since it last blocked
};

/// A warp operation whose lanes have not all arrived: they come by different paths.
struct Collective {
  int kind = 0;
  LaneMask members = 0, arrived = 0;
  Location at;
  std::array<std::array<uint64_t, 4>, kLanes> inputs{};
  std::array<uint32_t*, kLanes> outputs{};     ///< that lane's register, or null
  std::array<uint32_t*, kLanes> predicates{};  ///< shfl's second result, or null
  std::function<void(Collective&)> finish;
};

class Warp {
 public:
  Block* block = nullptr;
  int index = 0;
  LaneMask exists = 0, exited = 0;
  std::vector<Path> paths;           ///< disjoint; a path whose lanes all exited is gone
  std::vector<std::byte> registers;  ///< laid out by the program, 64-byte aligned use is its affair
  std::vector<std::byte> local;      ///< .local memory: lane-major, as the program lays out
  /// By register number of the program: whether a wgmma owns it, as D or as A, which other products
  /// may read meanwhile; how many wgmma.fence came before it was written, of what is D or A.
  std::vector<uint8_t> in_flight;
  std::vector<uint32_t> written;
  static constexpr uint8_t kOwned = 1, kReadOnly = 2;
  int num_in_flight = 0;
  uint32_t num_fences = 1;
  std::vector<Collective> collectives;
  int64_t run_length = 0;  ///< instructions since a path of it last blocked
  int max_registers = 0;   ///< of a thread, by its last setmaxnreg; 0: as at entry
  Location max_registers_at{};

  Thread& thread(int lane) const;
  bool is_done() const { return (exists & ~exited) == 0; }
  /// The path that holds a lane.
  Path& path_of(int lane);
  /// Marks the paths that hold these lanes ready again.
  void wake(LaneMask lanes);
  /// Makes the path's other lanes a path of their own at the same pc. Never moves `paths`.
  void split(Path& path, LaneMask keep);
  /// Blocks these lanes of the path.
  void block_lanes(Path& path, LaneMask lanes, const char* what, Location at);
};

enum class BarrierReduction { popc, all, any };

/// Where bar.red's result goes, once it is known: an array of 32 lanes.
struct ReductionResult {
  uint32_t* output = nullptr;  ///< null: the barrier reduces nothing
  LaneMask lanes = 0;
  BarrierReduction operation = BarrierReduction::popc;
};

constexpr int kWholeBlock = -1;

/// An executed bar or barrier instruction.
struct BarrierArrival {
  int barrier = 0;
  int needed = kWholeBlock;  ///< threads
  bool waits = true;         ///< not arrive
  bool is_aligned = true;    ///< the lanes of a warp come together
  ReductionResult result{};  ///< bar.red: known when the path goes on
  LaneMask predicates = 0;   ///< of bar.red
  Location at{};
};

struct NamedBarrier {
  int needed = 0, arrived = 0;                    ///< threads
  std::vector<std::pair<int, LaneMask>> waiting;  ///< warp, lanes
  Knowledge gathered;
  Location at;
  int votes = 0, voters = 0;  ///< bar.red: threads whose predicate holds, threads that came
  std::vector<ReductionResult> results;
};

class Block {
 public:
  Block(Launch& launch, Cluster& cluster, int rank, int64_t linear_index);
  ~Block();

  Launch& launch;
  int64_t linear_index;
  Cluster& cluster;
  int rank;  ///< in it
  bool has_ended = false;
  Dim3 index{0, 0, 0};
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::array<NamedBarrier, 16> barriers;
  std::unique_ptr<SharedMemory> shared;
  std::unique_ptr<Async> async;

  int num_threads() const { return static_cast<int>(threads.size()); }
  int num_slots() const;  ///< threads + mbarriers + warps
  int mbarrier_slot(int mbarrier) const { return num_threads() + mbarrier; }
  int warp_slot(int warp) const;
  bool is_done() const;
};

/// Inline: asked of almost every access.
inline bool Thread::knows(const Block& of, Epoch epoch) const {
  return &of == block ? knows(epoch) : known.includes(of.linear_index, epoch);
}
constexpr int kMaxMbarriers = 128;  // of one block

inline Thread& Warp::thread(int lane) const {
  return block->threads[static_cast<size_t>(index * kLanes + lane)];
}

/// What the engine needs of a front end that knows instructions.
class Program {
 public:
  virtual ~Program() = default;
  virtual const std::string& name() const = 0;
  virtual int64_t static_shared_bytes() const = 0;
  virtual int max_threads_per_block() const = 0;  ///< of .maxntid; 0: not said
  virtual int registers_at_entry() const = 0;     ///< of a thread, where directives say; else 0
  /// Lays out registers and writes the special ones.
  virtual void begin(Warp& warp) const = 0;
  /// Runs warp.paths[path] until it blocks, ends, splits, meets another path's pc, or `max_steps`
  /// instructions are over. Throws Unsupported, Fault.
  virtual void run(Warp& warp, size_t path, int max_steps) const = 0;
};

/// What ends a launch with an error, as on a device. The finding is reported before.
struct Fault : std::runtime_error {
  enum class Kind { illegal_address, misaligned, trap, illegal_instruction, launch_timeout };
  Kind kind;
  Fault(Kind k, const std::string& what) : std::runtime_error(what), kind(k) {}
};

struct LaunchConfig {
  Dim3 grid, block, cluster;
  int64_t dynamic_shared_bytes = 0;
  uint32_t id = 0;  ///< of this operation; ids of buffers' last users are compared with it
  /// Whether that earlier operation is ordered before this one; empty: all are.
  std::function<bool(uint32_t)> is_ordered_after;
  bool is_programmatic = false;  ///< may overlap with the kernel before, up to griddepcontrol.wait
};

class Launch {
 public:
  Launch(GlobalMemory& memory, const Program& program, const LaunchConfig& config,
         std::vector<std::byte> parameters, const Options& options, Findings& findings);
  ~Launch();
  /// Throws Fault or Unsupported; findings are reported as they are made.
  void run();

  static constexpr int64_t kNoBlock = -1;
  static constexpr int64_t kMaxRunLength = 100'000'000;  ///< of a warp that never blocks

  GlobalMemory& memory;
  const Program& program;
  const LaunchConfig config;
  const std::vector<std::byte> parameters;
  const Options options;
  Findings& findings;
  Counters counters;
  std::mt19937 random;
  int64_t instructions = 0;      ///< of warps; also the simulated clock
  Knowledge sequential_fences;   ///< what fence.sc of the device have made known, exported
  bool waited_for_grid = false;  ///< some thread: griddepcontrol.wait

  /// Reports with the block's index in front.
  void report(FindingKind kind, const Block& block, const std::string& text, Location at = {},
              Location against = {});
  bool is_ordered(uint32_t earlier) const {
    return earlier == 0 || earlier == config.id || !config.is_ordered_after ||
           config.is_ordered_after(earlier);
  }
};

// Barriers and warp synchronisation (barrier.cpp). Each returns whether the path goes on; where
// not, it was blocked with its pc already behind the instruction.

/// bar and barrier. Lanes that come to an aligned one without the rest of their warp wait for it,
/// as they do where the compiler makes lanes meet; that the rest ends or never comes is a finding.
bool reach_barrier(Warp& warp, Path& path, LaneMask lanes, const BarrierArrival& arrival);
/// __syncwarp.
bool warp_sync(Warp& warp, Path& path, LaneMask lanes, LaneMask members, Location at);
/// Lanes of a collective that needs `members`: where all have arrived, `finish` is called once with
/// all inputs and the outputs' registers; else the path is blocked until they have.
bool collective(Warp& warp, Path& path, LaneMask lanes, int kind, LaneMask members,
                const std::array<std::array<uint64_t, 4>, kLanes>& inputs, uint32_t* output,
                uint32_t* predicate, const char* what, Location at,
                const std::function<void(Collective&)>& finish);

}  // namespace wide::simt
