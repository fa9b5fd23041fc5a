// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y[b, t, n, :] = table[n, ids[b, n, t], :]: packed tables are copied byte by byte, whatever the
// dtype, quantised rows are decoded.
//
// Plan: rows of y are numbered (position, member), members fastest, so that consecutive rows are
// neighbours in the packed y. A group of 1 to 32 lanes copies a row in units of 16 bytes (8, 4, 2,
// 1 where addresses, strides or the row's length are not multiples); a group has as many lanes as a
// row has units, so that short rows leave no lane idle. Every group has kRowsInFlight rows in
// flight: ids, then loads, then stores, which hides the two dependent latencies. `indexed` gives a
// group distant rows, each with its own id; `gather`, where all members read one id, the rows of
// that many members at one position: position and id are computed once for all of them. Memory: no
// shared memory. Limits: none; offsets are 64-bit, the grid is one-dimensional. An id outside [0,
// vocab) reads nothing: its row becomes 0xFF bytes, NaN in every float dtype. The padding id reads
// nothing either: zeros.
#include <algorithm>

#include "kernels/arch/grid.cuh"
#include "kernels/arch/load.cuh"
#include "kernels/common/dispatch.hpp"
#include "kernels/common/divisor.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/embedding/embedding_indexed.hpp"
#include "kernels/embedding/embedding_rows.cuh"

