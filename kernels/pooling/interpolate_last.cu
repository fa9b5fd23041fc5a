// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// interpolate with channels last: y[b, i, j, c] = x[b, .., .., c] between its rows and columns, c
// over the contiguous channels of all members (wide/interpolate.hpp)
//
// Plan: moving the bytes takes the time, and channels are moved in whole vectors of 16 bytes:
// neighbouring threads take neighbouring vectors of an output position, then those of the next
// position; members play no role. A thread goes down some rows of outputs and keeps the two rows of
// x that they lie between, so that an upsampled image takes two loads for several outputs; what
// neighbouring columns share comes from the L1 cache. Of few outputs a thread has fewer rows, down
// to one: then there are more threads. Where addresses, strides or channels are not whole vectors,
// a thread takes single channels. The bits are those of channels first. Limits: 2^31 - 1 positions
// an image, as many blocks.
#include "kernels/arch/grid.cuh"
#include "kernels/common/dispatch.hpp"
#include "kernels/common/grid_blocks.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/pooling/channel_vectors.cuh"
#include "kernels/pooling/interpolate_last_rows.hpp"
#include "kernels/pooling/interpolate_tap.cuh"
#include "kernels/pooling/interpolate_wide.hpp"

namespace wide::kernels {

namespace {

constexpr int kThreads = kInterpolateLastThreads;

/// Numbering of threads, the fastest first.
struct Work {
  int64_t count = 0;
  int rows = 1;  ///< of outputs, of a thread
  Divisor vectors, columns, parts;
};

template <class T, int kVector>
__global__ void __launch_bounds__(kThreads)
    interpolate_last_kernel(const __grid_constant__ InterpolateParams p,
                            const __grid_constant__ Work work) {
  const int64_t number = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const bool exists = number < work.count;
  int64_t vector, column, part;
  ChannelPlace place;
  const int64_t position = work.vectors.divide(exists ? number : 0, vector);
  place.batch = work.parts.divide(work.columns.divide(position, column), part);
  place.channel = vector * kVector;
  place.column = static_cast<int>(column);
  place.row = static_cast<int>(part) * work.rows;
  const LinearTap across = tap_of(p.columns, place.column);
  const bool has_right = across.weight > 0.0f;
  const T* const left = static_cast<const T*>(p.x) + place.offset(p.x_strides, 0, across.first);
  T* y = static_cast<T*>(p.y) + place.offset(p.y_strides, place.row, place.column);
  arch::follow_grid();
  if (!exists) return;
  go_down<kVector>(
      place.row, min(place.row + work.rows, p.rows.out),
      [&](int row) { return tap_of(p.rows, row); },
      [&](Values<kVector>& values, int row) {
        Values<kVector> others;
        load_channels<kVector>(left + row * p.x_strides.row, values);
        load_channels_if<kVector>(left + row * p.x_strides.row + p.x_strides.column, has_right,
                                  others);
#pragma unroll
        for (int e = 0; e < kVector; ++e) {
          values[e] = between(values[e], others[e], across.weight);
        }
      },
      [&](const Values<kVector>& values) {
        store_channels<kVector>(y, values);
        y += p.y_strides.row;
      });
}

template <class T, int kVector>
cudaError_t launch(const InterpolateParams& p, cudaStream_t stream) {
  const int64_t blocks = interpolate_last_blocks(p, kVector);
  if (blocks > kMaxGridBlocks) return cudaErrorInvalidConfiguration;
  Work work;
  work.count = interpolate_last_threads(p, kVector);
  work.rows = interpolate_last_rows(p, kVector);
  work.vectors = Divisor(p.num_members * p.channels / kVector);
  work.columns = Divisor(p.columns.out);
  work.parts = Divisor((p.rows.out - 1) / work.rows + 1);
  return launch_kernel(interpolate_last_kernel<T, kVector>, static_cast<unsigned>(blocks), kThreads,
                       0, stream, p, work);
}

template <class T>
cudaError_t launch(InterpolateParams p, cudaStream_t stream) {
  p.rows.by_parts = Divisor(p.rows.parts);
  p.columns.by_parts = Divisor(p.columns.parts);
  return has_channel_vectors(p, sizeof(T)) ? launch<T, Vec16<T>::kSize>(p, stream)
                                           : launch<T, 1>(p, stream);
}

}  // namespace

cudaError_t launch_interpolate_last(Dtype dtype, const InterpolateParams& p, cudaStream_t stream) {
  if (p.batch * p.num_members * p.channels == 0) return cudaSuccess;
  return dispatch_float(dtype,
                        [&]<class T>(std::type_identity<T>) { return launch<T>(p, stream); });
}

}  // namespace wide::kernels
