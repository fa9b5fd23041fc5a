// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// linear_pointers.cu and linear_epilogue.cu by the table of the ragged GEMMs: a thread a member,
// and a block a tile, of which every thread finishes four neighbours at a time. Bound by memory;
// nothing is shared.
#include "kernels/arch/grid.cuh"
#include "kernels/common/dispatch.hpp"
#include "kernels/linear/linear_epilogue.cuh"
#include "kernels/linear/ragged_linear_grouped.hpp"
#include "kernels/linear/ragged_linear_launch.cuh"

#include <limits>

namespace wide::kernels {

namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    ragged_linear_pointers(const __grid_constant__ RaggedPointersParams params) {
  arch::follow_grid();
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= params.num_members) return;
  const RaggedMember member = load_entry(params.members + index);
  if (member.product < 0) return;
  void** const pointers = params.pointers + member.product;
  const auto at = [](const void* storage, int64_t element, int64_t bytes) {
    return const_cast<char*>(static_cast<const char*>(storage)) + element * bytes;
  };
  pointers[0] = at(params.weight, member.weight_offset, params.element_bytes);
  pointers[params.num_products] = at(params.x, member.x_offset, params.element_bytes);
  pointers[2 * params.num_products] = at(params.to, member.y_offset, params.to_bytes);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    ragged_linear_epilogue(const __grid_constant__ RaggedLinearParams params) {
  arch::follow_grid();
  const RaggedTile tile = load_entry(params.tiles + blockIdx.x);
  const LinearParams member = params_of_member<T>(params, tile.member);
  const int64_t first_m = static_cast<int64_t>(tile.m) * tile.rows;
  const int64_t first_n = tile.n * kRaggedTileN;
  const Destination<T> to = destination_of<T>(
      member.epilogue, static_cast<T*>(member.y), member.y_strides, 0, first_m, first_n,
      static_cast<int>(min(member.m - first_m, static_cast<int64_t>(tile.rows))),
      static_cast<int>(min(member.n - first_n, kRaggedTileN)), member.y_is_aligned);
  const bool has_sums = params.sums != nullptr && member.k > 0;
  const int64_t first = (static_cast<T*>(member.y) - static_cast<T*>(params.y)) +
                        first_m * member.y_strides.row + first_n;

  constexpr int kGroups = static_cast<int>(kRaggedTileN) / kColumnGroup;
#pragma unroll 1
  for (int index = static_cast<int>(threadIdx.x); index < to.num_rows * kGroups;
       index += kThreads) {
    const int row = index / kGroups, column = index % kGroups * kColumnGroup;
    const int count = min(to.num_columns - column, kColumnGroup);
    if (count <= 0) continue;
    float values[kColumnGroup] = {};
    if (has_sums) {
      load_run(params.sums + first + row * member.y_strides.row + column, count, to.y_is_aligned,
               values);
    }
    store_run(to, row, column, count, values);
  }
}

}  // namespace

cudaError_t launch_ragged_linear_pointers(const RaggedPointersParams& params, cudaStream_t stream) {
  if (params.num_products == 0) return cudaSuccess;
  const int64_t blocks = (params.num_members - 1) / kThreads + 1;
  if (blocks > std::numeric_limits<int32_t>::max()) return cudaErrorInvalidConfiguration;
  return launch_kernel(ragged_linear_pointers, static_cast<unsigned>(blocks), kThreads, 0, stream,
                       params);
}

cudaError_t launch_ragged_linear_epilogue(const RaggedLinearParams& params, Dtype dtype,
                                          cudaStream_t stream) {
  return dispatch_float(dtype, [&]<class T>(std::type_identity<T>) {
    return launch_ragged(ragged_linear_epilogue<T>, params, sizeof(T), kThreads, 0, stream);
  });
}

}  // namespace wide::kernels
