// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y[b, n, :] = the sum or mean of table[n, id, :] over the ids of bag b of member n, in fp32.
//
// Plan: bags are numbered (bag, member), members fastest. A group of 4 to 32 lanes adds up a bag.
// Each lane reads one id and computes its row's address; then all lanes get row after row from one
// another, each lane a unit of every row: 16 bytes of it, or one element where a packed table is
// not aligned to them. So ids are read once for 32 units, no two lanes add up the same, and the
// order of a sum is that of the ids. Four rows are in flight at a time. The groups of a warp stay
// together until the longest of their bags is done. A unit may be several vectors of y: lanes
// exchange them, so as to write whole sectors. Memory: no shared memory. Limits: none; offsets are
// 64-bit, the grid is one-dimensional. Broken bags, with an id or offsets out of range, become 0xFF
// bytes.
#include <algorithm>

#include "kernels/arch/grid.cuh"
#include "kernels/arch/load.cuh"
#include "kernels/common/dispatch.hpp"
#include "kernels/common/divisor.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/common/vector_load.cuh"
#include "kernels/embedding/embedding_indexed.hpp"
#include "kernels/embedding/embedding_rows.cuh"

namespace wide::kernels {

namespace {

constexpr int kThreads = 128;
constexpr int kRowsInFlight = 4;
constexpr int kFewestLanesLog2 = 2;  // as many as rows in flight
constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int64_t kMaxBlocks = 1 << 16;

struct BagShare {
  int64_t num_bags = 0;  ///< of all members
  Divisor members;
  int lanes_log2 = 0;
  bool is_table_aligned = false, is_y_aligned = false;
};

/// The lanes of a warp that share a bag.
struct Group {
  int lanes, lane;
  unsigned mask;

  __device__ explicit Group(int lanes_log2) : lanes(1 << lanes_log2) {
    const int in_warp = static_cast<int>(threadIdx.x) % 32;
    lane = in_warp & (lanes - 1);
    mask = kAllLanes >> (32 - lanes) << (in_warp - lane);
  }
};

/// Positions [begin, end) among all members' ids; empty where there is no bag.
struct BagIds {
  int64_t member, begin = 0, end = 0;
  bool is_broken = false;

  __device__ BagIds(const EmbeddingParams& p, int64_t bag, int64_t member_) : member(member_) {
    if (bag >= p.batch) return;
    const int64_t place = member * p.offsets_member_stride + bag;
    const int64_t first = load_id(p, p.offsets, place), last = load_id(p, p.offsets, place + 1);
    is_broken = first < 0 || last > p.seq || first > last;
    if (is_broken) return;
    begin = member * p.ids_member_stride + first;
    end = member * p.ids_member_stride + last;
  }
};

/// Elements of a unit of 16 bytes of a stored row.
template <WeightFormat kFormat, class T>
constexpr int kUnitSize = kFormat == WeightFormat::packed ? Vec16<T>::kSize : 16;

/// kSize neighbours of a row as loaded, where `exists`; else zeros.
template <WeightFormat kFormat, class T, int kSize>
struct BagUnit {
  alignas(sizeof(T) * kSize) T values[kSize];

