// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y[b, n, c, i, j] = x[b, n, c, .., ..] between its rows and columns (wide/interpolate.hpp)
//
// Plan: moving the bytes takes the time, and neighbouring outputs share inputs, which do not lie in
// the vectors in which memory is moved. So a block loads a tile of x into 16 KiB of shared memory,
// as pooling does (tile_cut.hpp), and finds each row's and column's neighbours and weights there
// once. A thread then has four neighbouring outputs and goes down some rows: it keeps the two rows
// of x, already between columns, that its outputs lie between, so that an upsampled image takes one
// new input for several outputs. Where y's rows are not whole groups of four, threads take vectors
// of y wherever they begin and end, output by output. Both compute the same bits. Limits: 2^31 - 1
// positions an image.
#include "kernels/arch/grid.cuh"
#include "kernels/common/dispatch.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/pooling/interpolate_cut.hpp"
#include "kernels/pooling/interpolate_tap.cuh"
#include "kernels/pooling/interpolate_wide.hpp"
#include "kernels/pooling/short_vector.cuh"
#include "kernels/pooling/staged_tile.cuh"

namespace wide::kernels {

namespace {

constexpr int kThreads = kTileThreads;

/// A column's neighbours in a row of x. What has no weight does not count even if it is infinite,
/// and is left out by its bits: the compiler would make a branch of a condition.
struct Column {
  int left, right;
  float weight;
  uint32_t right_bits;

  __device__ explicit Column(const LinearTap& tap)
      : left(tap.first),
        right(tap.first + (tap.weight > 0.0f ? 1 : 0)),
        weight(tap.weight),
        right_bits(tap.weight > 0.0f ? 0xffffffffu : 0) {}
  template <class T>
  __device__ float of(const T* row) const {
    const uint32_t other = __float_as_uint(to_float(row[right])) & right_bits;
    return between(to_float(row[left]), __uint_as_float(other), weight);
  }
};

/// A tile's inputs, and where its outputs lie between them.
template <class T>
struct Between {
  const InterpolateParams& p;
  const InterpolateCut& cut;
  const Tile& tile;
  const Inputs<T, InterpolateParams>& inputs;
  const LinearTap *rows, *columns;  ///< of the tile's rows and columns

