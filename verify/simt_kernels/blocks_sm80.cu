// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What blocks hand to each other, right and wrong. in: [threads of the grid] counts up; out as
// large, a right kernel leaves out[i] = in[threads - 1 - i]; state: as many zeros.
#include <cstdint>

#include "verify/simt_kernels/unused_instructions.cuh"

namespace arch = wide::kernels::arch;

namespace {

__device__ int global_index() {
  return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}
__device__ int mirrored() {
  return static_cast<int>(gridDim.x * blockDim.x) - 1 - global_index();
}

/// The first of two blocks gives the second its values, behind the flag in state[0]. kWriter,
/// kReader: whether that side fences.
template <bool kWriter, bool kReader>
__device__ void hand_over(int* out, const int* in, int* state) {
  int* handed = state + 64;
  const int thread = static_cast<int>(threadIdx.x);
  out[mirrored()] = in[global_index()];
  if (blockIdx.x == 0) {
    handed[thread] = in[thread];
    if (kWriter) __threadfence();
    __syncthreads();
    if (thread == 0) atomicExch(state, 1);
    return;
  }
  if (thread == 0) {
    while (atomicAdd(state, 0) == 0) {
    }
    if (kReader) __threadfence();
  }
  __syncthreads();
  if (handed[thread] != in[thread]) out[mirrored()] = -1;
}

/// The last block to finish mirrors what all have written to `state`.
template <bool kFences>
__device__ void last_block(int* out, const int* in, int* state, int* ticket) {
  __shared__ bool is_last;
  state[global_index()] = in[global_index()];
  if (kFences) __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    is_last = atomicAdd(ticket, 1) == static_cast<int>(gridDim.x) - 1;
    if (kFences) __threadfence();
  }
  __syncthreads();
  if (!is_last) return;
  const int threads = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = static_cast<int>(threadIdx.x); i < threads; i += static_cast<int>(blockDim.x)) {
    out[i] = state[threads - 1 - i];
  }
}
/// Split-K with a semaphore: blocks that are there together add to one output in turn, so that the
/// sum's bits do not depend on who is first. state: [0] the turn, [64..127] the sums.
template <bool kAcquires>
__device__ void in_turn(int* out, const int* in, int* state) {
  auto* turn = reinterpret_cast<uint32_t*>(state);
  int* sums = state + 64;
  if (threadIdx.x == 0) {
    while ((kAcquires ? arch::load_acquire(turn) : static_cast<uint32_t>(atomicAdd(state, 0))) !=
           blockIdx.x) {
    }
  }
  __syncthreads();
  sums[threadIdx.x] += in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) arch::store_release(turn, blockIdx.x + 1);
  out[mirrored()] = in[global_index()];
}
__device__ int last_block_ticket, unfenced_ticket;

}  // namespace

extern "C" {

__global__ void blocks_apart(int* out, const int* in, int*) {
  out[mirrored()] = in[global_index()];
}

__global__ void blocks_write_the_same(int* out, const int* in, int*) {
  out[mirrored()] = in[global_index()];
  out[0] = in[mirrored()] * 0 + static_cast<int>(gridDim.x * blockDim.x) - 1;
}

__global__ void blocks_read_what_others_write(int* out, const int* in, int* state) {
  state[global_index()] = in[global_index()];
  out[global_index()] = state[mirrored()];
}

__global__ void blocks_add_atomically(int* out, const int* in, int* state) {
  out[mirrored()] = in[global_index()];
  atomicAdd(state, in[global_index()]);
}

__global__ void blocks_hand_over(int* out, const int* in, int* state) {
  hand_over<true, true>(out, in, state);
}
__global__ void blocks_hand_over_without_writers_fence(int* out, const int* in, int* state) {
  hand_over<false, true>(out, in, state);
}
__global__ void blocks_hand_over_without_readers_fence(int* out, const int* in, int* state) {
  hand_over<true, false>(out, in, state);
}

__global__ void blocks_acquire_release(int* out, const int* in, int* state) {
  auto* flag = reinterpret_cast<uint32_t*>(state);
  if (blockIdx.x == 0) {
    out[mirrored()] = in[global_index()];
    __syncthreads();
    if (threadIdx.x == 0) arch::store_release(flag, 1);
    return;
  }
  if (threadIdx.x == 0) {
    while (arch::load_acquire(flag) == 0) {
    }
  }
  __syncthreads();
  out[mirrored()] = out[global_index()] - in[mirrored()] + in[global_index()];
}

/// The release publishes only what the thread knows: here not what the others wrote.
__global__ void blocks_release_without_barrier(int* out, const int* in, int* state) {
  auto* flag = reinterpret_cast<uint32_t*>(state);
  if (blockIdx.x == 0) {
    out[mirrored()] = in[global_index()];
    if (threadIdx.x == 0) arch::store_release(flag, 1);
    return;
  }
  if (threadIdx.x == 0) {
    while (arch::load_acquire(flag) == 0) {
    }
  }
  __syncthreads();
  out[mirrored()] = out[global_index()] - in[mirrored()] + in[global_index()];
}

__global__ void blocks_last_one(int* out, const int* in, int* state) {
  last_block<true>(out, in, state, &last_block_ticket);
}
__global__ void blocks_last_one_without_fence(int* out, const int* in, int* state) {
  last_block<false>(out, in, state, &unfenced_ticket);
}

__global__ void blocks_in_turn(int* out, const int* in, int* state) {
  in_turn<true>(out, in, state);
}
__global__ void blocks_in_turn_without_acquire(int* out, const int* in, int* state) {
  in_turn<false>(out, in, state);
}

}  // extern "C"
