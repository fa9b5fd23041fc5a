// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Barriers of a block, right and wrong. in: [threads] counts up; a right kernel leaves out[i] =
// in[threads - 1 - i], so that every value crosses warps. state: zeros.
#include "kernels/arch/barrier.cuh"
#include "verify/simt_kernels/unused_instructions.cuh"

namespace arch = wide::kernels::arch;

namespace {

__device__ int mirror() {
  return static_cast<int>(blockDim.x - 1 - threadIdx.x);
}

}  // namespace

extern "C" {

__global__ void barrier_right(int* out, const int* in, int*) {
  __shared__ int values[256];
  values[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = values[mirror()];
}

__global__ void barrier_missing(int* out, const int* in, int*) {
  __shared__ int values[256];
  values[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = values[mirror()];
}

__global__ void barrier_before_reuse(int* out, const int* in, int* state) {
  __shared__ int values[256];
  values[threadIdx.x] = state[threadIdx.x];
  __syncthreads();
  const int zero = values[mirror()];
  __syncthreads();
  values[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = values[mirror()] + zero;
}

__global__ void barrier_missing_before_reuse(int* out, const int* in, int* state) {
  __shared__ int values[256];
  values[threadIdx.x] = state[threadIdx.x];
  __syncthreads();
  const int zero = values[mirror()];
  values[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = values[mirror()] + zero;
}

__global__ void barrier_needless(int* out, const int* in, int*) {
  __shared__ int values[256];
  __syncthreads();
  values[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  __syncthreads();
  out[threadIdx.x] = values[mirror()];
  __syncthreads();
}

/// Warps that have ended are waited for no longer.
__global__ void barrier_after_exit(int* out, const int* in, int*) {
  __shared__ int values[256];
  values[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = values[mirror()];
  if (threadIdx.x >= 64) return;
  __syncthreads();
}

/// The halves of a block of 128 wait for themselves only; each mirrors its own half.
__global__ void named_barrier_right(int* out, const int* in, int*) {
  __shared__ int values[128];
  const int half = static_cast<int>(threadIdx.x / 64), i = static_cast<int>(threadIdx.x % 64);
  values[threadIdx.x] = in[half * 64 + i];
  arch::named_barrier_sync(1 + half, 64);
  out[(1 - half) * 64 + i] = values[half * 64 + 63 - i];
}

__global__ void named_barrier_same_for_both(int* out, const int* in, int*) {
  __shared__ int values[128];
  values[threadIdx.x] = in[threadIdx.x];
  arch::named_barrier_sync(1 + static_cast<int>(threadIdx.x / 64), 64);
  out[threadIdx.x] = values[mirror()];
}

__global__ void named_barrier_counts_differ(int* out, const int* in, int*) {
  out[threadIdx.x] = in[threadIdx.x];
  arch::named_barrier_sync(1, threadIdx.x < 64 ? 128 : 64);
}

__global__ void named_barrier_ragged_count(int* out, const int* in, int*) {
  out[threadIdx.x] = in[threadIdx.x];
  arch::named_barrier_sync(1, 48);
}

__global__ void named_barrier_count_too_large(int* out, const int* in, int*) {
  out[threadIdx.x] = in[threadIdx.x];
  arch::named_barrier_sync(3, 160);
}

/// Two warps produce and go on, two consume.
__global__ void named_barrier_arrive_right(int* out, const int* in, int*) {
  __shared__ int values[64];
  if (threadIdx.x < 64) {
    values[threadIdx.x] = in[threadIdx.x] + in[threadIdx.x + 64];
    arch::named_barrier_arrive(2, 128);
    out[threadIdx.x] = in[mirror()];
  } else {
    arch::named_barrier_sync(2, 128);
    const int sum = values[threadIdx.x - 64];
    out[threadIdx.x] = in[mirror()] + sum - (in[threadIdx.x - 64] + in[threadIdx.x]);
  }
}

__global__ void named_barrier_arrive_for_nobody(int* out, const int* in, int*) {
  __shared__ int values[64];
  if (threadIdx.x < 64) {
    values[threadIdx.x] = in[threadIdx.x];
    arch::named_barrier_arrive(2, 128);
  } else {
    out[threadIdx.x] = values[threadIdx.x - 64];
  }
}

__global__ void named_barrier_arrive_after_write(int* out, const int* in, int*) {
  __shared__ int values[64];
  if (threadIdx.x < 64) {
    arch::named_barrier_arrive(2, 128);
    values[threadIdx.x] = in[threadIdx.x];
  } else {
    arch::named_barrier_sync(2, 128);
    out[threadIdx.x] = values[threadIdx.x - 64];
  }
}

__global__ void barrier_divergent(int* out, const int* in, int*) {
  __shared__ int values[256];
  values[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x % 32 < 16) {
    __syncthreads();
    out[threadIdx.x] = values[threadIdx.x];
  } else {
    out[threadIdx.x] = in[mirror()];
  }
}

__global__ void barrier_reductions(int* out, const int* in, int*) {
  const int threads = static_cast<int>(blockDim.x);
  const int count = __syncthreads_count(in[threadIdx.x] < 10);
  const int all = __syncthreads_and(in[threadIdx.x] < threads);
  const int none = __syncthreads_and(in[threadIdx.x] < threads - 1);
  const int any = __syncthreads_or(in[threadIdx.x] == 7);
  const int never = __syncthreads_or(in[threadIdx.x] == threads);
  const bool is_right = count == 10 && all != 0 && none == 0 && any != 0 && never == 0;
  out[threadIdx.x] = is_right ? in[mirror()] : -1;
}

}  // extern "C"
