// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Stages runs of equal length in shared memory. A run is contiguous in global memory and may begin
// anywhere: it keeps its offset within 16 bytes, so that all but its ends moves 16 bytes at a time;
// cp.async may read fewer for the last piece. Threads then access elements there in any pattern,
// whatever the alignment.
#pragma once

#include <cstdint>

#include "kernels/arch/cp_async.cuh"
#include "kernels/common/divisor.hpp"
#include "kernels/common/numeric.cuh"

namespace wide::kernels {

/// Layout of runs in shared memory.
struct StagedRuns {
  int pitch = 0;  ///< elements between runs, whole chunks of 16 bytes
  Divisor32 by_chunks;
};

/// For runs of `length` elements, with `size` elements in 16 bytes.
constexpr int64_t staged_pitch(int64_t length, int64_t size) {
  return (length + 2 * size - 2) / size * size;
}
inline StagedRuns staged_runs(int64_t pitch, int64_t size) {
  return {static_cast<int>(pitch), Divisor32(static_cast<int>(pitch / size))};
}

/// The offset of an address, in elements, within its 16 bytes.
template <class T>
__device__ inline int phase_of(const T* address) {
  return static_cast<int>(reinterpret_cast<uintptr_t>(address) / sizeof(T) % Vec16<T>::kSize);
}

/// The threads that move runs together.
struct StagingTeam {
  int thread, threads;
};

/// Starts copying `runs` runs of `length` elements to `kept`, element 0 of each at its phase_of.
/// address_of(run): where it begins; null: it is skipped. The team may read them after
/// cp_async_wait and a barrier.
template <class T, class AddressOf>
__device__ inline void bring_runs(T* kept, const StagedRuns& cut, int runs, int length,
                                  const StagingTeam& team, const AddressOf& address_of) {
  constexpr int kSize = Vec16<T>::kSize;
  const int chunks = cut.pitch / kSize;
  for (int i = team.thread; i < runs * chunks; i += team.threads) {
    int chunk;
    const int run = cut.by_chunks.divide(i, chunk);
    const T* from = address_of(run);
    const int first = chunk * kSize - phase_of(from), count = min(length - first, kSize);
    if (from == nullptr || first < 0 || count <= 0) continue;
    arch::cp_async_16(kept + run * cut.pitch + chunk * kSize, from + first,
                      count * static_cast<int>(sizeof(T)));
  }
  arch::cp_async_commit();
  for (int i = team.thread; i < runs * kSize; i += team.threads) {
    const int run = i / kSize;
    const T* from = address_of(run);
    const int phase = phase_of(from), element = i % kSize - phase;
    if (from == nullptr || phase == 0 || element < 0 || element >= length) continue;
    kept[run * cut.pitch + phase + element] = from[element];
  }
}

/// Writes runs: value_of(run, phase, element) is one value, vector_of() 16 bytes of values; phase:
/// the run's.
template <class T, class AddressOf, class ValueOf, class VectorOf>
__device__ inline void write_runs_of(const StagedRuns& cut, int runs, int length,
                                     const StagingTeam& team, const AddressOf& address_of,
                                     const ValueOf& value_of, const VectorOf& vector_of) {
  constexpr int kSize = Vec16<T>::kSize;
  const int chunks = cut.pitch / kSize;
  for (int i = team.thread; i < runs * chunks; i += team.threads) {
    int chunk;
    const int run = cut.by_chunks.divide(i, chunk);
    T* to = address_of(run);
    const int phase = phase_of(to), first = chunk * kSize - phase;
    if (first < 0 || first + kSize > length) continue;
    store_vec16(to + first, vector_of(run, phase, first));
  }
  for (int i = team.thread; i < runs * 2 * kSize; i += team.threads) {
    const int run = i / (2 * kSize), place = i % kSize;
    T* to = address_of(run);
    const int phase = phase_of(to), last_chunk = (phase + length) / kSize;
    const bool is_head = i % (2 * kSize) < kSize;
    // A chunk that is both ends counts as the head.
    const bool is_taken = is_head ? phase > 0 || last_chunk == 0 : last_chunk > 0;
    const int element = (is_head ? 0 : last_chunk * kSize) + place - phase;
    if (is_taken && element >= 0 && element < length) to[element] = value_of(run, phase, element);
  }
}

/// Writes `kept`, laid out as if bring_runs() had read it from address_of(run).
template <class T, class AddressOf>
__device__ inline void write_runs(const T* kept, const StagedRuns& cut, int runs, int length,
                                  const StagingTeam& team, const AddressOf& address_of) {
  write_runs_of<T>(
      cut, runs, length, team, address_of,
      [&](int run, int phase, int element) { return kept[run * cut.pitch + phase + element]; },
      [&](int run, int phase, int element) {
        return load_vec16(kept + run * cut.pitch + phase + element);
      });
}

}  // namespace wide::kernels
