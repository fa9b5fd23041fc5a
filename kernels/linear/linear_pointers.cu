// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// pointers[0, i] = weight + i * weight_member_bytes, likewise x and y: one thread per member.
#include "kernels/arch/grid.cuh"
#include "kernels/common/launch.hpp"
#include "kernels/linear/linear_pointers.hpp"

#include <limits>

namespace wide::kernels {

namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    linear_pointers(const __grid_constant__ LinearPointersParams params) {
  arch::follow_grid();
  const int64_t member = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (member >= params.num_members) return;
  void** const pointers = params.pointers + member;
  const auto at = [&](const void* base, int64_t member_bytes) {
    return const_cast<char*>(static_cast<const char*>(base)) + member * member_bytes;
  };
  pointers[0] = at(params.weight, params.weight_member_bytes);
  pointers[params.num_members] = at(params.x, params.x_member_bytes);
  pointers[2 * params.num_members] = at(params.y, params.y_member_bytes);
}

}  // namespace

cudaError_t launch_linear_pointers(const LinearPointersParams& params, cudaStream_t stream) {
  if (params.num_members == 0) return cudaSuccess;
  const int64_t blocks = (params.num_members - 1) / kThreads + 1;
  if (blocks > std::numeric_limits<int32_t>::max()) return cudaErrorInvalidConfiguration;
  return launch_kernel(linear_pointers, static_cast<unsigned>(blocks), kThreads, 0, stream, params);
}

}  // namespace wide::kernels
