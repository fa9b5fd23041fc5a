// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A GEMM as it is written for Hopper: a producer thread brings tiles in by the tensor memory
// accelerator, a warpgroup multiplies them by wgmma, mbarriers hand the stages back and forth, and
// the result leaves by a bulk store. Right for kBug = 0, with one planted bug for every other
// value; and a hand-off between blocks through a counter. verify/simulator/simt_planted_test.cpp
// says what must be found.
#include <cuda_bf16.h>

#include <cstdint>

#include "kernels/arch/barrier.cuh"
#include "kernels/arch/fence.cuh"
#include "kernels/arch/mbarrier.cuh"
#include "kernels/arch/tma.cuh"
#include "kernels/arch/wgmma.cuh"

namespace wide::planted {

using Element = __nv_bfloat16;
constexpr int kTile = 64, kStep = 64, kStages = 2;
constexpr int kTileBytes = kTile * kStep * 2;

struct alignas(1024) Storage {
  char a[kStages][kTileBytes], b[kStages][kTileBytes];
  char c[kTileBytes];
  uint64_t full[kStages], empty[kStages];
};

/// Of the 128 consumers alone: the producer's warp has left.
__device__ inline void consumer_barrier() {
  kernels::arch::named_barrier_sync(1, 128);
}

template <int kBug>
__device__ void produce(Storage& s, const CUtensorMap& a, const CUtensorMap& b, int steps) {
  using namespace kernels::arch;
  for (int step = 0; step < steps; ++step) {
    const int stage = step % kStages;
    // 1: never waits until a stage is free; 2: waits for the wrong phase.
    const uint32_t parity = (static_cast<uint32_t>(step / kStages) & 1) ^ (kBug == 2 ? 0 : 1);
    if (kBug != 1) mbarrier_wait(&s.empty[stage], parity);
    const uint32_t bytes = kBug == 3   ? kTileBytes
                           : kBug == 4 ? 3 * kTileBytes
                                       : 2 * kTileBytes;  // 3, 4: wrong bytes
    mbarrier_arrive_expect_bytes(&s.full[stage], bytes);
    load_tile(s.a[stage], a, &s.full[stage], step * kStep, static_cast<int>(blockIdx.y) * kTile);
    load_tile(s.b[stage], b, &s.full[stage], step * kStep, static_cast<int>(blockIdx.x) * kTile);
  }
}

/// Rows of 128 bytes of k, permuted as the tensor map does.
__device__ inline uint64_t descriptor(const char* tile) {
  return kernels::arch::operand_descriptor(tile, 16, 1024,
                                           kernels::arch::OperandSwizzle::bytes_128);
}

template <int kBug>
__device__ void consume(Storage& s, float (&sums)[32], int steps) {
  using namespace kernels::arch;
  for (int step = 0; step < steps; ++step) {
    const int stage = step % kStages;
    if (kBug != 5)
      mbarrier_wait(&s.full[stage], static_cast<uint32_t>(step / kStages) & 1);  // 5: never waits
    if (kBug != 6) wgmma_fence();                                                // 6: no fence
    for (int k = 0; k < kStep * 2; k += 32) {
      const uint32_t advance = kBug == 7 ? 0 : k;  // 7: always the same 16 values of k
      wgmma<Element>(sums, advance_descriptor(descriptor(s.a[stage]), advance),
                     advance_descriptor(descriptor(s.b[stage]), advance), step > 0 || k > 0);
    }
    wgmma_commit();
    if (kBug == 8) mbarrier_arrive(&s.empty[stage]);  // 8: gives the stage back while it is read
    if (kBug == 9 && step == steps - 1) break;        // 9: reads the sums without waiting
    wgmma_wait<0>();
    if (kBug != 8) mbarrier_arrive(&s.empty[stage]);
  }
}

/// Thread t holds rows t / 32 * 16 + t % 32 / 4 (+ 8), columns t % 4 * 2 (+ 1) of every eight.
template <int kBug>
__device__ void store(Storage& s, const CUtensorMap& c, const float (&sums)[32]) {
  using namespace kernels::arch;
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = 0; i < 32; i += 2) {
    const int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8,
              column = i / 4 * 8 + thread % 4 * 2;
    const __nv_bfloat162 pair = __floats2bfloat162_rn(sums[i], sums[i + 1]);
    *reinterpret_cast<__nv_bfloat162*>(s.c + (row * kTile + column) * 2) = pair;
  }
  if (kBug != 10) fence_proxy_async();  // 10: the accelerator may not see these stores
  consumer_barrier();
  if (thread == 0) {
    store_tile(c, s.c, static_cast<int>(blockIdx.x) * kTile, static_cast<int>(blockIdx.y) * kTile);
    commit_stores();
    if (kBug != 11) wait_stores_read<0>();  // 11: the block ends while its tile is read
  }
}

