// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y[b, i, o] = activation(sums[b, i, o] + bias[i, o]): the fp32 sums of a vendor's GEMM become the
// output. A kernel of its own, because the vendors' fused epilogues know no bias per batch entry.
//
// Plan: one thread per four features of one (row, member), so that fp32 moves 16 bytes a time; a
// grid of one line. The block's first place is divided in 64 bits once, the threads' places behind
// it in 32 bits. Bound by memory; nothing is shared.
#include "kernels/linear/linear_epilogue.hpp"

#include <limits>

#include "kernels/common/activation.cuh"
#include "kernels/common/dispatch.hpp"
#include "kernels/linear/four.cuh"

namespace wide::kernels {

namespace {

constexpr int kThreads = 256;
constexpr int kGroup = 4;  // features of one thread

struct Layout {
  int64_t groups;      // in all
  uint32_t per_slice;  // groups of one (row, member)
  bool is_aligned;     // whether a whole group may be moved at a time
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    linear_epilogue(const __grid_constant__ LinearEpilogueParams params,
                    const __grid_constant__ Layout layout) {
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
    if (is_whole) {
      load_four(sums, values);
    } else {
      load_some(sums, left, values);
    }
  }
  if (params.bias != nullptr) {
    float biases[kGroup];
    load_some(static_cast<const T*>(params.bias) + member * params.bias_member_stride + feature,
              left, biases);
#pragma unroll
    for (int e = 0; e < kGroup; ++e) values[e] += biases[e];
  }
  with_activation(params.activation, [&]<Activation activation>() {
#pragma unroll
    for (int e = 0; e < kGroup; ++e) values[e] = activate<activation>(values[e]);
  });
  T* y = static_cast<T*>(params.y) + row * params.y_strides.row + member * params.y_strides.member +
         feature;
  if (is_whole) {
    store_four(y, values);
  } else {
    store_some(y, left, values);
  }
}

bool is_aligned(const void* pointer, const RowStrides& strides, int64_t element_bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % static_cast<uintptr_t>(kGroup * element_bytes) ==
             0 &&
         strides.row % kGroup == 0 && strides.member % kGroup == 0;
}

}  // namespace

cudaError_t launch_linear_epilogue(const LinearEpilogueParams& params, Dtype dtype,
                                   cudaStream_t stream) {
  if (params.rows == 0 || params.num_members == 0 || params.features == 0) return cudaSuccess;
  // Both limits leave room for the sums of 32-bit places above.
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
    const bool aligned = is_aligned(params.sums, params.sums_strides, sizeof(float)) &&
                         is_aligned(params.y, params.y_strides, sizeof(T));
    const Layout layout{groups, static_cast<uint32_t>(per_slice), aligned};
    const auto blocks = static_cast<unsigned>((groups - 1) / kThreads + 1);
    linear_epilogue<T><<<blocks, kThreads, 0, stream>>>(params, layout);
    return cudaGetLastError();
  });
}

}  // namespace wide::kernels
