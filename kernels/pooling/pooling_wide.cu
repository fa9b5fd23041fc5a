// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y[b, n, c, i, j] = the largest or the mean of x[b, n, c, window(i), window(j)]
//
// Plan: moving the bytes takes the time, and windows overlap or straddle the vectors in which
// memory is moved. So a block loads a tile of x into 16 KiB of shared memory, as many whole
// images as fit, or a band of one, or a piece of its rows: each element is requested once, except
// for the rows that bands share. What is contiguous is one run (staged_runs.cuh): all images of a
// packed tile, the rows of an image, or a row. Outputs are numbered in y's order, from a whole
// sector on; a thread takes one, or a team of lanes where an output has so many inputs of its own
// that there would not be work for all, and then y is collected in shared memory. Small windows in
// rows that allow it are taken by threads in groups of neighbours, whose inputs are vectors
// (pooling_vectors.cuh). Images of up to 4096 elements that are one window each take a
// warp or a part of one (pooling_whole.cuh). A window that no tile can hold takes a block, whose
// threads take every 256th of its elements. Which case applies, and so the order of a sum, depends
// on a member's sizes alone; groups add in the order of single outputs. Limits: 2^31 - 1 positions
// an image.
#include "kernels/arch/grid.cuh"
#include "kernels/common/launch.hpp"
#include "kernels/pooling/pooling_cut.hpp"
#include "kernels/pooling/pooling_dispatch.hpp"
#include "kernels/pooling/pooling_tile.cuh"
#include "kernels/pooling/pooling_vectors.cuh"
#include "kernels/pooling/pooling_whole.cuh"

