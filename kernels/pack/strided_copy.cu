// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// destinations[p][i] = sources[p][i] for every index i of one shared shape.
// Plan: grid.y is the pair (64 at most), grid.x strides over the pair's elements in row-major
// order, four elements per thread and step, loaded before any is stored: neighbouring threads touch
// neighbouring elements of the innermost axis, which is contiguous on both sides in every packed
// layout. Axes that are contiguous on both sides are folded on the host first, so the index rarely
// takes more than two divisions, by reciprocals. Memory: no shared memory. Limits: none on sizes;
// all offsets are 64-bit.
#include "kernels/arch/grid.cuh"
#include "kernels/common/launch.hpp"
#include "kernels/pack/strided_copy.hpp"

#include <algorithm>

#include "kernels/common/divisor.hpp"

namespace wide::kernels {

namespace {

constexpr int kThreads = 256;
constexpr int kAtOnce = 4;  // elements per thread, all in flight at once
constexpr int kBlockElements = kThreads * kAtOnce;
constexpr int64_t kMaxBlocksPerPair = 1024;  // then each thread takes several times as many

/// Divisors by the axes' extents.
struct Divisors {
  Divisor by[kMaxCopyRank];
};

template <class Element>
__global__ void __launch_bounds__(kThreads)
    strided_copy_kernel(const __grid_constant__ StridedCopy copy,
                        const __grid_constant__ Divisors divisors, int64_t num_elements) {
  const auto* source = static_cast<const Element*>(copy.sources[blockIdx.y]);
  auto* destination = static_cast<Element*>(copy.destinations[blockIdx.y]);
  const int64_t step = int64_t{gridDim.x} * kBlockElements;
  arch::follow_grid();
  for (int64_t first = int64_t{blockIdx.x} * kBlockElements + threadIdx.x; first < num_elements;
       first += step) {
    Element values[kAtOnce];
    int64_t to[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      if (first + u * kThreads >= num_elements) break;
      int64_t rest = first + u * kThreads, from = 0;
      to[u] = 0;
#pragma unroll
      for (int axis = kMaxCopyRank - 1; axis >= 0; --axis) {
        if (axis < copy.rank) {
          int64_t index = rest;
          if (axis > 0) rest = divisors.by[axis].divide(rest, index);
          from += index * copy.source_strides[axis];
          to[u] += index * copy.destination_strides[axis];
        }
      }
      values[u] = source[from];
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      if (first + u * kThreads < num_elements) destination[to[u]] = values[u];
    }
  }
}

/// Joins every axis with the previous one where both sides step through them as through one.
void fold_axes(StridedCopy& copy) {
  int last = -1;  // the axis of the result that is being extended
  for (int axis = 0; axis < copy.rank; ++axis) {
    if (copy.extents[axis] == 1) continue;
    const bool joins =
        last >= 0 && copy.source_strides[last] == copy.source_strides[axis] * copy.extents[axis] &&
        copy.destination_strides[last] == copy.destination_strides[axis] * copy.extents[axis];
    const int64_t extent = copy.extents[axis] * (joins ? copy.extents[last] : 1);
    if (!joins) ++last;
    copy.extents[last] = extent;
    copy.source_strides[last] = copy.source_strides[axis];
    copy.destination_strides[last] = copy.destination_strides[axis];
  }
  copy.rank = last + 1;
}

bool can_widen(const StridedCopy& copy, int64_t factor) {
  const int inner = copy.rank - 1;
  if (inner < 0 || copy.source_strides[inner] != 1 || copy.destination_strides[inner] != 1 ||
      copy.extents[inner] % factor != 0) {
    return false;
  }
  for (int axis = 0; axis < inner; ++axis) {
    if (copy.source_strides[axis] % factor != 0 || copy.destination_strides[axis] % factor != 0) {
      return false;
    }
  }
  for (int pair = 0; pair < copy.num_pairs; ++pair) {
    if (reinterpret_cast<uintptr_t>(copy.sources[pair]) % 16 != 0 ||
        reinterpret_cast<uintptr_t>(copy.destinations[pair]) % 16 != 0) {
      return false;
    }
  }
  return true;
}

void widen(StridedCopy& copy) {
  const int64_t factor = 16 / copy.element_bytes;
  if (factor == 1 || !can_widen(copy, factor)) return;
  copy.extents[copy.rank - 1] /= factor;
  for (int axis = 0; axis < copy.rank - 1; ++axis) {
    copy.source_strides[axis] /= factor;
    copy.destination_strides[axis] /= factor;
  }
  copy.element_bytes = 16;
}

template <class Element>
cudaError_t launch(const StridedCopy& copy, int64_t num_elements, cudaStream_t stream) {
  const int64_t blocks =
      std::min((num_elements + kBlockElements - 1) / kBlockElements, kMaxBlocksPerPair);
  Divisors divisors;
  for (int axis = 0; axis < copy.rank; ++axis) divisors.by[axis] = Divisor(copy.extents[axis]);
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(copy.num_pairs));
  return launch_kernel(strided_copy_kernel<Element>, grid, kThreads, 0, stream, copy, divisors,
                       num_elements);
}

}  // namespace

cudaError_t launch_strided_copy(StridedCopy copy, cudaStream_t stream) {
  int64_t num_elements = 1;
  for (int axis = 0; axis < copy.rank; ++axis) num_elements *= copy.extents[axis];
  if (num_elements == 0 || copy.num_pairs == 0) return cudaSuccess;
  fold_axes(copy);
  const int narrow_bytes = copy.element_bytes;
  widen(copy);
  num_elements /= copy.element_bytes / narrow_bytes;
  switch (copy.element_bytes) {
    case 1:
      return launch<uint8_t>(copy, num_elements, stream);
    case 2:
      return launch<uint16_t>(copy, num_elements, stream);
    case 4:
      return launch<uint32_t>(copy, num_elements, stream);
    case 8:
      return launch<uint64_t>(copy, num_elements, stream);
    case 16:
      return launch<uint4>(copy, num_elements, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace wide::kernels
