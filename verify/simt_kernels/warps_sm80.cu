// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What lanes of a warp exchange, right and wrong. in, out, state as in barriers_sm80.cu; blocks
// of 32.
#include <cstdint>

#include "kernels/arch/matrix.cuh"

namespace {

constexpr unsigned kAll = 0xffffffffu, kLow = 0x0000ffffu;

__device__ int mirror() {
  return static_cast<int>(31 - threadIdx.x);
}

}  // namespace

extern "C" {

__global__ void warp_right(int* out, const int* in, int*) {
  __shared__ int values[32];
  values[threadIdx.x] = in[threadIdx.x];
  __syncwarp();
  out[threadIdx.x] = values[mirror()];
}

__global__ void warp_missing(int* out, const int* in, int*) {
  __shared__ int values[32];
  values[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = values[mirror()];
}

/// A shuffle exchanges registers and orders no memory.
__global__ void warp_only_shuffled(int* out, const int* in, int*) {
  __shared__ int values[32];
  values[threadIdx.x] = in[threadIdx.x];
  const int zero = __shfl_xor_sync(kAll, 0, 1);
  out[threadIdx.x] = values[mirror()] + zero;
}

/// Lanes 0-15 wait for each other, and read what lanes 16-31 wrote.
__global__ void warp_half_mask(int* out, const int* in, int*) {
  __shared__ int values[32];
  values[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x < 16) {
    __syncwarp(kLow);
    out[threadIdx.x] = values[mirror()];
  } else {
    __syncwarp(~kLow);
  }
}

__global__ void shuffle_right(int* out, const int* in, int*) {
  const int mine = in[threadIdx.x];
  int sum = mine;
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(kAll, sum, offset);
  const int up = __shfl_up_sync(kAll, mine, 3), down = __shfl_down_sync(kAll, mine, 5);
  const int first = __shfl_sync(kAll, mine, 0), segment = __shfl_sync(kAll, mine, 2, 8);
  const int lane = static_cast<int>(threadIdx.x);
  const bool is_right = sum == 31 * 16 && up == in[lane >= 3 ? lane - 3 : lane] &&
                        down == in[lane + 5 < 32 ? lane + 5 : lane] && first == in[0] &&
                        segment == in[lane / 8 * 8 + 2];
  const int mirrored = __shfl_sync(kAll, mine, mirror());
  out[threadIdx.x] = is_right ? mirrored : -1;
}

__global__ void shuffle_half_right(int* out, const int* in, int*) {
  int value = in[threadIdx.x];
  if (threadIdx.x < 16) {
    value = __shfl_sync(kLow, value, static_cast<int>(15 - threadIdx.x), 16);
  } else {
    value = __shfl_sync(~kLow, value, static_cast<int>(31 - threadIdx.x), 16);
  }
  out[threadIdx.x ^ 16] = value;
}

/// Half of the warp waits for the other half, which waits for it elsewhere.
__global__ void shuffle_full_mask_in_half(int* out, const int* in, int*) {
  int value = in[threadIdx.x];
  if (threadIdx.x < 16) {
    value = __shfl_xor_sync(kAll, value, 1);
  } else {
    __syncwarp(kAll);
  }
  out[threadIdx.x] = value;
}

__global__ void shuffle_from_outside(int* out, const int* in, int*) {
  int value = in[threadIdx.x];
  if (threadIdx.x < 16) value = __shfl_down_sync(kLow, value, 8);
  out[threadIdx.x] = value;
}

__global__ void shuffle_caller_outside(int* out, const int* in, int*) {
  out[threadIdx.x] = __shfl_xor_sync(kLow, in[threadIdx.x], 1);
}

__global__ void vote_right(int* out, const int* in, int*) {
  const int value = in[threadIdx.x];
  const unsigned odd = __ballot_sync(kAll, value % 2);
  const int all = __all_sync(kAll, value < 32), not_all = __all_sync(kAll, value < 31);
  const int any = __any_sync(kAll, value == 9), none = __any_sync(kAll, value == 32);
  const unsigned same = __match_any_sync(kAll, value % 4);
  const int sum = __reduce_add_sync(kAll, value), most = __reduce_max_sync(kAll, value);
  const unsigned expected = 0x11111111u << (threadIdx.x % 4);
  const bool is_right = odd == 0xaaaaaaaau && all && !not_all && any && !none && same == expected &&
                        sum == 496 && most == 31;
  out[threadIdx.x] = is_right ? in[mirror()] : -1;
}

__global__ void vote_caller_outside(int* out, const int* in, int*) {
  out[threadIdx.x] = static_cast<int>(__ballot_sync(kLow, in[threadIdx.x] % 2));
}

/// Lanes reach the vote by different ways, and are together there.
__global__ void vote_after_divergence(int* out, const int* in, int* state) {
  int value = in[threadIdx.x];
  if (value % 3 == 0) {
    for (int i = 0; i < in[threadIdx.x]; ++i) value += state[i] + 1;
  } else if (value % 3 == 1) {
    value *= state[value] + 3;
  }
  const unsigned third = __ballot_sync(kAll, in[threadIdx.x] % 3 == 0 ? value >= 0 : 0);
  out[threadIdx.x] = third == 0x49249249u ? in[mirror()] : -1;
}

__global__ void shared_atomic_right(int* out, const int* in, int*) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  __syncwarp();
  atomicAdd(&total, in[threadIdx.x]);
  __syncwarp();
  out[threadIdx.x] = total == 496 ? in[mirror()] : -1;
}

__global__ void shared_atomic_and_plain(int* out, const int* in, int*) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  __syncwarp();
  if (threadIdx.x % 2 == 0) {
    atomicAdd(&total, in[threadIdx.x]);
  } else {
    total = in[threadIdx.x];
  }
  __syncwarp();
  out[threadIdx.x] = total;
}

/// Half of the lanes are long on their way to an instruction that takes the whole warp: it waits.
__global__ void matrix_after_long_way(int* out, const int* in, int*) {
  __shared__ alignas(16) int rows[32 * 4];
  for (int i = 0; i < 4; ++i) rows[threadIdx.x * 4 + i] = in[mirror()];
  __syncwarp();
  int sum = 0;
  if (threadIdx.x < 16) {
#pragma unroll 1
    for (int i = 0; i < 20000; ++i) sum = in[(sum + i) % 32];
  }
  uint32_t d[1];
  wide::kernels::arch::ldmatrix(d, &rows[threadIdx.x * 4]);
  // Lane l got a word of row l / 4, which is lane l / 4's.
  out[threadIdx.x] = static_cast<int>(d[0]) == 31 - static_cast<int>(threadIdx.x) / 4 && sum >= 0
                         ? in[mirror()]
                         : -1;
}

}  // extern "C"
