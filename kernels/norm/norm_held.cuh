// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Slices of at most kAtOnce chunks a thread, each a single access: they stay in registers from load
// to store, so that threads issue little but their arithmetic, and a block needs no shared memory
// except for sums. A slice of one or two chunks for each lane of a warp is held by a quarter or
// half of one, so that four loads are in flight here too. Sums are added up in the order of
// norm_moments.cuh: which of the two has a slice, as alignment decides, changes no bit.
#pragma once

#include "kernels/norm/norm_moments.cuh"

namespace wide::kernels {

constexpr uint32_t kShortHeldThreads = 128;  ///< per block of slices held by parts of warps
constexpr uint32_t kShortHeldBlocks = 7;     ///< a multiprocessor: 72 registers a thread, no spill

/// The sum over a team; kParts to a warp: sums are those that as many lanes of a whole warp would
/// have, and are added to one another as these would be.
template <uint32_t kParts>
__device__ inline float sum_held(const float (&sums)[kParts], float* place, uint32_t threads) {
  if constexpr (kParts == 1) return sum_over_team(sums[0], place, threads);
  float value = kParts == 2 ? sums[0] + sums[kParts - 1]
                            : (sums[0] + sums[2 % kParts]) + (sums[1 % kParts] + sums[3 % kParts]);
#pragma unroll
  for (uint32_t distance = kWarp / kParts / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  return value;
}

/// A whole block: normalize_slices() of one round. slice_of(number): of single accesses.
template <class T, uint32_t kParts, class SliceOf, class FunctionOf>
__device__ inline void normalize_held_slices(const SliceAccess& access, const SliceOf& slice_of,
                                             const FunctionOf& function_of) {
  static_assert(kAtOnce == 4 && (kParts == 1 || kParts == 2 || kParts == 4));
  __shared__ SumPlaces places;
  const uint32_t threads = kParts > 1 ? kWarp / kParts : access.threads_per_slice;
  // Teams of more than a warp are whole blocks.
  const uint32_t place = threads <= kWarp ? threadIdx.x / threads : 0;
  const uint32_t number = blockIdx.x * access.slices_per_block + place;
  const NormSlice<T> slice = slice_of(number);
  const uint32_t end = slice.num_chunks();
  // Past the last slice a team takes part in the sums, but has no chunks.
  const uint32_t first = number < access.slices_per_row ? threadIdx.x - place * threads : end;
  Vec16<T> chunks[kAtOnce];
  slice.load(chunks, first, threads);

  SliceMoments m;
  m.count = static_cast<float>(slice.runs() * slice.length());
  float sums[kParts]{};
#pragma unroll
  for (uint32_t c = 0; c < kAtOnce; ++c) {  // zeros where there is none
#pragma unroll
    for (const T& value : chunks[c].v) sums[c % kParts] += to_float(value);
  }
  m.rough_mean = sum_held<kParts>(sums, places[0], threads) / m.count;

  float rests[kParts]{}, squares[kParts]{};
#pragma unroll
  for (uint32_t c = 0; c < kAtOnce; ++c) {
    if (first + c * threads >= end) break;
#pragma unroll
    for (const T& value : chunks[c].v) {
      const float d = to_float(value) - m.rough_mean;
      rests[c % kParts] += d;
      squares[c % kParts] += d * d;
    }
  }
  m.mean = sum_held<kParts>(rests, places[1], threads) / m.count;
  const float variance = sum_held<kParts>(squares, places[2], threads) / m.count - m.mean * m.mean;
  m.variance = variance < 0.0f ? 0.0f : variance;

  const auto f = function_of(number, slice, m, first == 0);
#pragma unroll
  for (uint32_t c = 0; c < kAtOnce; ++c) {
    const uint32_t chunk = first + c * threads;
    if (chunk < end) slice.store(chunk, f(chunk, chunks[c]));
  }
}

}  // namespace wide::kernels