template <int kBug>
__global__ void __launch_bounds__(160, 1)
    gemm_sm90(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
              const __grid_constant__ CUtensorMap c, int k) {
  using namespace kernels::arch;
  extern __shared__ __align__(1024) char memory[];
  Storage& s = *reinterpret_cast<Storage*>(memory);
  const int thread = static_cast<int>(threadIdx.x), steps = (k + kStep - 1) / kStep;
  if (thread == 0) {
    for (int i = 0; i < kStages; ++i) {
      mbarrier_init(&s.full[i], 1);
      mbarrier_init(&s.empty[i], kBug == 12 ? 96 : 128);  // 12: does not wait for one warp
    }
    if (kBug != 13) fence_mbarrier_init();  // 13: the accelerator may not see the barriers
  }
  if (kBug != 14) __syncthreads();  // 14: others use the barriers before they are made
  if (thread >= 128) {
    if (thread == 128) produce<kBug>(s, a, b, steps);
    return;
  }
  float sums[32];
  consume<kBug>(s, sums, steps);
  store<kBug>(s, c, sums);
}

// ---- two blocks: the first writes a value, the second waits for the counter and reads it

template <int kBug>
__global__ void hand_off(float* values, unsigned* counter, float* out) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 1) {
    values[0] = 42.0f;
    if (kBug != 15) __threadfence();  // 15: nothing orders the value before the counter
    atomicAdd(counter, 1u);
    return;
  }
  while (atomicAdd(counter, 0u) == 0) __nanosleep(100);
  if (kBug != 16) __threadfence();  // 16: nothing orders the counter before the value
  out[0] = values[0];
}

template __global__ void gemm_sm90<0>(const __grid_constant__ CUtensorMap,
                                      const __grid_constant__ CUtensorMap,
                                      const __grid_constant__ CUtensorMap, int);
template __global__ void gemm_sm90<1>(const __grid_constant__ CUtensorMap,
                                      const __grid_constant__ CUtensorMap,
                                      const __grid_constant__ CUtensorMap, int);
template __global__ void gemm_sm90<2>(const __grid_constant__ CUtensorMap,
                                      const __grid_constant__ CUtensorMap,
                                      const __grid_constant__ CUtensorMap, int);
template __global__ void gemm_sm90<3>(const __grid_constant__ CUtensorMap,
                                      const __grid_constant__ CUtensorMap,
                                      const __grid_constant__ CUtensorMap, int);
template __global__ void gemm_sm90<4>(const __grid_constant__ CUtensorMap,
                                      const __grid_constant__ CUtensorMap,
                                      const __grid_constant__ CUtensorMap, int);
template __global__ void gemm_sm90<5>(const __grid_constant__ CUtensorMap,
                                      const __grid_constant__ CUtensorMap,
                                      const __grid_constant__ CUtensorMap, int);
template __global__ void gemm_sm90<6>(const __grid_constant__ CUtensorMap,
                                      const __grid_constant__ CUtensorMap,
                                      const __grid_constant__ CUtensorMap, int);
template __global__ void gemm_sm90<7>(const __grid_constant__ CUtensorMap,
                                      const __grid_constant__ CUtensorMap,
                                      const __grid_constant__ CUtensorMap, int);
template __global__ void gemm_sm90<8>(const __grid_constant__ CUtensorMap,
                                      const __grid_constant__ CUtensorMap,
                                      const __grid_constant__ CUtensorMap, int);
template __global__ void gemm_sm90<9>(const __grid_constant__ CUtensorMap,
                                      const __grid_constant__ CUtensorMap,
                                      const __grid_constant__ CUtensorMap, int);
template __global__ void gemm_sm90<10>(const __grid_constant__ CUtensorMap,
                                       const __grid_constant__ CUtensorMap,
                                       const __grid_constant__ CUtensorMap, int);
template __global__ void gemm_sm90<11>(const __grid_constant__ CUtensorMap,
                                       const __grid_constant__ CUtensorMap,
                                       const __grid_constant__ CUtensorMap, int);
template __global__ void gemm_sm90<12>(const __grid_constant__ CUtensorMap,
                                       const __grid_constant__ CUtensorMap,
                                       const __grid_constant__ CUtensorMap, int);
template __global__ void gemm_sm90<13>(const __grid_constant__ CUtensorMap,
                                       const __grid_constant__ CUtensorMap,
                                       const __grid_constant__ CUtensorMap, int);
template __global__ void gemm_sm90<14>(const __grid_constant__ CUtensorMap,
                                       const __grid_constant__ CUtensorMap,
                                       const __grid_constant__ CUtensorMap, int);
template __global__ void hand_off<0>(float*, unsigned*, float*);
template __global__ void hand_off<15>(float*, unsigned*, float*);
template __global__ void hand_off<16>(float*, unsigned*, float*);

}  // namespace wide::planted