  __device__ void load(const EmbeddingParams&, const char* row, int64_t unit, bool exists) {
    const T* from = reinterpret_cast<const T*>(row) + unit * kSize;
    if constexpr (kSize == 1) {
      values[0] = exists ? arch::load(from) : from_float<T>(0.0f);
    } else {
      *reinterpret_cast<Vec16<T>*>(values) = load_vec16_if(from, exists);
    }
  }
  __device__ void add_to(float (&sums)[kSize]) const {
#pragma unroll
    for (int e = 0; e < kSize; ++e) sums[e] += to_float(values[e]);
  }
};

template <WeightFormat kFormat, class T, int kSize>
requires(kFormat != WeightFormat::packed) struct BagUnit<kFormat, T, kSize> {
  Vec16<uint8_t> codes;
  uint16_t scale = 0;  ///< a bf16's bits

  __device__ void load(const EmbeddingParams& p, const char* row, int64_t unit, bool exists) {
    codes = load_vec16_if(reinterpret_cast<const uint8_t*>(row) + unit * kSize, exists);
    arch::load_2_if(scale, scale_of(p, row), exists);
  }
  __device__ void add_to(float (&sums)[kSize]) const {
#pragma unroll
    for (int e = 0; e < kSize; ++e)
      sums[e] += __uint_as_float(uint32_t{scale} << 16) * value_of<kFormat>(codes.v[e]);
  }
};

/// Adds up one unit of all rows; returns their number, or -1 for a broken bag. All lanes of the
/// warp take part, also those past a row's end or with a shorter bag.
template <WeightFormat kFormat, class T, int kSize>
__device__ int64_t add_rows(float (&sums)[kSize], const EmbeddingParams& p, const Group& group,
                            const BagIds& ids, int64_t unit) {
  const bool has_unit = unit * kSize < p.dim;
  bool is_broken = ids.is_broken;
  int64_t count = 0, end = ids.end;
#pragma unroll 1
  for (int64_t first = ids.begin; __any_sync(kAllLanes, first < end); first += group.lanes) {
    const int64_t place = first + group.lane;
    const int64_t id = place < end ? load_id(p, p.ids, place) : p.padding_id;
    const bool is_there = place < end && (id != p.padding_id || id < 0);
    const char* own_row = is_there ? table_row(p, ids.member, id) : nullptr;
    count += __popc(__ballot_sync(kAllLanes, is_there) & group.mask);
    if ((__ballot_sync(kAllLanes, is_there && own_row == nullptr) & group.mask) != 0) {
      is_broken = true;
      end = first;
    }
#pragma unroll 1
    for (int row = 0; row < group.lanes && __any_sync(kAllLanes, first + row < end);
         row += kRowsInFlight) {
      const char* rows[kRowsInFlight];
#pragma unroll
      for (int r = 0; r < kRowsInFlight; ++r) {
        const auto address = reinterpret_cast<unsigned long long>(own_row);
        rows[r] =
            reinterpret_cast<const char*>(__shfl_sync(kAllLanes, address, row + r, group.lanes));
      }
      // Separate from the shuffles, between which a load would be waited for.
      BagUnit<kFormat, T, kSize> units[kRowsInFlight];
#pragma unroll
      for (int r = 0; r < kRowsInFlight; ++r) {
        units[r].load(p, rows[r], unit, rows[r] != nullptr && has_unit);
      }
#pragma unroll
      for (int r = 0; r < kRowsInFlight; ++r) units[r].add_to(sums);
    }
  }
  return is_broken ? -1 : count;
}

/// Transposes among kCount adjacent lanes: of the vectors that a lane has in sequence, lane l gets
/// vector l of each lane.
template <class Vector, int kCount>
__device__ inline void exchange_with_neighbours(Vector (&vectors)[kCount], int lane) {
  static_assert(sizeof(Vector) == 16 && (kCount & (kCount - 1)) == 0);
#pragma unroll
  for (int step = 1; step < kCount; step *= 2) {
    const bool has_bit = (lane & step) != 0;
#pragma unroll
    for (int low = 0; low < kCount; ++low) {
      if ((low & step) != 0) continue;
      auto& lower = *reinterpret_cast<uint4*>(&vectors[low]);
      auto& upper = *reinterpret_cast<uint4*>(&vectors[low + step]);
      const uint4 given = has_bit ? lower : upper;
      const uint4 taken{
          __shfl_xor_sync(kAllLanes, given.x, step), __shfl_xor_sync(kAllLanes, given.y, step),
          __shfl_xor_sync(kAllLanes, given.z, step), __shfl_xor_sync(kAllLanes, given.w, step)};
      lower = has_bit ? taken : lower;
      upper = has_bit ? upper : taken;
    }
  }
}

/// No y: no bag.
template <WeightFormat kFormat, class T, int kSize>
__device__ void run_unit(const EmbeddingParams& p, const Group& group, const BagIds& ids, char* y,
                         int64_t unit, bool is_y_aligned) {
  float sums[kSize] = {};
  const int64_t count = add_rows<kFormat, T, kSize>(sums, p, group, ids, unit);
  const float factor = p.is_mean && count > 0 ? 1.0f / static_cast<float>(count) : 1.0f;
  constexpr int kStored = kSize < Vec16<T>::kSize ? kSize : Vec16<T>::kSize;
  constexpr int kVectors = kSize / kStored;
  Vec16<T> out[kVectors];
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
#pragma unroll
    for (int e = 0; e < kStored; ++e) {
      out[v].v[e] = from_float<T>(factor * sums[v * kStored + e]);
    }
    if (count < 0) out[v] = all_ones<Vec16<T>>();
  }
  // Adjacent lanes write whole sectors.
  const int own = group.lane % kVectors;
  exchange_with_neighbours(out, own);
  const int64_t dim = y == nullptr ? 0 : p.dim;
  const int64_t first = (unit - own) * kVectors + own;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int64_t place = first + v * kVectors;
    if constexpr (kSize == 1) {
      if (place < dim) reinterpret_cast<T*>(y)[place] = out[v].v[0];
    } else {
      store_unit(y, place, dim, is_y_aligned, out[v]);
    }
  }
}

