// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y[b, i, o] = activation(alpha * scale[i, o] * sums[b, i, o] + bias[i, o] + residual[b, i, o]):
// turns a GEMM's fp32 sums into outputs. A separate kernel, because the vendors' fused epilogues
// have no bias per batch entry, and because it adds up shares of a sum.
//
// Plan: one thread per four features of one (row, member), so that fp32 moves 16 bytes at a time; a
// one-dimensional grid. The block's first position is divided in 64 bits once, the threads' offsets
// from it in 32 bits. Memory-bound; nothing is shared.
#include "kernels/arch/grid.cuh"
#include "kernels/common/launch.hpp"
#include "kernels/linear/linear_epilogue.hpp"

#include <limits>

#include "kernels/common/dispatch.hpp"
#include "kernels/linear/linear_epilogue.cuh"
#include "kernels/linear/linear_launch.cuh"

namespace wide::kernels {

namespace {

constexpr int kThreads = 256;
constexpr int kGroup = kColumnGroup;  // features of one thread

struct Layout {
  int64_t groups;      // in total
  uint32_t per_slice;  // groups of one (row, member)
  bool is_aligned;     // whether a whole group may be moved at a time
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    linear_epilogue(const __grid_constant__ LinearEpilogueParams params,
                    const __grid_constant__ Layout layout) {
  arch::follow_grid();
  // Locate the group.
  const int64_t block_group = static_cast<int64_t>(blockIdx.x) * kThreads;
  if (block_group + threadIdx.x >= layout.groups) return;
  const int64_t block_slice = block_group / layout.per_slice;  // of (row, member)
  const auto offset = static_cast<uint32_t>(block_group % layout.per_slice) + threadIdx.x;
  const auto num_members = static_cast<uint32_t>(params.num_members);
  const uint32_t member_offset =
      static_cast<uint32_t>(block_slice % params.num_members) + offset / layout.per_slice;
  const int64_t row = block_slice / params.num_members + member_offset / num_members;
  const int64_t member = member_offset % num_members;
  const int64_t feature = static_cast<int64_t>(offset % layout.per_slice) * kGroup;
  const auto left = static_cast<int>(min(params.features - feature, int64_t{kGroup}));

  // Load, compute, store.
  float values[kGroup] = {};
  const bool is_whole = layout.is_aligned && left == kGroup;
  if (params.sums != nullptr) {
    const float* sums =
        params.sums + row * params.sums_strides.row + member * params.sums_strides.member + feature;
    load_run(sums, left, is_whole, values);
    if (is_whole) {
#pragma unroll 4  // this many loads in flight
      for (int64_t plane = 1; plane < params.num_planes; ++plane) {
        add_run(sums + plane * params.plane_stride, kGroup, true, values);
      }
    } else {
      for (int64_t plane = 1; plane < params.num_planes; ++plane) {
        add_run(sums + plane * params.plane_stride, left, false, values);
      }
    }
  }
  // A tile of one row of four outputs.
  const Destination<T> to =
      destination_of<T>(params.epilogue, static_cast<T*>(params.y), params.y_strides, member, row,
                        feature, 1, left, layout.is_aligned);
  store_run(to, 0, 0, left, values);
}

bool is_whole_groups(const void* pointer, const RowStrides& strides, int64_t element_bytes) {
  return is_aligned(pointer, strides.row, strides.member, kGroup, element_bytes);
}

}  // namespace

cudaError_t launch_linear_epilogue(LinearEpilogueParams params, Dtype dtype, cudaStream_t stream) {
  if (params.rows == 0 || params.num_members == 0 || params.features == 0) return cudaSuccess;
  // Both limits leave room for the sums of 32-bit offsets above.
  constexpr int64_t kMaxSmall = std::numeric_limits<uint32_t>::max() / 4;
  constexpr int64_t kMaxGroups = int64_t{std::numeric_limits<int32_t>::max()} * kThreads;
  const int64_t per_slice = (params.features - 1) / kGroup + 1;
  if (per_slice > kMaxSmall || params.num_members > kMaxSmall ||
      params.num_members > kMaxGroups / per_slice ||
      params.rows > kMaxGroups / (per_slice * params.num_members)) {
    return cudaErrorInvalidConfiguration;
  }
  const int64_t groups = params.rows * params.num_members * per_slice;
  return dispatch_float(dtype, [&]<class T>(std::type_identity<T>) {
    set_alignment(params.epilogue, sizeof(T));
    const bool aligned = is_whole_groups(params.sums, params.sums_strides, sizeof(float)) &&
                         params.plane_stride % kGroup == 0 &&
                         is_whole_groups(params.y, params.y_strides, sizeof(T));
    const Layout layout{groups, static_cast<uint32_t>(per_slice), aligned};
    const auto blocks = static_cast<unsigned>((groups - 1) / kThreads + 1);
    return launch_kernel(linear_epilogue<T>, blocks, kThreads, 0, stream, params, layout);
  });
}

}  // namespace wide::kernels
