// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a block has under way beside its threads: cp.async groups, mbarriers, bulk copies by the
// tensor memory accelerator, and warpgroup matrix products. Operations land when the launch's
// delivery says; what they own until then is guarded by the shadow memory.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "verify/simt/machine.hpp"
#include "verify/simt/tensor_map.hpp"

namespace wide::simt {

/// Wgmma's element types; D is fp32 or fp16.
enum class MatrixType { f16, bf16, tf32, e4m3, e5m2 };

struct WgmmaShape {
  int n = 0;  ///< m is 64, k is 32 bytes of elements
  MatrixType type_a = MatrixType::bf16, type_b = MatrixType::bf16;
  bool d_is_half = false;
  bool a_in_registers = false;
  bool a_is_mn_major = false, b_is_mn_major = false;
  bool negate_a = false, negate_b = false;
};
/// One warp's share of a wgmma.mma_async. Registers point to arrays of 32 lanes.
struct WgmmaOperands {
  std::span<uint32_t* const> d;        ///< n / 2 fp32 (n / 4 packed halves) registers
  std::span<const uint32_t* const> a;  ///< 4 registers, or none
  uint64_t descriptor_a = 0, descriptor_b = 0;
  bool scale_d = true;
};

class BulkRegion;  // bulk_region.hpp

class Async {
 public:
  explicit Async(Block& block);
  ~Async();

  // ---- cp.async, per thread
  /// `bytes` (4, 8, 16) are written, the first `source_bytes` from global memory, zeros after them.
  void copy(Thread& thread, uint32_t shared, uint64_t global, int bytes, int source_bytes,
            Location at);
  void commit(Thread& thread);
  void wait_group(Thread& thread, int pending);
  void wait_all(Thread& thread);
  /// cp.async.mbarrier.arrive(.noinc): an arrival when all of the thread's earlier copies have
  /// landed. `is_counted`: the phase waits for one more arrival because of it (without .noinc).
  void copy_arrive(Thread& thread, uint32_t mbarrier, bool is_counted, Location at);

  // ---- mbarriers
  void init(Thread& thread, uint32_t mbarrier, uint32_t count, Location at);
  void invalidate(Thread& thread, uint32_t mbarrier, Location at);
  /// Adds to the bytes that the phase waits for, without an arrival.
  void expect_bytes(Thread& thread, uint32_t mbarrier, uint32_t bytes, Location at);
  /// `expected_bytes` 0: a plain arrival. Returns the phase's token; its lowest bit is the parity.
  uint64_t arrive(Thread& thread, uint32_t mbarrier, uint32_t count, uint32_t expected_bytes,
                  Location at);
  /// True: the phase of that parity is complete, and what it published is known to `lanes`. False:
  /// it is not; the caller blocks the path on the mbarrier (wait()) and asks again when woken,
  /// unless its time is over: is_out_of_time().
  bool test_wait(Warp& warp, LaneMask lanes, uint32_t mbarrier, uint32_t parity, Location at);
  void wait(Warp& warp, Path& path, uint32_t mbarrier, Location at);
  /// With a seed at any time, else where the scheduler found nothing else to do.
  bool is_out_of_time(Path& path);
  /// Wakes all that wait, their time over; false: nobody does, or nothing came of it for long.
  bool pass_time();
  void fence_mbarrier_init(Thread& thread);
  /// The thread arrives at the cluster's barrier in that phase: for all who wait for its end, the
  /// mbarriers of its fence_mbarrier_init() are initialised.
  void meet_cluster(const Thread& thread, uint32_t phase);
  void fence_proxy(Thread& thread);

  // ---- bulk copies and tiles (TMA), by the one thread that issues them. A tensor map is named by
  // its device address, or by where the host has it in Launch::parameters.
  // Loads come here, or to the targets, blocks of the cluster, each at the same addresses.
  void load_tile(Thread& thread, uint32_t shared, uint64_t tensor_map,
                 std::span<const int32_t> coordinates, uint32_t mbarrier, Location at,
                 std::span<Block* const> targets = {});
  void store_tile(Thread& thread, uint64_t tensor_map, std::span<const int32_t> coordinates,
                  uint32_t shared, Location at);
  void load_bulk(Thread& thread, uint32_t shared, uint64_t global, int64_t bytes, uint32_t mbarrier,
                 Location at, std::span<Block* const> targets = {});
  /// One that a thread of the cluster has issued comes here.
  void begin_load(Thread& thread, const BulkRegion& region, uint32_t mbarrier, Location at);
  void store_bulk(Thread& thread, uint64_t global, uint32_t shared, int64_t bytes, Location at);
  void commit_stores(Thread& thread);
  /// `only_read`: the sources may be overwritten; else the results are written too.
  void wait_stores(Thread& thread, int pending, bool only_read);
  /// Into L2: only checks and counts.
  void prefetch_tile(Thread& thread, uint64_t tensor_map, std::span<const int32_t> coordinates,
                     Location at);
  void prefetch_bulk(Thread& thread, uint64_t global, int64_t bytes, Location at);

  // ---- warpgroup matrix products; every call is for one whole warp
  void wgmma_fence(Warp& warp, Location at);
  void wgmma(Warp& warp, const WgmmaShape& shape, const WgmmaOperands& operands, Location at);
  void wgmma_commit(Warp& warp, Location at);
  /// Afterwards the D registers of all but the last `pending` groups hold their results.
  void wgmma_wait(Warp& warp, int pending, Location at);
  /// Whether a product that was not waited for still has that register's array, as D or as A.
  bool owns_register(const Warp& warp, const uint32_t* lanes) const;

  /// Lets one operation land; false: none is under way. Called when nothing else can run (lazy) or
  /// by chance (random).
  bool progress();
  /// Findings for what nobody waited for.
  void end_of_block();
  /// For deadlock reports: one line for every mbarrier.
  std::string describe() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// ---- matrix fragments of one warp, in matrix.cpp and mma.cpp. Registers point to arrays of 32
// lanes.

/// ldmatrix: `address` of every lane; 1, 2 or 4 matrices of 8 x 8 16-bit elements.
void load_matrix(Warp& warp, std::span<uint32_t* const> d,
                 const std::array<uint32_t, kLanes>& address, bool is_transposed, Location at);
void store_matrix(Warp& warp, std::span<const uint32_t* const> s,
                  const std::array<uint32_t, kLanes>& address, bool is_transposed, Location at);

struct MmaShape {
  int m = 16, n = 8, k = 16;
  MatrixType type_a = MatrixType::bf16, type_b = MatrixType::bf16;
  bool d_is_half = false, c_is_half = false;
};
/// Throws Unsupported for a shape that PTX has and this does not, naming it. Called when a kernel
/// is decoded.
void require_mma(const MmaShape& shape);
void require_wgmma(const WgmmaShape& shape);
/// mma.sync: d = a b + c, as tensor_core.hpp adds.
void mma(Warp& warp, const MmaShape& shape, std::span<uint32_t* const> d,
         std::span<const uint32_t* const> a, std::span<const uint32_t* const> b,
         std::span<const uint32_t* const> c);

}  // namespace wide::simt
