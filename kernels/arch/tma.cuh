// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Bulk copies between global and shared memory, and of tiles of tensors, by the tensor memory
// accelerator: one thread issues them, the async proxy executes them. A load's bytes complete on an
// mbarrier; stores are waited for in groups, by the thread that issued them.
//
// A tile's box, its swizzle and the tensor's extents are in a CUtensorMap that the host encodes
// (cuTensorMapEncodeTiled) and passes as a const __grid_constant__ parameter. Coordinates are in
// elements, innermost first, and may be negative or past the end: elements outside are read as the
// map's fill and not written; they still count among the mbarrier's bytes. Stores cut the innermost
// dimension off at 16 bytes only: where its extent is no multiple, they write up to the next one
// (measured on an H100: github.com/triton-lang/triton, issue 11583). A box begins at a multiple of
// 16 bytes, also within the innermost dimension: the instruction is illegal otherwise.
// Sources: PTX ISA, "Data Movement and Conversion Instructions: cp.async.bulk,
// cp.async.bulk.tensor, cp.async.bulk.commit_group, cp.async.bulk.wait_group". Compute capability
// 9.0.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "kernels/arch/mbarrier.cuh"
#include "kernels/arch/shared.cuh"

namespace wide::kernels::arch {

/// Prefetches the map itself before its first use.
__device__ inline void prefetch_tensor_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// ---- loads: `shared` aligned to 128 bytes, and to 8 rows of the swizzle's span where there is one
// (1024 bytes for 128). No other access to it may be outstanding: earlier generic reads are ordered
// by a barrier or mbarrier that this thread waited for.

/// A box of a tensor of one to five dimensions; its bytes complete on `barrier`.
__device__ inline void load_tile(void* shared, const CUtensorMap& map, Mbarrier* barrier,
                                 int32_t c0) {
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3}], [%2];" ::"r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(barrier)), "r"(c0)
      : "memory");
}
__device__ inline void load_tile(void* shared, const CUtensorMap& map, Mbarrier* barrier,
                                 int32_t c0, int32_t c1) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4}], [%2];" ::"r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(barrier)), "r"(c0), "r"(c1)
      : "memory");
}
__device__ inline void load_tile(void* shared, const CUtensorMap& map, Mbarrier* barrier,
                                 int32_t c0, int32_t c1, int32_t c2) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "r"(c2)
      : "memory");
}
__device__ inline void load_tile(void* shared, const CUtensorMap& map, Mbarrier* barrier,
                                 int32_t c0, int32_t c1, int32_t c2, int32_t c3) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
      : "memory");
}
__device__ inline void load_tile(void* shared, const CUtensorMap& map, Mbarrier* barrier,
                                 int32_t c0, int32_t c1, int32_t c2, int32_t c3, int32_t c4) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
      : "memory");
}

/// A box for each block of the cluster whose bit is in `blocks`: to the same place in its shared
/// memory, and its bytes complete on the mbarrier at the same place as `barrier`. Read from L2
/// once.
__device__ inline void load_tile_for(uint16_t blocks, void* shared, const CUtensorMap& map,
                                     Mbarrier* barrier, int32_t c0, int32_t c1, int32_t c2) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "r"(c2), "h"(blocks)
      : "memory");
}

/// Prefetches a box into the L2 cache for a later load_tile(). As all copies of a device go through
/// L2, it cannot miss any write to the box.
__device__ inline void prefetch_tile(const CUtensorMap& map, int32_t c0, int32_t c1, int32_t c2) {
  asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global.tile [%0, {%1, %2, %3}];" ::"l"(&map),
               "r"(c0), "r"(c1), "r"(c2)
               : "memory");
}
__device__ inline void prefetch_tile(const CUtensorMap& map, int32_t c0, int32_t c1, int32_t c2,
                                     int32_t c3, int32_t c4) {
  asm volatile(
      "cp.async.bulk.prefetch.tensor.5d.L2.global.tile [%0, {%1, %2, %3, %4, %5}];" ::"l"(&map),
      "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
      : "memory");
}

// ---- stores: the writers of the source call fence_proxy_async(), then a barrier, then one thread
// issues. Alignment as for loads.

/// Stores to a box of a tensor; belongs to the group that commit_stores() commits.
__device__ inline void store_tile(const CUtensorMap& map, const void* shared, int32_t c0) {
  asm volatile(
      "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%0, {%2}], [%1];" ::"l"(&map),
      "r"(shared_address(shared)), "r"(c0)
      : "memory");
}
__device__ inline void store_tile(const CUtensorMap& map, const void* shared, int32_t c0,
                                  int32_t c1) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(
          &map),
      "r"(shared_address(shared)), "r"(c0), "r"(c1)
      : "memory");
}
__device__ inline void store_tile(const CUtensorMap& map, const void* shared, int32_t c0,
                                  int32_t c1, int32_t c2) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(
          &map),
      "r"(shared_address(shared)), "r"(c0), "r"(c1), "r"(c2)
      : "memory");
}
__device__ inline void store_tile(const CUtensorMap& map, const void* shared, int32_t c0,
                                  int32_t c1, int32_t c2, int32_t c3) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::
          "l"(&map),
      "r"(shared_address(shared)), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
      : "memory");
}
__device__ inline void store_tile(const CUtensorMap& map, const void* shared, int32_t c0,
                                  int32_t c1, int32_t c2, int32_t c3, int32_t c4) {
  asm volatile(
      "cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5, %6}], "
      "[%1];" ::"l"(&map),
      "r"(shared_address(shared)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
      : "memory");
}

/// Commits the stores that this thread has issued as a group.
__device__ inline void commit_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/// Waits until at most `kPending` of this thread's groups still read shared memory, which may be
/// overwritten then and must outlive the reads: every block waits with 0 before it ends.
template <int kPending>
__device__ inline void wait_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

}  // namespace wide::kernels::arch