  __device__ T* y(int image, int row, int column) const {
    return static_cast<T*>(p.y) + image_offset(cut, p.y_strides, tile.first_image + image) +
           (tile.row + row) * p.y_strides.row + tile.column + column;
  }
  __device__ float operator()(int image, int row, int column) const {
    const LinearTap down = rows[row];
    const Column across(columns[column]);
    const float above = across.of(inputs.at(image, down.first, 0));
    if (down.weight == 0.0f) return above;
    return between(above, across.of(inputs.at(image, down.first + 1, 0)), down.weight);
  }
};

/// Where the taps of a column lie, so that neighbouring threads read neighbours: those of all
/// groups' first columns, then of their second ones, ..
__device__ int place_in_groups(const InterpolateCut& cut, int column) {
  return column % kGroup * cut.across + column / kGroup;
}

/// Groups of neighbouring outputs, from row to row.
template <class T>
__device__ void write_groups(const Between<T>& x) {
  const InterpolateCut& cut = x.cut;
  const int groups = x.tile.images * cut.parts * cut.across;
  for (int number = static_cast<int>(threadIdx.x); number < groups; number += kThreads) {
    int group, part;
    const int image = cut.by_parts.divide(cut.by_across.divide(number, group), part);
    const int first = part * cut.rows_of_part, end = min(first + cut.rows_of_part, x.tile.rows);
    if (group * kGroup >= x.tile.columns || first >= end) continue;
    const auto column = [&](int e) { return Column(x.columns[e * cut.across + group]); };
    const Column across[kGroup]{column(0), column(1), column(2), column(3)};
    const T* const top = cut.run == Run::row ? nullptr : x.inputs.at(image, x.tile.in_row, 0);
    T* y = x.y(image, first, group * kGroup);
    go_down<kGroup>(
        first, end, [&](int row) { return x.rows[row]; },
        [&](float(&values)[kGroup], int row) {
          const T* const from = top == nullptr ? x.inputs.at(image, row, 0)
                                               : top + (row - x.tile.in_row) * x.tile.in_columns;
#pragma unroll
          for (int e = 0; e < kGroup; ++e) values[e] = across[e].of(from);
        },
        [&](const float(&values)[kGroup]) {
          Vector<T, kGroup> vector;
#pragma unroll
          for (int e = 0; e < kGroup; ++e) vector.v[e] = from_float<T>(values[e]);
          vector.store(y);
          y += x.p.y_strides.row;
        });
  }
}

/// Outputs in y's order, of which a run is contiguous.
template <class T>
__device__ void write_in_order(const Between<T>& x) {
  constexpr int kSize = Vec16<T>::kSize;
  const InterpolateCut& cut = x.cut;
  const bool is_row = cut.y_run == Run::row, is_tile = cut.y_run == Run::tile;
  const int of_image = cut.rows * cut.columns;
  const int runs = is_tile ? 1 : x.tile.images * (is_row ? cut.rows : 1);
  const int length = is_row    ? x.tile.columns
                     : is_tile ? x.tile.images * of_image
                               : x.tile.rows * cut.columns;
  const int of_run = is_row ? cut.columns : of_image;
  struct Place {
    int image, row, column;
  };
  const auto place_of = [&](int number) {
    Place place;
    place.image = cut.by_rows.divide(cut.by_across.divide(number, place.column), place.row);
    return place;
  };
  write_runs_of<T>(
      {cut.y_pitch, cut.by_y_chunks}, runs, length, {static_cast<int>(threadIdx.x), kThreads},
      [&](int run) -> T* {
        const Place place = place_of(run * of_run);
        return place.row < x.tile.rows ? x.y(place.image, place.row, place.column) : nullptr;
      },
      [&](int run, int, int element) {
        const Place place = place_of(run * of_run + element);
        return from_float<T>(x(place.image, place.row, place.column));
      },
      [&](int run, int, int element) {
        Place place = place_of(run * of_run + element);
        Vec16<T> vector;
#pragma unroll
        for (int e = 0; e < kSize; ++e) {
          vector.v[e] = from_float<T>(x(place.image, place.row, place.column));
          if (++place.column < cut.columns) continue;
          place.column = 0;
          if (++place.row < cut.rows) continue;
          place.row = 0;
          ++place.image;
        }
        return vector;
      });
}

template <class T, bool kHasGroups>
__global__ void __launch_bounds__(kThreads)
    interpolate_kernel(const __grid_constant__ InterpolateParams p,
                       const __grid_constant__ InterpolateCut cut) {
  extern __shared__ uint4 shared[];
  auto* taps = reinterpret_cast<LinearTap*>(shared);
  auto* kept = reinterpret_cast<T*>(shared + (cut.num_taps + 1) / 2);
  auto* starts = reinterpret_cast<int*>(kept + cut.runs * cut.pitch);
  const Tile tile = tile_of(p, cut, [](const LinearAxis& axis, int output, int count) {
    return span_of(axis, output, count);
  });
  for (int i = static_cast<int>(threadIdx.x); i < cut.num_taps; i += kThreads) {
    const bool is_row = i < cut.rows;
    const int output = is_row ? tile.row + i : tile.column + i - cut.rows;
    const LinearTap tap =
        tap_of(is_row ? p.rows : p.columns, min(output, (is_row ? p.rows.out : p.columns.out) - 1));
    taps[is_row || !kHasGroups ? i : cut.rows + place_in_groups(cut, i - cut.rows)] = tap;
  }
  const Inputs<T, InterpolateParams> inputs(p, cut, tile, kept, starts);
  arch::follow_grid();
  inputs.load();
  __syncthreads();
  const Between<T> x{p, cut, tile, inputs, taps, taps + cut.rows};
  if constexpr (kHasGroups) {
    write_groups<T>(x);
  } else {
    write_in_order<T>(x);
  }
}

template <class T>
cudaError_t launch(InterpolateParams p, cudaStream_t stream) {
  p.rows.by_parts = Divisor(p.rows.parts);
  p.columns.by_parts = Divisor(p.columns.parts);
  const InterpolateCut cut = InterpolateCutter(p, Vec16<T>::kSize).cut();
  const int64_t blocks = interpolate_blocks(cut);
  if (blocks > kMaxGridBlocks) return cudaErrorInvalidConfiguration;
  const size_t bytes = static_cast<size_t>((cut.num_taps + 1) / 2) * sizeof(uint4) +
                       static_cast<size_t>(cut.runs * cut.pitch) * sizeof(T) +
                       static_cast<size_t>(cut.runs) * sizeof(int);
  const auto kernel = cut.has_groups ? interpolate_kernel<T, true> : interpolate_kernel<T, false>;
  return launch_kernel(kernel, static_cast<unsigned>(blocks), kThreads, bytes, stream, p, cut);
}

}  // namespace

cudaError_t launch_interpolate_wide(Dtype dtype, const InterpolateParams& p, cudaStream_t stream) {
  if (p.batch * p.num_members * p.channels == 0) return cudaSuccess;
  return dispatch_float(dtype,
                        [&]<class T>(std::type_identity<T>) { return launch<T>(p, stream); });
}

}  // namespace wide::kernels
