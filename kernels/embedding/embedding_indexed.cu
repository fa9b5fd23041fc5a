// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y[b, t, n, :] = table[n, ids[b, n, t], :], a copy of bytes: the dtype does not matter.
//
// Plan: rows of y are numbered (position, member), members fastest, so that consecutive rows are
// neighbours in the packed y. A group of 1 to 32 lanes copies a row in units of 16 bytes (8, 4, 2,
// 1 where addresses, strides or the row's length are not multiples); a group has as many lanes as a
// row has units, so that short rows leave no lane idle. Every group has kRowsInFlight rows under
// way: ids, then loads, then stores, which hides the two dependent latencies. y is written with a
// streaming hint, since the tables are what should stay in L2.
// Memory: no shared memory. Limits: none; offsets are 64-bit, the grid is one-dimensional.
// An id outside [0, vocab) reads nothing: its row becomes 0xFF bytes, NaN in every float dtype.
#include "kernels/embedding/embedding_indexed.hpp"

#include <algorithm>
#include <limits>

namespace wide::kernels {

namespace {

constexpr int kThreads = 256;
constexpr int kRowsInFlight = 4;
constexpr int64_t kMaxBlocks = 1 << 16;  // many waves on any device; beyond, groups take more rows

__device__ int64_t load_id(const EmbeddingParams& p, int64_t index) {
  return p.id_bytes == 8 ? __ldg(static_cast<const long long*>(p.ids) + index)
                         : __ldg(static_cast<const int*>(p.ids) + index);
}

/// Quotient of numbers that nearly always fit in 32 bits, where division is several times cheaper.
__device__ int64_t divide(int64_t dividend, int64_t divisor) {
  if ((dividend | divisor) >> 32 == 0) {
    return static_cast<uint32_t>(dividend) / static_cast<uint32_t>(divisor);
  }
  return dividend / divisor;
}

__device__ int64_t id_index(const EmbeddingParams& p, int64_t position, int64_t member) {
  const int64_t b = divide(position, p.seq);
  return b * p.ids_batch_stride + member * p.ids_member_stride + (position - b * p.seq);
}

template <class Unit>
__device__ Unit all_ones() {
  Unit unit;
  memset(&unit, 0xff, sizeof(unit));
  return unit;
}

/// Where row `row` comes from (null: id out of range) and goes to; both null behind the last row.
template <class Unit>
__device__ void locate(const EmbeddingParams& p, int64_t row, bool is_first_lane,
                       const Unit*& source, Unit*& destination) {
  const int64_t position = divide(row, p.num_members);
  const int64_t member = row - position * p.num_members;
  const int64_t id = load_id(p, id_index(p, position, member));
  const int64_t to = position * p.y_row_stride + member * p.y_member_stride;
  destination = reinterpret_cast<Unit*>(p.y + to * p.element_bytes);
  if (id >= 0 && id < p.vocab) {
    const int64_t from = member * p.table_member_stride + id * p.table_row_stride;
    source = reinterpret_cast<const Unit*>(p.table + from * p.element_bytes);
  } else if (p.report != nullptr && is_first_lane) {
    const int64_t place = position * p.total_members + p.first_member + member;
    atomicMin(reinterpret_cast<unsigned long long*>(&p.report->place),
              static_cast<unsigned long long>(place));
  }
}

template <class Unit>
__global__ void __launch_bounds__(kThreads)
    embedding_kernel(const __grid_constant__ EmbeddingParams p, int64_t num_rows,
                     int64_t units_per_row, int lanes_log2) {
  const int lanes = 1 << lanes_log2;
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const int64_t groups = int64_t{gridDim.x} * kThreads >> lanes_log2;
  const int64_t group = (int64_t{blockIdx.x} * kThreads + threadIdx.x) >> lanes_log2;
  for (int64_t first = group; first < num_rows; first += groups * kRowsInFlight) {
    const Unit* sources[kRowsInFlight] = {};
    Unit* destinations[kRowsInFlight] = {};
#pragma unroll
    for (int r = 0; r < kRowsInFlight; ++r) {
      const int64_t row = first + r * groups;
      if (row < num_rows) locate(p, row, lane == 0, sources[r], destinations[r]);
    }
    for (int64_t unit = lane; unit < units_per_row; unit += lanes) {
      Unit values[kRowsInFlight];
#pragma unroll
      for (int r = 0; r < kRowsInFlight; ++r) {
        values[r] = sources[r] != nullptr ? __ldg(sources[r] + unit) : all_ones<Unit>();
      }
#pragma unroll
      for (int r = 0; r < kRowsInFlight; ++r) {
        if (destinations[r] != nullptr) __stcs(destinations[r] + unit, values[r]);
      }
    }
  }
}

__global__ void embedding_report_kernel(const __grid_constant__ EmbeddingParams p) {
  const uint64_t place = p.report->place;
  if (place == ~uint64_t{0}) return;
  const auto total = static_cast<uint64_t>(p.total_members);
  p.report->id = load_id(
      p, id_index(p, static_cast<int64_t>(place / total), static_cast<int64_t>(place % total)));
}

template <class Unit>
cudaError_t launch(const EmbeddingParams& p, cudaStream_t stream) {
  const int64_t units = p.dim * p.element_bytes / static_cast<int64_t>(sizeof(Unit));
  int lanes_log2 = 0;
  while (lanes_log2 < 5 && (int64_t{1} << lanes_log2) < units) ++lanes_log2;
  const int64_t num_rows = p.num_members * p.batch * p.seq;
  const int64_t rows_per_block = (kThreads >> lanes_log2) * kRowsInFlight;
  const int64_t blocks = std::min((num_rows + rows_per_block - 1) / rows_per_block, kMaxBlocks);
  embedding_kernel<Unit>
      <<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(p, num_rows, units, lanes_log2);
  return cudaGetLastError();
}

/// Largest power of two up to 16 that divides every row's address and length.
int unit_bytes(const EmbeddingParams& p) {
  const int64_t strides =
      (p.table_member_stride | p.table_row_stride | p.y_row_stride | p.y_member_stride | p.dim) *
      p.element_bytes;
  const auto bits = static_cast<uint64_t>(strides) | reinterpret_cast<uintptr_t>(p.table) |
                    reinterpret_cast<uintptr_t>(p.y) | 16u;
  return static_cast<int>(bits & (~bits + 1));
}

}  // namespace

cudaError_t launch_embedding_indexed(const EmbeddingParams& p, cudaStream_t stream) {
  if (p.num_members * p.batch * p.seq * p.dim == 0) return cudaSuccess;
  switch (unit_bytes(p)) {
    case 1:
      return launch<uint8_t>(p, stream);
    case 2:
      return launch<uint16_t>(p, stream);
    case 4:
      return launch<uint32_t>(p, stream);
    case 8:
      return launch<unsigned long long>(p, stream);
    default:
      return launch<uint4>(p, stream);
  }
}

cudaError_t launch_embedding_report(const EmbeddingParams& p, cudaStream_t stream) {
  embedding_report_kernel<<<1, 1, 0, stream>>>(p);
  return cudaGetLastError();
}

}  // namespace wide::kernels