namespace wide::kernels {

namespace {

constexpr int kThreads = 256;
constexpr int kRowsInFlight = 4;
constexpr int64_t kMaxBlocks = 1 << 16;  // many waves on any device; beyond, groups take more rows

/// How rows are assigned to groups of lanes. An item is a row, or a few members' at a position.
struct Share {
  int64_t num_items = 0;
  int64_t units_per_row = 0;
  Divisor items_per_position, seq;
  int lanes_log2 = 0;
  bool is_gather = false;
  bool is_y_aligned = false;  ///< of decoded rows
};

/// No destination: no row. No source: zeros, or all ones.
struct RowMove {
  const char* source = nullptr;
  char* destination = nullptr;
  bool is_padding = false;
  __nv_bfloat16 scale;  ///< of a quantised source
};

__device__ int64_t id_at(const EmbeddingParams& p, int64_t b, int64_t t, int64_t member) {
  return load_id(p, p.ids, b * p.ids_batch_stride + member * p.ids_member_stride + t);
}

__device__ RowMove locate(const EmbeddingParams& p, int64_t position, int64_t member, int64_t id,
                          bool is_first_lane) {
  RowMove move;
  const int64_t to = position * p.y_row_stride + member * p.y_member_stride;
  move.destination = p.y + to * p.element_bytes;
  move.is_padding = id == p.padding_id && id >= 0;
  if (move.is_padding) return move;
  move.source = table_row(p, member, id);
  if (move.source == nullptr && p.report != nullptr && is_first_lane) {
    const int64_t place = position * p.total_members + p.first_member + member;
    atomicMin(reinterpret_cast<unsigned long long*>(&p.report->place),
              static_cast<unsigned long long>(place));
  }
  return move;
}

/// The rows of item `item` and of the following items of the same group.
__device__ void locate_rows(RowMove (&moves)[kRowsInFlight], const EmbeddingParams& p,
                            const Share& share, int64_t item, int64_t groups, bool is_first_lane) {
  int64_t chunk = 0, t = 0, member = 0;
  if (share.is_gather) {
    const int64_t position = share.items_per_position.divide(item, chunk);
    const int64_t b = share.seq.divide(position, t);
    const int64_t id = id_at(p, b, t, 0), first = chunk * kRowsInFlight;
#pragma unroll
    for (int r = 0; r < kRowsInFlight; ++r) {
      if (first + r < p.num_members) moves[r] = locate(p, position, first + r, id, is_first_lane);
    }
    return;
  }
  // All ids are in flight before one is used.
  int64_t ids[kRowsInFlight];
#pragma unroll
  for (int r = 0; r < kRowsInFlight; ++r) {
    const int64_t row = item + r * groups;
    if (row >= share.num_items) continue;
    const int64_t b = share.seq.divide(share.items_per_position.divide(row, member), t);
    ids[r] = id_at(p, b, t, member);
  }
#pragma unroll
  for (int r = 0; r < kRowsInFlight; ++r) {
    const int64_t row = item + r * groups;
    if (row >= share.num_items) continue;
    const int64_t position = share.items_per_position.divide(row, member);
    moves[r] = locate(p, position, member, ids[r], is_first_lane);
  }
}

/// One unit of all rows: loads, then stores. T is the type in which a packed table is copied.
template <WeightFormat kFormat, class T>
__device__ void move_unit(const RowMove (&moves)[kRowsInFlight], const EmbeddingParams& p,
                          bool is_y_aligned, int64_t unit) {
  if constexpr (kFormat == WeightFormat::packed) {
    T values[kRowsInFlight];
#pragma unroll
    for (int r = 0; r < kRowsInFlight; ++r) {
      values[r] = moves[r].source != nullptr
                      ? arch::load(reinterpret_cast<const T*>(moves[r].source) + unit)
                      : (moves[r].is_padding ? T{} : all_ones<T>());
    }
#pragma unroll
    for (int r = 0; r < kRowsInFlight; ++r) {
      if (moves[r].destination != nullptr) {
        __stcs(reinterpret_cast<T*>(moves[r].destination) + unit, values[r]);
      }
    }
  } else {
    CodeUnit<T> codes[kRowsInFlight] = {};
#pragma unroll
    for (int r = 0; r < kRowsInFlight; ++r) {
      if (moves[r].source == nullptr) continue;
      codes[r] = arch::load(reinterpret_cast<const CodeUnit<T>*>(moves[r].source) + unit);
    }
#pragma unroll
    for (int r = 0; r < kRowsInFlight; ++r) {
      if (moves[r].destination == nullptr) continue;
      Vec16<T> out = all_ones<Vec16<T>>();
      if (moves[r].is_padding) out = Vec16<T>{};
      if (moves[r].source != nullptr) {
        out = rounded<T>(decoded<kFormat, T>(codes[r], to_float(moves[r].scale)));
      }
      store_unit(moves[r].destination, unit, p.dim, is_y_aligned, out);
    }
  }
}

template <WeightFormat kFormat, class T>
__global__ void __launch_bounds__(kThreads, 4)
    embedding_kernel(const __grid_constant__ EmbeddingParams p,
                     const __grid_constant__ Share share) {
  const int lanes = 1 << share.lanes_log2;
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const int64_t groups = int64_t{gridDim.x} * kThreads >> share.lanes_log2;
  const int64_t group = (int64_t{blockIdx.x} * kThreads + threadIdx.x) >> share.lanes_log2;
  const int64_t step = groups * (share.is_gather ? 1 : kRowsInFlight);
  arch::follow_grid();
  for (int64_t item = group; item < share.num_items; item += step) {
    RowMove moves[kRowsInFlight];
    locate_rows(moves, p, share, item, groups, lane == 0);
    if constexpr (kFormat != WeightFormat::packed) {
#pragma unroll
      for (RowMove& move : moves) {
        if (move.source != nullptr) move.scale = arch::load(scale_of(p, move.source));
      }
    }
    for (int64_t unit = lane; unit < share.units_per_row; unit += lanes) {
      move_unit<kFormat, T>(moves, p, share.is_y_aligned, unit);
    }
  }
}

__global__ void embedding_report_kernel(const __grid_constant__ EmbeddingParams p) {
  arch::follow_grid();
  const uint64_t place = p.report->place;
  if (place == EmbeddingReport::kNone) return;
  const auto total = static_cast<uint64_t>(p.total_members);
  const auto position = static_cast<int64_t>(place / total);
  p.report->id = id_at(p, position / p.seq, position % p.seq, static_cast<int64_t>(place % total));
}

/// `units`: per row, 16 bytes of y, or a T of a packed table.
template <WeightFormat kFormat, class T>
cudaError_t launch(const EmbeddingParams& p, bool is_gather, int64_t units, cudaStream_t stream) {
  const int64_t chunks = (p.num_members + kRowsInFlight - 1) / kRowsInFlight;
  const int64_t items_per_position = is_gather ? chunks : p.num_members;
  Share share;
  share.num_items = p.batch * p.seq * items_per_position;
  share.items_per_position = Divisor(items_per_position);
  share.seq = Divisor(p.seq);
  share.units_per_row = units;
  share.lanes_log2 = lanes_log2_for(units);
  share.is_gather = is_gather;
  share.is_y_aligned = is_y_aligned16(p);
  const int64_t items_per_block = (kThreads >> share.lanes_log2) * (is_gather ? 1 : kRowsInFlight);
  const int64_t blocks =
      std::min((share.num_items + items_per_block - 1) / items_per_block, kMaxBlocks);
  return launch_kernel(embedding_kernel<kFormat, T>, static_cast<unsigned>(blocks), kThreads, 0,
                       stream, p, share);
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

template <class Unit>
cudaError_t launch_copy(const EmbeddingParams& p, bool is_gather, cudaStream_t stream) {
  const int64_t units = p.dim * p.element_bytes / static_cast<int64_t>(sizeof(Unit));
  return launch<WeightFormat::packed, Unit>(p, is_gather, units, stream);
}

cudaError_t launch_packed(const EmbeddingParams& p, bool is_gather, cudaStream_t stream) {
  switch (unit_bytes(p)) {
    case 1:
      return launch_copy<uint8_t>(p, is_gather, stream);
    case 2:
      return launch_copy<uint16_t>(p, is_gather, stream);
    case 4:
      return launch_copy<uint32_t>(p, is_gather, stream);
    case 8:
      return launch_copy<unsigned long long>(p, is_gather, stream);
    default:
      return launch_copy<uint4>(p, is_gather, stream);
  }
}

}  // namespace

cudaError_t launch_embedding_rows(Dtype dtype, const EmbeddingParams& p, bool is_gather,
                                  cudaStream_t stream) {
  if (p.num_members * p.batch * p.seq * p.dim == 0) return cudaSuccess;
  if (p.format == WeightFormat::packed) return launch_packed(p, is_gather, stream);
  return dispatch_float(dtype, [&]<class T>(std::type_identity<T>) {
    const int64_t units = (p.dim + Vec16<T>::kSize - 1) / Vec16<T>::kSize;
    return dispatch_quantized(p.format, [&]<WeightFormat kFormat>() {
      return launch<kFormat, T>(p, is_gather, units, stream);
    });
  });
}

cudaError_t launch_embedding_report(const EmbeddingParams& p, cudaStream_t stream) {
  return launch_kernel(embedding_report_kernel, 1, 1, 0, stream, p);
}

}  // namespace wide::kernels
