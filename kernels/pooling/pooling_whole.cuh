// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Images that are one window each, as before a network's last layer: a warp combines one, or a part
// of a warp where it is short, 16 bytes a load, four loads in flight where a lane has more than
// one. There is nothing else to do: no rows, no columns. A vector's elements are combined as a
// tree, a lane's vectors in order, and lanes as a tree. Where the image does not consist of aligned
// vectors, the same ones are loaded element by element, one after another.
#pragma once

#include "kernels/arch/grid.cuh"
#include "kernels/common/vector_load.cuh"
#include "kernels/pooling/pooling_window.cuh"
#include "kernels/pooling/staged_tile.cuh"

namespace wide::kernels {

/// All elements of a vector, as a tree.
template <PoolingMode kMode, class T>
__device__ inline float combined_vector(const Vec16<T>& vector) {
  constexpr int kSize = Vec16<T>::kSize;
  float values[kSize];
#pragma unroll
  for (int e = 0; e < kSize; ++e) values[e] = to_float(vector.v[e]);
#pragma unroll
  for (int half = kSize / 2; half > 0; half /= 2) {
#pragma unroll
    for (int e = 0; e < half; ++e) values[e] = combined<kMode>(values[e], values[e + half]);
  }
  return values[0];
}

/// A vector of an image, element by element.
template <class T>
__device__ inline Vec16<T> gathered_vector(const PoolingParams& p, const T* image, int vector) {
  constexpr int kSize = Vec16<T>::kSize;
  const int row = vector * kSize / p.columns.in;
  int column = vector * kSize - row * p.columns.in;
  const T* from = image + row * p.x_strides.row;
  Vec16<T> values;
#pragma unroll
  for (int e = 0; e < kSize; ++e) {
    values.v[e] = from[column];
    if (++column < p.columns.in) continue;
    column = 0;
    from += p.x_strides.row;
  }
  return values;
}

/// What lane `lane` of cut.whole_lanes has of an image.
template <PoolingMode kMode, class T>
__device__ inline float combined_in_lane(const PoolingParams& p, const Cut& cut, const T* image,
                                         int vectors, int lane) {
  float value = nothing<kMode>();
  if (!cut.has_whole_vectors) {
    for (int i = lane; i < vectors; i += cut.whole_lanes) {
      value = combined<kMode>(value, combined_vector<kMode>(gathered_vector(p, image, i)));
    }
    return value;
  }
  const auto take = [&]<int kAtOnce>(int first) {
    Vec16<T> loaded[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const int i = first + u * cut.whole_lanes;
      loaded[u] = load_vec16_if(image + i * Vec16<T>::kSize, i < vectors);
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      if (first + u * cut.whole_lanes >= vectors) break;
      value = combined<kMode>(value, combined_vector<kMode>(loaded[u]));
    }
  };
  if (vectors <= cut.whole_lanes) {
    take.template operator()<1>(lane);
  } else {
    for (int first = lane; first < vectors; first += 4 * cut.whole_lanes) {
      take.template operator()<4>(first);
    }
  }
  return value;
}

template <PoolingMode kMode, class T>
__global__ void __launch_bounds__(kPoolingThreads)
    pooling_whole_kernel(const __grid_constant__ PoolingParams p, const __grid_constant__ Cut cut) {
  __shared__ T results[kPoolingThreads / kMinWholeLanes];
  const int thread = static_cast<int>(threadIdx.x);
  const int bits = __ffs(cut.whole_lanes) - 1, teams = kPoolingThreads >> bits;
  const int team = thread >> bits, lane = thread & (cut.whole_lanes - 1);
  const int64_t first_image = int64_t{blockIdx.x} * teams, image = first_image + team;
  const int length = p.rows.in * p.columns.in;
  const int vectors = image < cut.num_images ? length / Vec16<T>::kSize : 0;
  const T* from = static_cast<const T*>(p.x) + image_offset(cut, p.x_strides, image);
  arch::follow_grid();
  float value = combined_in_lane<kMode>(p, cut, from, vectors, lane);
  value = combined_lanes<kMode>(value, cut.whole_lanes);
  if (kMode != PoolingMode::max) value /= static_cast<float>(length);
  if (lane == 0) results[team] = from_float<T>(value);
  __syncthreads();
  const int64_t written = first_image + thread;
  if (thread >= teams || written >= cut.num_images) return;
  static_cast<T*>(p.y)[image_offset(cut, p.y_strides, written)] = results[thread];
}

}  // namespace wide::kernels