namespace wide::kernels {

namespace {

constexpr int kThreads = kPoolingThreads;
// Of a multiprocessor: all of its threads.
#if defined(__CUDA_ARCH__) && \
    ((__CUDA_ARCH__ > 800 && __CUDA_ARCH__ < 900) || __CUDA_ARCH__ >= 1100)
constexpr int kResidentBlocks = 1536 / kThreads;
#else
constexpr int kResidentBlocks = 2048 / kThreads;
#endif
constexpr int kWarp = 32;

/// The value of a team's output, in all its lanes; the whole warp takes part, whether or not the
/// output exists.
template <PoolingMode kMode, class T>
__device__ float pool_window(const PoolingParams& p, const Cut& cut, const Tile& tile,
                             const Inputs<T, PoolingParams>& inputs, const Output& output,
                             bool exists) {
  const int lane = static_cast<int>(threadIdx.x) & (cut.lanes_x * cut.lanes_y - 1);
  const int lane_x = lane & (cut.lanes_x - 1), lane_y = lane / cut.lanes_x;
  float value = nothing<kMode>(), weight = 1.0f;
  if (exists) {
    const Taps down = taps_of<kMode>(p.rows, tile.row + output.row, p.counts_padding);
    const Taps across = taps_of<kMode>(p.columns, tile.column + output.column, p.counts_padding);
    for (int r = lane_y; r < down.count; r += cut.lanes_y) {
      const T* from = inputs.at(output.image, down.first + r * p.rows.dilation, across.first);
      float of_row = nothing<kMode>();
      for (int c = lane_x; c < across.count; c += cut.lanes_x) {
        of_row = combined<kMode>(of_row, to_float(from[c * p.columns.dilation]));
      }
      value = combined<kMode>(value, of_row);
    }
    weight = static_cast<float>(down.weight) * static_cast<float>(across.weight);
  }
  value = combined_lanes<kMode>(value, cut.lanes_x * cut.lanes_y);
  return kMode == PoolingMode::max ? value : value / weight;
}

/// Pools, or writes what teams have pooled.
template <PoolingMode kMode, class T>
__device__ void write_outputs(const PoolingParams& p, const Cut& cut, const Tile& tile,
                              const Inputs<T, PoolingParams>& inputs, const T* results) {
  const int outputs = tile.images * cut.rows * cut.columns;
  int number = first_number(Output(cut, 0).y<T>(p, cut, tile));
  for (Output output(cut, number); number < outputs; number += kThreads, output.advance(cut)) {
    if (!output.exists(tile)) continue;
    *output.y<T>(p, cut, tile) =
        cut.lanes_x * cut.lanes_y > 1
            ? results[number]
            : from_float<T>(pool_window<kMode>(p, cut, tile, inputs, output, true));
  }
}

/// Windows of kKernel taps along a row, of as many rows or of one, where a tile's inputs and its
/// outputs are one run each: almost all the work is to load and to combine.
template <PoolingMode kMode, int kKernel, class T>
__device__ void pool_runs(const PoolingParams& p, const Cut& cut, const Tile& tile,
                          const Inputs<T, PoolingParams>& inputs) {
  T* const y = Output(cut, 0).y<T>(p, cut, tile);
  const T* const x = inputs.at(0, tile.in_row, tile.in_column);
  const int outputs = (cut.bands == 1 ? tile.images * cut.rows : tile.rows) * cut.columns;
  int number = first_number(y);
  for (Output output(cut, number); number < outputs; number += kThreads, output.advance(cut)) {
    const int row = (tile.row + output.row) * p.rows.stride - p.rows.padding;
    const int column = output.column * p.columns.stride - p.columns.padding;
    const int in_row = output.image * tile.in_rows + row - tile.in_row;
    const T* from = x + in_row * tile.in_columns + column;
    float value = nothing<kMode>();
#pragma unroll
    for (int r = 0; r < kKernel; ++r) {
      if (r > 0 && p.rows.kernel == 1) break;
      const bool has_row = static_cast<unsigned>(row + r) < static_cast<unsigned>(p.rows.in);
      float of_row = nothing<kMode>();
#pragma unroll
      for (int c = 0; c < kKernel; ++c) {
        const bool exists =
            has_row && static_cast<unsigned>(column + c) < static_cast<unsigned>(p.columns.in);
        if (exists) of_row = combined<kMode>(of_row, to_float(from[c]));
      }
      value = combined<kMode>(value, of_row);
      from += tile.in_columns;
    }
    if constexpr (kMode != PoolingMode::max) {
      const Taps down = taps_of<kMode>(p.rows, tile.row + output.row, p.counts_padding);
      const Taps across = taps_of<kMode>(p.columns, output.column, p.counts_padding);
      value /= static_cast<float>(down.weight) * static_cast<float>(across.weight);
    }
    y[number] = from_float<T>(value);
  }
}

/// Divides the sums of a group.
template <class Group>
__device__ void make_means(const PoolingParams& p, const Cut& cut, int row, int column,
                           Vector<float, Group::kOutputs>& values) {
  const Taps down = taps_of<PoolingMode::average>(p.rows, row, p.counts_padding);
#pragma unroll
  for (int i = 0; i < Group::kOutputs; ++i) {
    if (Group::kKernel == 2 && cut.has_full_windows) {  // the same number as by division
      values.v[i] *= p.rows.kernel == 1 ? 0.5f : 0.25f;
    } else {
      const Taps across = taps_of<PoolingMode::average>(p.columns, column + i, p.counts_padding);
      values.v[i] /= static_cast<float>(down.weight) * static_cast<float>(across.weight);
    }
  }
}

/// The same as pool_runs() by groups of neighbours (pooling_vectors.cuh); x: the tile's inputs.
template <PoolingMode kMode, class Group, class T>
__device__ void pool_groups(const PoolingParams& p, const Cut& cut, const Tile& tile, const T* x) {
  constexpr int kOutputs = Group::kOutputs;
  T* const y = Output(cut, 0).y<T>(p, cut, tile);
  const int groups = (cut.bands == 1 ? tile.images * cut.rows : tile.rows) * cut.across;
  int number = first_number<kOutputs>(y);
  for (Output output(cut, number); number < groups; number += kThreads, output.advance(cut)) {
    const int out_row = tile.row + output.row;
    const GroupPlace<T> place{x + (output.image * tile.in_rows - tile.in_row) * p.columns.in,
                              out_row * p.rows.stride - p.rows.padding,
                              output.column * Group::kVector,
                              p.rows.kernel > 1 && p.rows.stride == 2 && output.row % 2 != 0};
    Vector<T, kOutputs> results;
    if constexpr (kMode == PoolingMode::max) {
      results = largest_of<Group>(p, place);
    } else {
      auto values = sums_of<Group>(p, place);
      make_means<Group>(p, cut, out_row, output.column * kOutputs, values);
#pragma unroll
      for (int i = 0; i < kOutputs; ++i) results.v[i] = from_float<T>(values.v[i]);
    }
    results.store(y + number * kOutputs);
  }
}

/// pool_groups() of the groups that Cutter finds.
template <PoolingMode kMode, int kVector, class T>
__device__ void pool_vectors(const PoolingParams& p, const Cut& cut, const Tile& tile, const T* x) {
  const auto pool = [&]<int kKernel, int kStride, int kPadding>() {
    pool_groups<kMode, WindowGroup<kKernel, kStride, kPadding, kVector>>(p, cut, tile, x);
  };
  const bool is_padded = p.columns.padding > 0;
  if (cut.unrolled == 2) return pool.template operator()<2, 2, 0>();
  if (p.columns.stride == 2 && is_padded) return pool.template operator()<3, 2, 1>();
  if (p.columns.stride == 2) return pool.template operator()<3, 2, 0>();
  return pool.template operator()<3, 1, 1>();
}

template <PoolingMode kMode, class T>
__global__ void __launch_bounds__(kThreads)
    pooling_kernel(const __grid_constant__ PoolingParams p, const __grid_constant__ Cut cut) {
  extern __shared__ uint4 shared[];
  auto* kept = reinterpret_cast<T*>(shared);
  auto* starts = reinterpret_cast<int*>(kept + cut.runs * cut.pitch);
  auto* results = reinterpret_cast<T*>(starts + cut.runs);
  const Tile tile = tile_of<kMode>(p, cut);
  const Inputs<T, PoolingParams> inputs(p, cut, tile, kept, starts);
  arch::follow_grid();
  inputs.load();
  __syncthreads();

  if constexpr (kMode != PoolingMode::adaptive_average) {
    if (cut.unrolled == 2) return pool_runs<kMode, 2>(p, cut, tile, inputs);
    if (cut.unrolled == 3) return pool_runs<kMode, 3>(p, cut, tile, inputs);
  }
  const int lanes = cut.lanes_x * cut.lanes_y;
  if (lanes > 1) {  // one team per output
    const int outputs = tile.images * cut.rows * cut.columns;
    const int thread = static_cast<int>(threadIdx.x);
    for (int first = 0; first < outputs; first += kThreads / lanes) {
      const int number = first + thread / lanes;
      const Output output(cut, number);
      const bool exists = number < outputs && output.exists(tile);
      const float value = pool_window<kMode>(p, cut, tile, inputs, output, exists);
      if (exists && thread % lanes == 0) results[number] = from_float<T>(value);
    }
    __syncthreads();
  }
  write_outputs<kMode>(p, cut, tile, inputs, results);
}

/// Tiles of one run whose windows are taken in groups.
template <PoolingMode kMode, class T>
__global__ void __launch_bounds__(kThreads, kResidentBlocks)
    pooling_groups_kernel(const __grid_constant__ PoolingParams p,
                          const __grid_constant__ Cut cut) {
  extern __shared__ uint4 shared[];
  auto* kept = reinterpret_cast<T*>(shared);
  const Tile tile = tile_of<kMode>(p, cut);
  const Inputs<T, PoolingParams> inputs(p, cut, tile, kept, nullptr);
  arch::follow_grid();
  const T* const x = inputs.load_one();
  __syncthreads();
  constexpr int kWide = wide_vector(kMode, Vec16<T>::kSize);
  if (cut.vector == kWide) {
    pool_vectors<kMode, kWide>(p, cut, tile, x);
  } else {
    pool_vectors<kMode, 2>(p, cut, tile, x);
  }
}

/// Windows that no tile can hold, or with enough inputs each to occupy a block.
template <PoolingMode kMode, class T>
__global__ void __launch_bounds__(kThreads)
    pooling_long_kernel(const __grid_constant__ PoolingParams p, const __grid_constant__ Cut cut) {
  __shared__ float shared[kThreads / kWarp];
  const int64_t rows = int64_t{blockIdx.x} / p.columns.out, image = rows / p.rows.out;
  const auto column = static_cast<int>(int64_t{blockIdx.x} - rows * p.columns.out);
  const auto row = static_cast<int>(rows - image * p.rows.out);
  const Taps down = taps_of<kMode>(p.rows, row, p.counts_padding);
  const Taps across = taps_of<kMode>(p.columns, column, p.counts_padding);
  const T* x = static_cast<const T*>(p.x) + image_offset(cut, p.x_strides, image) +
               down.first * p.x_strides.row + across.first;
  const int64_t row_step = p.rows.dilation * p.x_strides.row;
  arch::follow_grid();

  constexpr int kAtOnce = 8, kStretch = 4096 / kAtOnce;
  const int taps = down.count * across.count, width = max(across.count, 1);
  const int thread = static_cast<int>(threadIdx.x);
  int r = thread / width, c = thread % width;
  float value = nothing<kMode>(), of_stretch = nothing<kMode>();
  int rounds = 0;
  for (int first = thread; first < taps; first += kAtOnce * kThreads) {
    float values[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const bool exists = first + u * kThreads < taps;
      values[u] = exists ? to_float(x[r * row_step + c * p.columns.dilation]) : nothing<kMode>();
      r += kThreads / width;
      c += kThreads % width;
      if (c >= width) {
        c -= width;
        ++r;
      }
    }
#pragma unroll
    for (int half = kAtOnce / 2; half > 0; half /= 2) {
#pragma unroll
      for (int u = 0; u < half; ++u) values[u] = combined<kMode>(values[u], values[u + half]);
    }
    of_stretch = combined<kMode>(of_stretch, values[0]);
    if (++rounds % kStretch == 0) {  // a single sum would drift
      value = combined<kMode>(value, of_stretch);
      of_stretch = nothing<kMode>();
    }
  }
  value = combined<kMode>(value, of_stretch);
  value = combined_lanes<kMode>(value, kWarp);
  if (thread % kWarp == 0) shared[thread / kWarp] = value;
  __syncthreads();
  if (thread >= kWarp) return;
  value = thread < kThreads / kWarp ? shared[thread] : nothing<kMode>();
  value = combined_lanes<kMode>(value, kWarp);
  if (thread > 0) return;
  const float weight = static_cast<float>(down.weight) * static_cast<float>(across.weight);
  static_cast<T*>(p.y)[image_offset(cut, p.y_strides, image) + row * p.y_strides.row + column] =
      from_float<T>(kMode == PoolingMode::max ? value : value / weight);
}

template <PoolingMode kMode, class T>
cudaError_t launch(PoolingParams p, cudaStream_t stream) {
  p.rows.by_out = Divisor(p.rows.out);
  p.columns.by_out = Divisor(p.columns.out);
  Cutter cutter(kMode, p, Vec16<T>::kSize);
  const Cut cut = cutter.cut();
  const bool is_long = cutter.is_long();
  const int64_t blocks = pooling_blocks(p, cut, is_long);
  if (blocks > kMaxGridBlocks) return cudaErrorInvalidConfiguration;
  const auto grid = static_cast<unsigned>(blocks);
  if (cut.whole_lanes > 0) {
    // A mean is the same, whatever its windows are called.
    constexpr PoolingMode kOwn = kMode == PoolingMode::max ? kMode : PoolingMode::average;
    return launch_kernel(pooling_whole_kernel<kOwn, T>, grid, kThreads, 0, stream, p, cut);
  }
  if (is_long) {
    return launch_kernel(pooling_long_kernel<kMode, T>, grid, kThreads, 0, stream, p, cut);
  }
  const int results = cut.lanes() > 1 ? cut.images * cut.rows * cut.columns : 0;
  const size_t bytes = static_cast<size_t>(cut.runs * cut.pitch + results) * sizeof(T) +
                       static_cast<size_t>(cut.runs) * sizeof(int);
  if constexpr (kMode != PoolingMode::adaptive_average) {
    if (cut.vector > 0) {
      return launch_kernel(pooling_groups_kernel<kMode, T>, grid, kThreads, bytes, stream, p, cut);
    }
  }
  return launch_kernel(pooling_kernel<kMode, T>, grid, kThreads, bytes, stream, p, cut);
}

}  // namespace

cudaError_t launch_pooling_wide(PoolingMode mode, Dtype dtype, const PoolingParams& p,
                                cudaStream_t stream) {
  if (p.batch * p.num_members * p.channels == 0) return cudaSuccess;
  return dispatch_pooling(
      mode, dtype, [&]<PoolingMode kMode, class T>() { return launch<kMode, T>(p, stream); });
}

}  // namespace wide::kernels
