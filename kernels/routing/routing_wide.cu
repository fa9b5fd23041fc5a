// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// routing: a stable counting sort of rows r by their column, ids[r] - first_id, or num_members for
// nobody's. order = rows [num_rows], first_rows = where columns begin [num_members + 1].
//
// Plan: rows are cut into up to 128 chunks, a block each, and a chunk into pieces, a warp each.
// routing_count writes how many rows of each column a chunk has; with one chunk it is not needed.
// In routing_place every block adds the counts of all chunks up, a warp for each column, so that
// it knows without another launch where columns begin and how many of their rows earlier chunks
// have; it counts its own rows warp by warp, so that each warp knows where its rows go and places
// them without waiting for the ones before. Lanes of one column find each other by a match: their
// rank is the number of lower ones, and one of them moves the column's counter on. Nothing depends
// on the order in which blocks or warps run.
// Memory: shared counters [warps, columns], and sums [2, columns]; see routing_chunks.hpp.
// Limits: columns whose counters fit. Ids need their own alignment only: they are read one by one,
// a warp's side by side.
#include "kernels/arch/grid.cuh"
#include "kernels/arch/load.cuh"
#include "kernels/common/launch.hpp"
#include "kernels/routing/routing_chunks.hpp"
#include "kernels/routing/routing_wide.hpp"

namespace wide::kernels {

namespace {

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kInFlight = 4;                   ///< ids of a lane that are read at once
constexpr int kRowsInFlight = 32 * kInFlight;  ///< of a warp

/// Rows [first, last) of a chunk or of a warp's piece.
struct RowRange {
  int64_t first, last;
};

__device__ int lane_id() {
  return static_cast<int>(threadIdx.x) % 32;
}
__device__ int warp_id() {
  return static_cast<int>(threadIdx.x) / 32;
}

__device__ int column_of(const RoutingParams& p, int64_t row) {
  const int64_t id = p.id_bytes == 8 ? arch::load(static_cast<const int64_t*>(p.ids) + row)
                                     : arch::load(static_cast<const int32_t*>(p.ids) + row);
  // One comparison for both ends: no id is so far below that it comes round to a member's.
  const uint64_t above = static_cast<uint64_t>(id) - static_cast<uint64_t>(p.first_id);
  const bool is_routed = above < static_cast<uint64_t>(p.num_ids);
  if (p.is_rest) return is_routed ? 1 : 0;
  return static_cast<int>(is_routed ? above : p.num_members);
}

/// Columns of a lane's rows; -1: no row.
using Columns = int[kInFlight];

/// f(row, column) for the rows of a warp, 32 side by side at a time. Ids are not read where the
/// columns are those that an earlier call for the same rows has left.
template <class F>
__device__ void for_rows(const RoutingParams& p, const RowRange& range, Columns& columns,
                         bool are_left, const F& f) {
  for (int64_t at = range.first; at < range.last; at += kRowsInFlight) {
    if (!are_left) {
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) {
        const int64_t row = at + 32 * i + lane_id();
        columns[i] = column_of(p, min(row, range.last - 1));
        if (row >= range.last) columns[i] = -1;
      }
    }
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      if (at + 32 * i < range.last) f(at + 32 * i + lane_id(), columns[i]);
    }
  }
}

/// The lanes of one column: how many there are, and how many of them are lower.
struct Peers {
  int count, rank;
  __device__ explicit Peers(int column) {
    const unsigned lanes = __match_any_sync(kAllLanes, column);
    count = __popc(lanes);
    rank = __popc(lanes & ((1u << lane_id()) - 1));
  }
};

/// Adds the number of rows of each column to its counter.
__device__ void count_rows(const RoutingParams& p, const RowRange& range, Columns& columns,
                           int* counters) {
  for_rows(p, range, columns, false, [&](int64_t, int column) {
    const Peers peers(column);
    if (column >= 0 && peers.rank == 0) atomicAdd(counters + column, peers.count);
  });
}

__device__ RowRange piece_of(const RoutingParams& p, int64_t rows_per_chunk, int warps) {
  const int64_t rows = rows_per_chunk / warps;
  const int64_t first = blockIdx.x * rows_per_chunk + warp_id() * rows;
  return {first, warp_id() < warps ? min(p.num_rows, first + rows) : first};
}

__device__ void clear(int* counters, int count) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kRoutingThreads) counters[i] = 0;
}

__global__ void __launch_bounds__(kRoutingThreads)
    routing_count(const __grid_constant__ RoutingParams p, int64_t rows_per_chunk) {
  extern __shared__ int counters[];
  const int columns = static_cast<int>(p.num_members) + 1;
  clear(counters, columns);
  __syncthreads();
  arch::follow_grid();
  Columns of_rows;
  count_rows(p, piece_of(p, rows_per_chunk, kRoutingWarps), of_rows, counters);
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x); c < columns; c += kRoutingThreads) {
    p.counts[int64_t{c} * gridDim.x + blockIdx.x] = counters[c];
  }
}

