// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// pooling with channels last: y[b, i, j, c] = the largest or the mean of x[b, window(i), window(j),
// c], c over the contiguous channels of all members
//
// Plan: moving the bytes takes the time, and channels are moved in whole vectors of 16 bytes:
// neighbouring threads take neighbouring vectors of an output position, then those of the next
// position; members play no role. What overlapping windows share comes from the L1 and L2 caches,
// where the block's neighbours have left it. A window of many taps is divided over a team of
// threads, rows first, whose values are combined in shared memory as a tree: a team's size depends
// on a window's taps alone, and so the order of a sum on nothing else. Where addresses, strides or
// channels are not whole vectors, a thread takes single channels. Limits: 2^31 - 1 positions an
// image, as many blocks.
#include <algorithm>
#include <bit>

#include "kernels/arch/grid.cuh"
#include "kernels/common/launch.hpp"
#include "kernels/pooling/channel_vectors.cuh"
#include "kernels/pooling/pooling_dispatch.hpp"
#include "kernels/pooling/pooling_window.cuh"

namespace wide::kernels {

namespace {

constexpr int kThreads = kLastThreads;
constexpr int kBlocks = 4;  // per multiprocessor: by itself ptxas aims at five, and spills

/// Numbering of outputs, the fastest first, and of a team's threads.
struct Work {
  int64_t count = 0;  ///< vectors of all outputs
  Divisor vectors, columns, rows;
  int lanes_x = 1, lanes_y = 1;
  __host__ __device__ int team() const { return lanes_x * lanes_y; }
  __host__ __device__ int outputs_of_block() const { return kThreads / team(); }
};

template <int kVector>
__device__ ChannelPlace place_of(const Work& work, int64_t number) {
  ChannelPlace place;
  int64_t vector, column, row;
  const int64_t position = work.vectors.divide(number, vector);
  place.batch = work.rows.divide(work.columns.divide(position, column), row);
  place.channel = vector * kVector;
  place.column = static_cast<int>(column);
  place.row = static_cast<int>(row);
  return place;
}

template <PoolingMode kMode, int kVector>
__device__ void combine(Values<kVector>& values, const Values<kVector>& more) {
#pragma unroll
  for (int e = 0; e < kVector; ++e) values[e] = combined<kMode>(values[e], more[e]);
}

/// One thread's part of a window: every lanes_y-th row, of these every lanes_x-th position.
template <PoolingMode kMode, int kVector, class T>
__device__ void pool_part(const PoolingParams& p, const Work& work, const ChannelPlace& place,
                          const Taps& down, const Taps& across, int part, Values<kVector>& values) {
  const T* x = static_cast<const T*>(p.x) + place.offset(p.x_strides, down.first, across.first);
  const int64_t row_step = p.rows.dilation * p.x_strides.row;
  const int64_t column_step = p.columns.dilation * p.x_strides.column;
#pragma unroll 1
  for (int r = part / work.lanes_x; r < down.count; r += work.lanes_y) {
    Values<kVector> of_row;
#pragma unroll
    for (int e = 0; e < kVector; ++e) of_row[e] = nothing<kMode>();
#pragma unroll 4
    for (int c = part % work.lanes_x; c < across.count; c += work.lanes_x) {
      Values<kVector> tap;
      load_channels<kVector>(x + r * row_step + c * column_step, tap);
      combine<kMode, kVector>(of_row, tap);
    }
    combine<kMode, kVector>(values, of_row);
  }
}

template <PoolingMode kMode, class T, int kVector>
__global__ void __launch_bounds__(kThreads, kBlocks)
    pooling_last_kernel(const __grid_constant__ PoolingParams p,
                        const __grid_constant__ Work work) {
  __shared__ float shared[kVector][kThreads];
  const int outputs = work.outputs_of_block(), thread = static_cast<int>(threadIdx.x);
  const int part = thread / outputs;  // in the team: neighbours are neighbouring outputs
  const int64_t number = int64_t{blockIdx.x} * outputs + thread % outputs;
  const bool exists = number < work.count;
  const ChannelPlace place = place_of<kVector>(work, exists ? number : 0);
  const Taps down = taps_of<kMode>(p.rows, place.row, p.counts_padding);
  const Taps across = taps_of<kMode>(p.columns, place.column, p.counts_padding);
  Values<kVector> values;
#pragma unroll
  for (int e = 0; e < kVector; ++e) values[e] = nothing<kMode>();
  arch::follow_grid();
  if (exists) pool_part<kMode, kVector, T>(p, work, place, down, across, part, values);
  if (work.team() > 1) {
    for (int half = work.team() / 2; half > 0; half /= 2) {
      if (part >= half && part < 2 * half) {
#pragma unroll
        for (int e = 0; e < kVector; ++e) shared[e][thread] = values[e];
      }
      __syncthreads();
      if (part < half) {
        Values<kVector> other;
#pragma unroll
        for (int e = 0; e < kVector; ++e) other[e] = shared[e][thread + half * outputs];
        combine<kMode, kVector>(values, other);
      }
    }
  }
  if (!exists || part > 0) return;
  if constexpr (kMode != PoolingMode::max) {
    const float weight = static_cast<float>(down.weight) * static_cast<float>(across.weight);
#pragma unroll
    for (int e = 0; e < kVector; ++e) values[e] /= weight;
  }
  store_channels<kVector>(static_cast<T*>(p.y) + place.offset(p.y_strides, place.row, place.column),
                          values);
}

Work work_of(PoolingMode mode, const PoolingParams& p, int vector) {
  Work work;
  const int64_t vectors = p.num_members * p.channels / vector;
  work.count = p.batch * p.rows.out * p.columns.out * vectors;
  work.vectors = Divisor(vectors);
  work.columns = Divisor(p.columns.out);
  work.rows = Divisor(p.rows.out);
  const auto rows = static_cast<unsigned>(taps_along(mode, p.rows));
  const auto team = static_cast<unsigned>(pooling_last_team(mode, p));
  work.lanes_y = static_cast<int>(std::min(team, std::bit_floor(rows)));
  work.lanes_x = static_cast<int>(team) / work.lanes_y;
  return work;
}

template <PoolingMode kMode, class T, int kVector>
cudaError_t launch(const PoolingParams& p, cudaStream_t stream) {
  const Work work = work_of(kMode, p, kVector);
  const int64_t blocks = pooling_last_blocks(kMode, p, kVector);
  if (blocks > kMaxGridBlocks) return cudaErrorInvalidConfiguration;
  return launch_kernel(pooling_last_kernel<kMode, T, kVector>, static_cast<unsigned>(blocks),
                       kThreads, 0, stream, p, work);
}

template <PoolingMode kMode, class T>
cudaError_t launch(PoolingParams p, cudaStream_t stream) {
  p.rows.by_out = Divisor(p.rows.out);
  p.columns.by_out = Divisor(p.columns.out);
  return has_channel_vectors(p, sizeof(T)) ? launch<kMode, T, Vec16<T>::kSize>(p, stream)
                                           : launch<kMode, T, 1>(p, stream);
}

}  // namespace

cudaError_t launch_pooling_last(PoolingMode mode, Dtype dtype, const PoolingParams& p,
                                cudaStream_t stream) {
  if (p.batch * p.num_members * p.channels == 0) return cudaSuccess;
  return dispatch_pooling(
      mode, dtype, [&]<PoolingMode kMode, class T>() { return launch<kMode, T>(p, stream); });
}

}  // namespace wide::kernels
