// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the ragged GEMMs have in common. A kernel is linear's tile behind a look at a table: two
// loads that depend on each other, the tile's place and its member, instead of arithmetic on the
// block's number. A list of all tiles costs a block one load of 16 bytes where a search among the
// members' first tiles would cost it a chain of them.
#pragma once

#include <limits>

#include "kernels/arch/load.cuh"
#include "kernels/common/launch.hpp"
#include "kernels/linear/linear_launch.cuh"
#include "kernels/linear/ragged_linear.hpp"

namespace wide::kernels {

/// An entry of the table, 16 bytes at a time: field by field it would be four times as many
/// requests.
template <class Entry>
__device__ inline Entry load_entry(const Entry* entry) {
  constexpr int kWords = sizeof(Entry) / sizeof(uint4);
  static_assert(sizeof(Entry) % sizeof(uint4) == 0 && alignof(Entry) == alignof(uint4));
  uint4 words[kWords];
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = arch::load(reinterpret_cast<const uint4*>(entry) + i);
  Entry loaded;
  memcpy(&loaded, words, sizeof(Entry));
  return loaded;
}

/// A member of the table as a problem of linear, of one member.
template <class T>
__device__ inline LinearParams params_of_member(const RaggedLinearParams& params, uint32_t index) {
  const RaggedMember member = load_entry(params.members + index);
  LinearParams one{};
  one.x = static_cast<const T*>(params.x) + member.x_offset;
  one.weight = static_cast<const T*>(params.weight) + member.weight_offset;
  one.y = static_cast<T*>(params.y) + member.y_offset;
  one.num_members = 1;
  one.m = member.m, one.n = member.n, one.k = member.k;
  one.x_strides.row = member.x_row;
  one.weight_strides.row = member.weight_row;
  one.y_strides.row = member.y_row;
  one.x_is_aligned = params.x_is_aligned && member.x_is_aligned;
  one.weight_is_aligned = params.weight_is_aligned && member.weight_is_aligned;
  one.y_is_aligned = params.y_is_aligned && member.y_is_aligned;
  LinearEpilogue& epilogue = one.epilogue;
  epilogue = params.epilogue;
  if (epilogue.bias != nullptr) {
    epilogue.bias = static_cast<const T*>(epilogue.bias) + member.bias_offset;
  }
  if (epilogue.scale != nullptr) {
    epilogue.scale += epilogue.scale_is_per_output ? member.bias_offset : index;
  }
  if (epilogue.residual != nullptr) {
    epilogue.residual = static_cast<const T*>(epilogue.residual) + member.y_offset;
  }
  epilogue.residual_strides.row = member.y_row;
  epilogue.is_aligned = params.epilogue.is_aligned && member.epilogue_is_aligned;
  return one;
}

/// Calls compute_short or compute_tall with the member of the block's tile as a problem of linear,
/// and the tile's first row and output.
template <class T, class Short, class Tall>
__device__ inline void compute_ragged_tile(const RaggedLinearParams& params, Short compute_short,
                                           Tall compute_tall) {
  const RaggedTile tile = load_entry(params.tiles + blockIdx.x);
  const LinearParams member = params_of_member<T>(params, tile.member);
  const int64_t first_m = static_cast<int64_t>(tile.m) * tile.rows;
  const int64_t first_n = tile.n * kRaggedTileN;
  if (tile.rows == kRaggedShortTile) {
    compute_short(member, first_m, first_n);
  } else {
    compute_tall(member, first_m, first_n);
  }
}

/// Starts kernel(params) with one block a tile.
template <class Kernel>
cudaError_t launch_ragged(Kernel* kernel, RaggedLinearParams params, int64_t element_bytes,
                          int threads, int shared_bytes, cudaStream_t stream) {
  if (params.num_tiles == 0) return cudaSuccess;
  if (params.num_tiles > std::numeric_limits<int32_t>::max()) return cudaErrorInvalidConfiguration;
  const int64_t vector = 16 / element_bytes;
  params.x_is_aligned = is_aligned(params.x, 0, 0, vector, element_bytes);
  params.weight_is_aligned = is_aligned(params.weight, 0, 0, vector, element_bytes);
  params.y_is_aligned = is_aligned(params.y, 0, 0, 4, element_bytes);
  set_alignment(params.epilogue, element_bytes);
  if (const cudaError_t status = allow_shared_bytes(kernel, shared_bytes); status != cudaSuccess) {
    return status;
  }
  return launch_kernel(kernel, static_cast<unsigned>(params.num_tiles), threads,
                       static_cast<size_t>(shared_bytes), stream, params);
}

}  // namespace wide::kernels