/// Of each column, over all chunks and over those before this block's. A warp has the counts of
/// several columns in flight.
__device__ void add_chunks(const RoutingParams& p, int columns, int* totals, int* before) {
  constexpr int kAtOnce = 4;
  const int chunks = static_cast<int>(gridDim.x), own = static_cast<int>(blockIdx.x);
  for (int first = warp_id(); first < columns; first += kAtOnce * kRoutingWarps) {
    int total[kAtOnce] = {}, earlier[kAtOnce] = {};
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int c = first + i * kRoutingWarps;
#pragma unroll
      for (int chunk = lane_id(); chunk < kMaxRoutingChunks; chunk += 32) {
        const bool exists = c < columns && chunk < chunks;
        const int count = exists ? p.counts[int64_t{c} * chunks + chunk] : 0;
        total[i] += count;
        earlier[i] += chunk < own ? count : 0;
      }
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int c = first + i * kRoutingWarps;
      total[i] = __reduce_add_sync(kAllLanes, total[i]);
      earlier[i] = __reduce_add_sync(kAllLanes, earlier[i]);
      if (lane_id() != 0 || c >= columns) continue;
      totals[c] = total[i];
      before[c] = earlier[i];
    }
  }
}

/// The sum of the values of all lower threads; adds that of all to `sum`.
__device__ int sum_before(int value, int* warp_sums, int& sum) {
  int inclusive = value;
  for (int step = 1; step < 32; step *= 2) {
    const int lower = __shfl_up_sync(kAllLanes, inclusive, step);
    if (lane_id() >= step) inclusive += lower;
  }
  if (lane_id() == 31) warp_sums[warp_id()] = inclusive;
  __syncthreads();
  const int of_warp = warp_sums[lane_id()];
  __syncthreads();  // they have been read when the next call writes
  const int lower = __reduce_add_sync(kAllLanes, lane_id() < warp_id() ? of_warp : 0);
  const int before = sum + lower + inclusive - value;
  sum += __reduce_add_sync(kAllLanes, of_warp);
  return before;
}

__global__ void __launch_bounds__(kRoutingThreads, 1)
    routing_place(const __grid_constant__ RoutingParams p, int64_t rows_per_chunk, int warps) {
  extern __shared__ int counters[];
  __shared__ int warp_sums[kRoutingWarps];
  static_assert(kRoutingWarps == 32 && sizeof(warp_sums) == kRoutingStaticBytes);
  const int columns = static_cast<int>(p.num_members) + 1;
  int* const totals = counters + warps * columns;
  int* const before = totals + columns;
  int* const own = counters + warp_id() * columns;
  const RowRange piece = piece_of(p, rows_per_chunk, warps);

  clear(counters, warps * columns);
  __syncthreads();
  arch::follow_grid();

  // Count: this block's rows, and those of all blocks.
  Columns of_rows;
  count_rows(p, piece, of_rows, own);
  if (gridDim.x > 1) add_chunks(p, columns, totals, before);
  __syncthreads();

  // Turn the counters into where the next row of a column goes, warp by warp.
  int sum = p.begin == nullptr ? 0 : *p.begin;
  for (int first = 0; first < columns; first += kRoutingThreads) {
    const int c = first + static_cast<int>(threadIdx.x);
    const bool exists = c < columns;
    int total = 0, earlier = 0;
    if (exists && gridDim.x > 1) {
      total = totals[c];
      earlier = before[c];
    } else if (exists) {
      for (int w = 0; w < warps; ++w) total += counters[w * columns + c];
    }
    int at = sum_before(total, warp_sums, sum);
    if (!exists) continue;
    // Where the first column begins is known to whoever says so.
    const bool writes = blockIdx.x == 0 && p.first_rows != nullptr && (c > 0 || p.begin == nullptr);
    if (writes) p.first_rows[c] = at;
    at += earlier;
    for (int w = 0; w < warps; ++w) {
      const int count = counters[w * columns + c];
      counters[w * columns + c] = at;
      at += count;
    }
  }
  __syncthreads();

  // Place. The columns of few rows are still in registers.
  const bool are_left = piece.last - piece.first <= kRowsInFlight;
  const int placed = columns - (p.places_rest ? 0 : 1);
  for_rows(p, piece, of_rows, are_left, [&](int64_t row, int column) {
    const Peers peers(column);
    const int at = column >= 0 ? own[column] + peers.rank : 0;
    __syncwarp();  // all have read the counter that one moves on
    if (column >= 0 && peers.rank == 0) own[column] += peers.count;
    __syncwarp();
    if (column >= 0 && column < placed) p.order[at] = static_cast<int32_t>(row);
  });
}

}  // namespace

cudaError_t launch_routing(const RoutingParams& p, cudaStream_t stream) {
  const RoutingChunks chunks = routing_chunks(p.num_members, p.num_rows);
  const auto grid = static_cast<unsigned>(chunks.count);
  cudaError_t status = cudaSuccess;
  if (chunks.count > 1) {
    const int64_t bytes = chunks.columns * 4;
    status = allow_shared_bytes(routing_count, bytes);
    if (status != cudaSuccess) return status;
    status = launch_kernel(routing_count, grid, kRoutingThreads, static_cast<size_t>(bytes), stream,
                           p, chunks.rows);
    if (status != cudaSuccess) return status;
  }
  const int64_t bytes = chunks.shared_bytes();
  status = allow_shared_bytes(routing_place, bytes, kRoutingStaticBytes);
  if (status != cudaSuccess) return status;
  return launch_kernel(routing_place, grid, kRoutingThreads, static_cast<size_t>(bytes), stream, p,
                       chunks.rows, chunks.warps);
}

}  // namespace wide::kernels
