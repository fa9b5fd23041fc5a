// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// cp.async, right and wrong. Blocks of 64; in: [64] counts up, a right kernel leaves out[i] =
// in[63 - i]. Sixteen threads copy sixteen bytes each, in two groups of two halves where groups
// matter.
#include <cuda_pipeline_primitives.h>

#include "kernels/arch/cp_async.cuh"

namespace arch = wide::kernels::arch;

namespace {

constexpr int kThreads = 64, kPieces = 16;

struct alignas(16) Values {
  int a[kThreads];
};

__device__ void copy_piece(Values& values, const int* in, int bytes = 16) {
  if (threadIdx.x < kPieces)
    arch::cp_async_16(values.a + threadIdx.x * 4, in + threadIdx.x * 4, bytes);
}

__device__ int mirror() {
  return static_cast<int>(kThreads - 1 - threadIdx.x);
}

}  // namespace

extern "C" {

__global__ void copy_right(int* out, const int* in, int*) {
  __shared__ Values values;
  copy_piece(values, in);
  arch::cp_async_commit();
  arch::cp_async_wait<0>();
  __syncthreads();
  out[threadIdx.x] = values.a[mirror()];
}

/// By the toolkit's own wrappers.
__global__ void copy_by_toolkit(int* out, const int* in, int*) {
  __shared__ Values values;
  __pipeline_memcpy_async(values.a + threadIdx.x, in + threadIdx.x, 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  out[threadIdx.x] = values.a[mirror()];
}

/// Two groups: the first holds what is read, the second may be under way.
__global__ void copy_first_of_two(int* out, const int* in, int* state) {
  __shared__ Values values, other;
  copy_piece(values, in);
  arch::cp_async_commit();
  copy_piece(other, state);
  arch::cp_async_commit();
  arch::cp_async_wait<1>();
  __syncthreads();
  out[threadIdx.x] = values.a[mirror()];
  arch::cp_async_wait<0>();
}

__global__ void copy_waits_for_too_few(int* out, const int* in, int* state) {
  __shared__ Values values, other;
  copy_piece(other, state);
  arch::cp_async_commit();
  copy_piece(values, in);
  arch::cp_async_commit();
  arch::cp_async_wait<1>();
  __syncthreads();
  out[threadIdx.x] = values.a[mirror()];
  arch::cp_async_wait<0>();
}

__global__ void copy_never_waits(int* out, const int* in, int*) {
  __shared__ Values values;
  copy_piece(values, in);
  arch::cp_async_commit();
  out[threadIdx.x] = in[mirror()];
}

__global__ void copy_never_commits(int* out, const int* in, int*) {
  __shared__ Values values;
  copy_piece(values, in);
  arch::cp_async_wait<0>();
  __syncthreads();
  out[threadIdx.x] = values.a[mirror()];
}

__global__ void copy_reads_own_early(int* out, const int* in, int*) {
  __shared__ Values values;
  copy_piece(values, in);
  arch::cp_async_commit();
  if (threadIdx.x < kPieces) out[threadIdx.x] = values.a[threadIdx.x * 4];
  arch::cp_async_wait<0>();
}

/// Its own copies a thread may read after the wait, without a barrier.
__global__ void copy_reads_own(int* out, const int* in, int*) {
  __shared__ Values values;
  copy_piece(values, in);
  arch::cp_async_commit();
  arch::cp_async_wait<0>();
  if (threadIdx.x >= kPieces) return;
  for (int i = 0; i < 4; ++i) {
    const int at = static_cast<int>(threadIdx.x) * 4 + i;
    out[kThreads - 1 - at] = values.a[at];
  }
}

__global__ void copy_without_barrier(int* out, const int* in, int*) {
  __shared__ Values values;
  copy_piece(values, in);
  arch::cp_async_commit();
  arch::cp_async_wait<0>();
  out[threadIdx.x] = values.a[mirror()];
}

__global__ void copy_overwritten(int* out, const int* in, int*) {
  __shared__ Values values;
  copy_piece(values, in);
  arch::cp_async_commit();
  values.a[threadIdx.x] = 0;
  arch::cp_async_wait<0>();
  __syncthreads();
  out[threadIdx.x] = values.a[mirror()];
}

/// A stage that is read while the next copy into it begins.
__global__ void copy_over_readers(int* out, const int* in, int* state) {
  __shared__ Values values;
  copy_piece(values, in);
  arch::cp_async_commit();
  arch::cp_async_wait<0>();
  __syncthreads();
  out[threadIdx.x] = values.a[mirror()];
  copy_piece(values, state);
  arch::cp_async_commit();
  arch::cp_async_wait<0>();
}

/// Twelve bytes of sixteen, four, none: the rest is zeros, and absent sources are not looked at.
__global__ void copy_fills_zeros(int* out, const int* in, int*) {
  __shared__ Values values;
  const int kind = static_cast<int>(threadIdx.x % 3);
  copy_piece(values, kind == 2 ? in + (1 << 20) : in, kind == 0 ? 12 : kind == 1 ? 4 : 0);
  arch::cp_async_commit();
  arch::cp_async_wait<0>();
  __syncthreads();
  const int piece = mirror() / 4, at = mirror() % 4;
  const int valid = piece % 3 == 0 ? 3 : piece % 3 == 1 ? 1 : 0;
  const int expected = at < valid ? in[mirror()] : 0;
  out[threadIdx.x] = values.a[mirror()] == expected ? in[mirror()] : -1;
}

__global__ void copy_takes_too_much(int* out, const int* in, int*) {
  __shared__ Values values;
  copy_piece(values, in, 17);
  arch::cp_async_commit();
  arch::cp_async_wait<0>();
  out[threadIdx.x] = values.a[0];
}

__global__ void copy_misaligned(int* out, const int* in, int*) {
  __shared__ Values values;
  if (threadIdx.x < 4) arch::cp_async_16(values.a, in + 1, 16);
  arch::cp_async_commit();
  arch::cp_async_wait<0>();
  out[threadIdx.x] = 0;
}

__global__ void copy_past_end(int* out, const int* in, int*) {
  __shared__ Values values;
  copy_piece(values, in + 4);
  arch::cp_async_commit();
  arch::cp_async_wait<0>();
  out[threadIdx.x] = 0;
}

}  // extern "C"