template <WeightFormat kFormat, class T>
__global__ void __launch_bounds__(kThreads, 4)
    embedding_bag_kernel(const __grid_constant__ EmbeddingParams p,
                         const __grid_constant__ BagShare share) {
  constexpr int kSize = kUnitSize<kFormat, T>;
  const Group group(share.lanes_log2);
  const int64_t groups = int64_t{gridDim.x} * kThreads >> share.lanes_log2;
  const int64_t thread = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t place_in_warp = threadIdx.x % 32 >> share.lanes_log2;
  arch::follow_grid();
#pragma unroll 1
  for (int64_t first = thread / 32 * 32 >> share.lanes_log2; first < share.num_bags;
       first += groups) {
    int64_t member = 0;
    const int64_t bag = share.members.divide(first + place_in_warp, member);
    const BagIds ids(p, bag, member);
    char* y = p.y + (bag * p.y_row_stride + member * p.y_member_stride) * p.element_bytes;
    if (bag >= p.batch) y = nullptr;
    if (kFormat != WeightFormat::packed || share.is_table_aligned) {
#pragma unroll 1
      for (int64_t unit = 0; unit * kSize < p.dim; unit += group.lanes) {
        run_unit<kFormat, T, kSize>(p, group, ids, y, unit + group.lane, share.is_y_aligned);
      }
    } else if constexpr (kFormat == WeightFormat::packed) {
#pragma unroll 1
      for (int64_t unit = 0; unit < p.dim; unit += group.lanes) {
        run_unit<kFormat, T, 1>(p, group, ids, y, unit + group.lane, false);
      }
    }
  }
}

template <WeightFormat kFormat, class T>
cudaError_t launch(const EmbeddingParams& p, cudaStream_t stream) {
  BagShare share;
  share.num_bags = p.batch * p.num_members;
  share.members = Divisor(p.num_members);
  share.is_y_aligned = is_y_aligned16(p);
  // A packed row's last vector must not end past it: the next row may not exist.
  const int64_t strides = (p.table_member_stride | p.table_row_stride | p.dim) * p.table_bytes;
  share.is_table_aligned = kFormat != WeightFormat::packed ||
                           (strides % 16 == 0 && reinterpret_cast<uintptr_t>(p.table) % 16 == 0);
  const int64_t unit = share.is_table_aligned ? kUnitSize<kFormat, T> : 1;
  share.lanes_log2 = std::max(kFewestLanesLog2, lanes_log2_for((p.dim + unit - 1) / unit));
  const int64_t bags_per_block = kThreads >> share.lanes_log2;
  const int64_t blocks =
      std::min((share.num_bags + bags_per_block - 1) / bags_per_block, kMaxBlocks);
  return launch_kernel(embedding_bag_kernel<kFormat, T>, static_cast<unsigned>(blocks), kThreads, 0,
                       stream, p, share);
}

}  // namespace

cudaError_t launch_embedding_bags(Dtype dtype, const EmbeddingParams& p, cudaStream_t stream) {
  if (p.num_members * p.batch * p.dim == 0) return cudaSuccess;
  return dispatch_float(dtype, [&]<class T>(std::type_identity<T>) {
    if (p.format == WeightFormat::packed) return launch<WeightFormat::packed, T>(p, stream);
    return dispatch_quantized(
        p.format, [&]<WeightFormat kFormat>() { return launch<kFormat, T>(p, stream); });
  });
}

}  // namespace wide::kernels
